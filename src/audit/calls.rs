//! What the two sides said: calls begin, answers settle them, ends leave them unknown. By the same rules as the
//! journal's fold (`journal::settle`, `ends`); a test holds the two together.

use super::content::Parts;
use super::fact::{At, Speaker};
use super::finding::{Finding, Kind};
use super::fold::{Audit, Exchange, Key, Need, Open, Waits};
use super::handle::Who;
use super::lean;
use super::names::KEYS;
use crate::journal::AnswerStatus;
use crate::json::raw;
use crate::wire::frame::Answer;
use crate::wire::id::Id;

/// request_ids whose arguments are remembered.
const KEYS_KEPT: usize = 1_000_000;
/// Calls that the server wants more input for.
const ROUNDS: usize = 1_000;

/// A request of 2026-07-28 names its revision under this name in its `_meta`.
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// Marks the key of what hangs on an exchange.
const OF_EXCHANGE: u64 = 1 << 63;

/// How a call ended, with what was said.
pub(super) enum End<'a> {
    Ok(&'a Parts<'a>, &'a str),
    Failed(String),
}

#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
    jsonrpc: bool,
}

impl<'a> Envelope<'a> {
    fn of(frame: &'a str) -> Option<Envelope<'a>> {
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
        let key: Key = (at.generation, exchange.map_or(speaker.session, |x| x | OF_EXCHANGE), n);
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
            let own = (at.generation, speaker.session, n);
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
            "idempotencyKey" => own = lean::text(v),
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
            keys.iter().find_map(|k| lean::get(meta?, k).and_then(lean::text))
        };
        let outside = own.or_else(in_meta).map(|k| k.into_owned());
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
    fn open(&mut self, at: At, tool: u32, args: &str, who: Who, outside: Option<String>) -> Open {
        let mut fingerprint = lean::mix(u64::from(tool) + 1, 7);
        let mut given = Vec::new();
        let mut request = outside;
        lean::leaves(args, |l| {
            if KEYS.contains(&l.name) {
                if request.is_none() {
                    request = lean::text(l.raw).map(|t| t.into_owned());
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

    fn begins(&mut self, open: &mut Open, args: &str) {
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

    pub(super) fn server_said(&mut self, at: At, frame: &str, exchange: Option<u64>) {
        let Some(e) = Envelope::of(frame) else { return };
        let x = exchange.and_then(|x| self.exchanges.get(&x)).cloned();
        let answer = match e.method.map(lean::text) {
            Some(Some(method)) => return self.server_asked(at, &method, e.id.is_some(), exchange),
            Some(None) => {
                return self.malformed(at, e.id, x.as_ref(), "its method is not a string");
            }
            None => match Answer::of(e.result, e.error) {
                Some(Ok(answer)) => answer,
                Some(Err(why)) => return self.malformed(at, e.id, x.as_ref(), why),
                None if e.jsonrpc => {
                    return self.malformed(at, e.id, x.as_ref(), "it says nothing");
                }
                None => return,
            },
        };
        if let Some(x) = &x
            && x.status.is_some_and(|s| !(200..300).contains(&s))
        {
            return self.refusing_body(at, x, e.id, &answer);
        }
        let id = e.id.filter(|i| !raw::is_null(i));
        if let Some(key) = id.and_then(|id| self.asked_under(at, id, x.as_ref())) {
            return self.answered(at, key, &answer);
        }
        // An error that is the whole body of its exchange, or near on its stream, can belong to nobody else.
        if let (Some(x), Answer::Error { .. }) = (&x, &answer)
            && let Some(key) = x.key
            && (!x.stream || id.is_some_and(|i| Id::from_raw(i).is_near(&Id::from_raw(&x.id))))
        {
            self.answered(at, key, &answer);
        }
    }

    /// What an id names: what was asked on the same exchange, else what waits under it.
    fn asked_under(&self, at: At, id: &str, x: Option<&Exchange>) -> Option<Key> {
        let n = number(id);
        let own = x.and_then(|x| x.key).filter(|k| k.2 == n);
        own.or_else(|| self.waiting_for((at.generation, 0, n)))
    }

    /// A message that is none. A plain body is the answer of its exchange, whatever its id; on a stream the answer
    /// may still follow.
    fn malformed(&mut self, at: At, id: Option<&str>, x: Option<&Exchange>, why: &str) {
        let own = x.filter(|x| !x.stream).and_then(|x| x.key);
        let id = id.filter(|i| !raw::is_null(i));
        let Some(key) = own.or_else(|| self.asked_under(at, id?, x)) else { return };
        // Whatever else waits stays unanswered all the same.
        if let Some(Waits::Call(open)) = self.take(key) {
            self.unknown(&open, format!("the answer is malformed: {why}"), false);
        }
    }

    /// What waits under this id, whatever session or exchange it was sent on where the line doesn't tell.
    fn waiting_for(&self, key: Key) -> Option<Key> {
        if self.waits.contains_key(&key) {
            return Some(key);
        }
        // On stdio the key is whole.
        let life = self.lives.get(&key.0)?;
        if !life.http && !life.session {
            return None;
        }
        self.waits.keys().find(|k| k.0 == key.0 && k.2 == key.2).copied()
    }

    fn server_asked(&mut self, at: At, method: &str, request: bool, exchange: Option<u64>) {
        let inside = match exchange.and_then(|x| self.exchanges.get(&x)) {
            Some(x) => !x.get && x.key.is_some_and(|k| self.waits.contains_key(&k)),
            None => self.lives.get(&at.generation).is_some_and(|l| l.waiting > 0),
        };
        match method {
            // Signs of life and of a call's own progress.
            "ping" | "notifications/progress" | "notifications/cancelled" => {}
            _ if request => self.needs(at, "the server asks the client", method),
            "notifications/resources/updated" => {
                self.needs(at, "the server notifies a subscriber", method);
            }
            _ if inside => {}
            _ => self.needs(at, "the server notifies outside of any call", method),
        }
    }

    pub(super) fn answered(&mut self, at: At, key: Key, answer: &Answer<'_>) {
        match (self.take(key), answer) {
            (None | Some(Waits::Other), _) | (Some(Waits::Tools), Answer::Error { .. }) => {}
            (Some(Waits::Tools), Answer::Result(r)) => self.listed(r),
            (Some(Waits::Call(open)), Answer::Result(r)) => self.result(at, *open, r),
            (Some(Waits::Call(open)), Answer::Error { message, .. }) => {
                self.settled(*open, End::Failed(message.clone()));
            }
        }
    }

    fn result(&mut self, at: At, mut open: Open, result: &str) {
        let Some(parts) = Parts::of(result) else {
            return self.unknown(&open, "the answer is malformed".into(), false);
        };
        // Members that decide what it means, of another type.
        if parts.is_error.is_some_and(|e| raw::as_bool(e).is_none()) {
            let why = "answered, but its isError is no boolean";
            return self.unknown(&open, why.into(), false);
        }
        if !open.legacy && parts.result_type.is_some_and(|t| raw::as_str(t).is_none()) {
            let why = "the answer is malformed: its resultType is no string";
            return self.unknown(&open, why.into(), false);
        }
        if parts.is_error == Some("true") {
            let said = parts.texts().join("\n");
            return self.settled(open, End::Failed(said));
        }
        if !open.legacy
            && parts.result_type.and_then(raw::as_str).as_deref() == Some("input_required")
        {
            if self.rounds.len() >= ROUNDS {
                self.rounds.remove(0);
            }
            open.who.generation = at.generation;
            self.rounds.push(open);
            return;
        }
        self.settled(open, End::Ok(&parts, result));
    }

    pub(super) fn traced(
        &mut self,
        at: At,
        tool: &str,
        args: &str,
        result: Option<&str>,
        error: Option<&str>,
    ) {
        let tool = self.tool(tool);
        let who = Who { generation: at.generation, ..Who::default() };
        let mut open = self.open(at, tool, args, who, None);
        self.begins(&mut open, args);
        match (result, error) {
            (Some(r), _) => {
                let parts = Parts::of_trace(r);
                if parts.is_error == Some("true") {
                    let said = parts.texts().join("\n");
                    self.settled(open, End::Failed(said));
                } else {
                    self.settled(open, End::Ok(&parts, r));
                }
            }
            (None, Some(e)) => {
                let said = lean::get(e, "message").and_then(lean::text);
                let said = said.or_else(|| lean::text(e)).unwrap_or_default().into_owned();
                self.settled(open, End::Failed(said));
            }
            // A trace list keeps what was returned: nothing was, as far as it tells.
            (None, None) => self.returned_nothing(&open),
        }
    }

    /// A call is answered.
    fn settled(&mut self, open: Open, end: End<'_>) {
        let ok = matches!(end, End::Ok(..));
        // The answer beats that it was given up.
        let late = open.given_up.is_some();
        if late {
            self.unknowns.answered(open.call);
        }
        if let Some(t) = self.tool_mut(open.tool) {
            if ok {
                t.ok += 1
            } else {
                t.failed += 1
            }
            if late {
                t.unknown = t.unknown.saturating_sub(1);
            }
        }
        self.looked_up(&open, &end);
        if self.options.join {
            self.asked.answered(
                &open,
                ok && !matches!(&end, End::Ok(_, r) if unfinished(r, open.legacy)),
            );
        }
        match &end {
            End::Ok(parts, result) => {
                self.used_well(&open);
                self.returned(&open, parts, result);
                if let Some(values) = &mut self.values {
                    values.returned(open.tool, open.call, parts);
                }
            }
            End::Failed(said) => self.used_badly(&open, said),
        }
    }

    /// Nothing more can come on this life of the server.
    pub(super) fn life_over(&mut self, at: At, why: &str) {
        if let Some(life) = self.lives.get_mut(&at.generation) {
            life.over = true;
            life.ended.get_or_insert_with(|| why.to_owned());
        }
        let mut open: Vec<Key> = self
            .waits
            .iter()
            .filter(|(k, w)| k.0 == at.generation && !is_over_http(w))
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

/// What hangs on an exchange of its own ends with that.
fn is_over_http(w: &Waits) -> bool {
    matches!(w, Waits::Call(open) if open.exchange.is_some())
}

/// The answer says that the work goes on, or that nothing is known of it.
pub(super) fn unfinished(result: &str, legacy: bool) -> bool {
    // A foreign trace may hold the bare object that a tool gave, which is no CallToolResult and says nothing of that.
    let bare = ["content", "structuredContent", "resultType", "task"]
        .iter()
        .all(|key| raw::get(result, key).is_none());
    !bare && crate::journal::call::answer_status(result, legacy) != AnswerStatus::Done
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
