//! What a client said: calls begin, are given up, and are left unknown when nothing more can come. `answers` is the other
//! side. By the same rules as the journal's fold (`journal::sent`, `ends`); a test holds the two together.

use super::bounds::Forgot;
use super::fact::{At, Speaker};
use super::finding::{Finding, Kind};
use super::fold::{Audit, Exchange, Key, Need, Open, Waits};
use super::handle::Who;
use super::lean;
use super::names::KEYS;
use crate::journal::belongs;
use crate::json::{key, raw};

/// request_ids whose arguments are remembered.
const KEYS_KEPT: usize = 1_000_000;
/// A request of 2026-07-28 names its revision under this name in its `_meta`.
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// Marks the key of what hangs on an exchange.
const OF_EXCHANGE: u64 = 1 << 63;

#[derive(Default)]
pub(super) struct Envelope<'a> {
    pub id: Option<&'a str>,
    pub method: Option<&'a str>,
    pub params: Option<&'a str>,
    pub result: Option<&'a str>,
    pub error: Option<&'a str>,
    pub jsonrpc: bool,
}

impl<'a> Envelope<'a> {
    pub fn of(frame: &'a str) -> Option<Envelope<'a>> {
        let mut e = Envelope::default();
        lean::members(frame, |k, v| match k {
            "id" => e.id = Some(v),
            "method" => e.method = Some(v),
            "params" => e.params = Some(v),
            "result" => e.result = Some(v),
            "error" => e.error = Some(v),
            "jsonrpc" => e.jsonrpc = true,
            _ => {}
        })?;
        Some(e)
    }
}

impl Audit {
    pub(super) fn client_said(
        &mut self,
        at: At,
        frame: &str,
        exchange: Option<u64>,
        of: Option<u64>,
        speaker: Speaker,
    ) {
        let Some(e) = Envelope::of(frame) else { return };
        let Some(method) = e.method.and_then(lean::text) else { return };
        let Some(raw_id) = e.id.filter(|i| !raw::is_null(i)) else {
            return self.client_notified(at, &method, e.params, speaker);
        };
        let x = exchange.and_then(|x| self.exchanges.get(&x)).cloned();
        let speaker = x.as_ref().map_or(speaker, |x| x.speaker);
        if speaker.session != 0
            && let Some(life) = self.lives.get_mut(&at.generation)
        {
            life.session = true;
        }
        let n = number(raw_id);
        self.used_id(at, (at.generation, speaker.session, n), raw_id);
        // Clients that share a generation may use the same ids at the same time: the exchange tells them apart.
        let key: Key =
            (at.generation, exchange.map_or(of_session(speaker), |x| x | OF_EXCHANGE), n);
        if let Some(n) = exchange {
            let (modern, with_session) = (
                frame.contains(REVISION)
                    && e.params.and_then(|p| lean::get(p, "_meta")).is_some_and(is_modern),
                self.lives.get(&at.generation).is_some_and(|l| l.session),
            );
            let x = self.exchanges.entry(n).or_default();
            *x = Exchange {
                key: Some(key),
                id: raw_id.into(),
                modern,
                with_session,
                ..std::mem::take(x)
            };
        }
        let waits = match &*method {
            "tools/call" => match self.called(at, e.params, (exchange, speaker), of) {
                Some(open) => Waits::Call(Box::new(open)),
                None => return,
            },
            "initialize" => {
                if let Some(info) = e.params.and_then(|p| lean::get(p, "clientInfo")) {
                    let client = self.client(info);
                    if let Some(life) = self.lives.get_mut(&at.generation) {
                        life.client = client;
                    }
                }
                Waits::Other
            }
            "tools/list" => Waits::Tools,
            "resources/subscribe" | "subscriptions/listen" => {
                self.needs(at, "the client subscribes", &method);
                Waits::Other
            }
            _ => Waits::Other,
        };
        self.put(key, waits);
    }

    fn client_notified(&mut self, at: At, method: &str, params: Option<&str>, speaker: Speaker) {
        if method == "notifications/cancelled"
            && let Some(id) = params.and_then(|p| lean::get(p, "requestId"))
        {
            let n = number(id);
            let own = (at.generation, of_session(speaker), n);
            if let Some(key) = self.waiting_for(own) {
                self.given_up(key, "given up by the client");
            }
        }
    }

    /// The client no longer waits; the answer may come all the same.
    pub(super) fn given_up(&mut self, key: Key, why: &'static str) {
        if let Some(Waits::Call(open)) = self.waits.get_mut(&key) {
            open.given_up = Some(why);
            let open = open.clone();
            self.unknown(&open, why.to_owned(), true);
        }
    }

    pub(super) fn needs(&mut self, at: At, what: &'static str, method: &str) {
        // Methods are the other side's own words: their number is bounded.
        if self.needs.len() < 200 || self.needs.contains_key(&(what, method.to_owned())) {
            let need = self.needs.entry((what, method.to_owned())).or_insert(Need { count: 0, at });
            need.count += 1;
        }
    }

    /// A call begins, or goes on.
    fn called(
        &mut self,
        at: At,
        params: Option<&str>,
        (exchange, speaker): (Option<u64>, Speaker),
        of: Option<u64>,
    ) -> Option<Open> {
        let (mut name, mut args, mut more, mut meta, mut own) = (None, "{}", false, None, None);
        lean::members(params?, |k, v| match k {
            "name" => name = lean::text(v),
            "arguments" => args = v,
            "inputResponses" | "requestState" => more = true,
            "_meta" => meta = Some(v),
            "idempotencyKey" => own = key::text(v),
            _ => {}
        })?;
        let name = name?;
        let tool = self.tool(&name);
        let client = meta
            .filter(|m| m.contains("clientInfo"))
            .and_then(|m| lean::get(m, "io.modelcontextprotocol/clientInfo"))
            .map_or(0, |info| self.client(info));
        let life = self.lives.get(&at.generation);
        let who = Who {
            generation: at.generation,
            // Sessions of exchanges have generations of their own.
            session: if exchange.is_some() { 0 } else { speaker.session },
            credential: speaker.credential,
            client: if client > 0 { client } else { life.map_or(0, |l| l.client) },
        };
        let in_meta = || {
            let keys = ["request_id", "idempotencyKey"];
            keys.iter().find_map(|k| lean::get(meta?, k).and_then(key::text))
        };
        let outside = own.or_else(in_meta);
        let mut open = self.open(at, tool, args, who, outside);
        open.exchange = exchange;
        open.legacy = self.legacy && !meta.is_some_and(is_modern);
        if more || of.is_some() {
            let earlier = self.rounds.iter().rposition(|r| {
                r.tool == tool
                    && (r.fingerprint == open.fingerprint)
                    && (r.who.client == who.client)
            });
            if let Some(earlier) = earlier.map(|i| self.rounds.remove(i)) {
                return Some(Open { exchange, who, rounds: earlier.rounds + 1, ..earlier });
            }
        }
        self.begins(&mut open, args);
        Some(open)
    }

    /// A new call: its number, its request_id, what it is given.
    pub(super) fn open(
        &mut self,
        at: At,
        tool: u32,
        args: &str,
        who: Who,
        outside: Option<String>,
    ) -> Open {
        let mut fingerprint = lean::mix(u64::from(tool) + 1, 7);
        let mut given = Vec::new();
        let mut request = outside;
        lean::leaves(args, |l| {
            if KEYS.contains(&l.name) {
                if request.is_none() {
                    request = key::text(l.raw);
                }
                return;
            }
            let number = scalar_number(l.raw);
            fingerprint = fingerprint.wrapping_add(lean::mix(l.path, number));
            if given.len() < 64 {
                given.push(number);
            }
        });
        Open {
            call: self.calls + 1,
            at,
            tool,
            named: lean::get(args, "request_id")
                .and_then(|_| belongs::request_named(args))
                .map(Into::into),
            request: request.filter(|r| !r.is_empty()).map(Into::into),
            fingerprint,
            who,
            uses: Vec::new(),
            given,
            exchange: None,
            rounds: 1,
            given_up: None,
            legacy: false,
        }
    }

    pub(super) fn begins(&mut self, open: &mut Open, args: &str) {
        self.calls += 1;
        self.given_handles(open, args);
        if let Some(t) = self.tool_mut(open.tool) {
            t.calls += 1;
            t.bare += u64::from(open.uses.is_empty());
        }
        self.same_key(open);
        self.same_arguments(open);
        if self.options.join {
            self.asked.sent(open);
        }
        if let Some(values) = &mut self.values {
            values.given(open.tool, args);
        }
    }

    /// A look at a request, which changes nothing.
    pub(super) fn looks(&self, tool: u32) -> bool {
        let t = self.tool_of(tool);
        t.name == self.options.look_up || t.reads
    }

    fn same_key(&mut self, open: &Open) {
        let Some(request) = open.request.as_deref().filter(|_| !self.looks(open.tool)) else {
            return;
        };
        let number = lean::mix(u64::from(open.tool) + 1, lean::hash(request.as_bytes()));
        let Some((fingerprint, call)) = self.keys.get(&number).copied() else {
            if self.key_order.len() >= KEYS_KEPT
                && let Some(old) = self.key_order.pop_front()
            {
                self.keys.remove(&old);
                self.forgot.insert(Forgot::Requests);
            }
            self.keys.insert(number, (open.fingerprint, open.call));
            self.key_order.push_back(number);
            return;
        };
        if fingerprint != open.fingerprint {
            let message = format!(
                "the request_id {request} was used with other arguments before (call {call}): one of the two was not done, or was answered with the other's result"
            );
            let f = Finding::new(Kind::KeyReusedOtherArgs, message).value(request).with(call);
            self.add_of(open, f);
        }
    }

    /// Adds what is about a call.
    pub(super) fn add_of(&mut self, open: &Open, mut f: Finding) {
        f.call = Some(open.call);
        f.tool = Some(self.tool_of(open.tool).name.clone());
        self.add_at(open.at, f);
    }

    /// Nothing more can come on this life of the server.
    pub(super) fn life_over(&mut self, at: At, why: &str) {
        if let Some(life) = self.lives.get_mut(&at.generation) {
            life.over = true;
            life.ended.get_or_insert_with(|| why.to_owned());
        }
        // Where all answers come on one stream none hangs on an exchange of its own.
        let apart = self.lives.get(&at.generation).is_some_and(|l| l.apart.is_some());
        let mut open: Vec<Key> = self
            .waits
            .iter()
            .filter(|(k, w)| k.0 == at.generation && (apart || !is_over_http(w)))
            .map(|(k, _)| *k)
            .collect();
        open.sort_unstable();
        let (of_it, others) = std::mem::take(&mut self.shadowed)
            .into_iter()
            .partition::<Vec<_>, _>(|o| o.who.generation == at.generation);
        self.shadowed = others;
        let mut ended = of_it;
        for key in open {
            if let Some(Waits::Call(open)) = self.take(key) {
                ended.push(*open);
            }
        }
        ended.sort_by_key(|o| o.call);
        for open in ended {
            self.unknown(&open, why.to_owned(), false);
        }
    }
}

/// Whether a raw `_meta` is that of a request of 2026-07-28.
fn is_modern(meta: &str) -> bool {
    meta.contains(REVISION)
}

/// The part of a key that stands for a session.
fn of_session(speaker: Speaker) -> u64 {
    speaker.session & !OF_EXCHANGE
}

/// What hangs on an exchange of its own.
pub(super) fn of_exchange(key: Key) -> bool {
    key.1 & OF_EXCHANGE != 0
}

/// What hangs on an exchange of its own ends with that.
fn is_over_http(w: &Waits) -> bool {
    matches!(w, Waits::Call(open) if open.exchange.is_some())
}

/// Stands for a JSON-RPC id: `1` and `"1"` are two.
pub(super) fn number(raw_id: &str) -> u64 {
    lean::hash(raw_id.as_bytes())
}

/// Stands for a scalar: a string is what it says, whatever its escapes.
pub(super) fn scalar_number(raw: &str) -> u64 {
    match lean::text(raw) {
        Some(t) => lean::hash(t.as_bytes()),
        None => lean::hash(raw.as_bytes()),
    }
}
