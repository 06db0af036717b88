//! Judges the handles of calls: which were made here, which come from nowhere, and what a use of one on another
//! life of the server, or by somebody else, means.

use super::answers::unfinished;
use super::calls::scalar_number;
use super::content::{Found, Parts, Value, find, value};
use super::finding::{Finding, Kind};
use super::fold::{Audit, Open, Use};
use super::handle::{Handle, Handles, Seen, Who};
use super::lean;
use super::names::{is_distinctive, kindred, looks_like_handle, plain, related};

/// Words with which servers say that they don't know what a handle names.
const GONE: [&str; 12] = [
    "unknown",
    "not found",
    "no such",
    "expired",
    "does not exist",
    "doesn't exist",
    "invalid",
    "not exist",
    "missing",
    "no longer",
    "not known",
    "cannot find",
];

/// How who uses a handle stands to who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Same,
    /// The same client, on a later life of the server or a session that came after.
    Later,
    /// Another client.
    Client,
    /// Another credential.
    Credential,
    /// Another session that was there at the same time.
    Session,
}

impl Relation {
    fn whose(self) -> &'static str {
        match self {
            Relation::Client => "another client",
            Relation::Credential => "another credential",
            _ => "another session",
        }
    }
    fn is_foreign(self) -> bool {
        matches!(self, Relation::Client | Relation::Credential | Relation::Session)
    }
}

impl Audit {
    pub(super) fn relation(&self, maker: &Who, user: &Who) -> Relation {
        let differs = |a: u64, b: u64| a != 0 && b != 0 && a != b;
        if differs(maker.client.into(), user.client.into()) {
            return Relation::Client;
        }
        if maker.credential != user.credential {
            return Relation::Credential;
        }
        if maker.generation == user.generation {
            let other = differs(maker.session, user.session);
            return if other { Relation::Session } else { Relation::Same };
        }
        let life = self.lives.get(&maker.generation);
        if life.is_some_and(|l| l.http && !l.over) { Relation::Session } else { Relation::Later }
    }

    /// The handles among a call's arguments.
    pub(super) fn given_handles(&mut self, open: &mut Open, args: &str) {
        let tool_name = self.tool_of(open.tool).name.clone();
        let agreed = self.options.contracts.as_ref().map(|c| c.of(&tool_name).cloned());
        match agreed {
            None => self.infer_given(open, args),
            Some(None) => {}
            Some(Some(contract)) => {
                for term in &contract.requires {
                    let found = find(term, args, None);
                    let name = self.name(&term.name);
                    if !found.iter().any(|f| *f != Found::Empty) && !term.optional {
                        let message = format!("{tool_name} was called without {}", term.name);
                        let mut f = Finding::new(Kind::Missing, message);
                        f.handle = Some(term.name.clone());
                        self.add_of(open, f);
                    }
                    for f in found {
                        match f {
                            Found::Is(v) => self.given_handle(open, name, &v),
                            Found::Hidden => drop(self.hidden.insert(name)),
                            Found::Empty => {}
                        }
                    }
                }
            }
        }
    }

    fn infer_given(&mut self, open: &mut Open, args: &str) {
        let mut uses: Vec<(String, String)> = Vec::new();
        let mut hidden: Vec<String> = Vec::new();
        let handles = &self.handles;
        lean::leaves(args, |l| {
            let named = looks_like_handle(l.name);
            let known = !named && !handles.is_empty() && handles.holds(scalar_number(l.raw));
            if !named && !known {
                return;
            }
            match value(l.raw) {
                Value::Is(v) if named || is_distinctive(&v) => {
                    uses.push((l.name.to_owned(), v.into_owned()));
                }
                Value::Hidden if named => hidden.push(l.name.to_owned()),
                _ => {}
            }
        });
        for name in hidden {
            let n = self.name(&name);
            self.hidden.insert(n);
        }
        for (name, v) in uses {
            let n = self.name(&name);
            self.given_handle(open, n, &v);
        }
    }

    fn given_handle(&mut self, open: &mut Open, name: u32, v: &str) {
        if open.uses.iter().any(|u| u.name == name && *u.value == *v) {
            return;
        }
        if let Some(t) = self.tool_mut(open.tool) {
            *t.uses.entry(name).or_default() += 1;
        }
        let own = self.name_of(name).to_owned();
        let inferring = self.inferring();
        // Without a contract a name that is no handle's is one by its value alone.
        let any = inferring && !looks_like_handle(&own);
        let names = &self.names;
        let same = |n: u32| {
            n == name
                || any
                || names.get(n as usize).is_some_and(|other| {
                    if inferring { related(other, &own) } else { kindred(other, &own) }
                })
        };
        let seen = self.handles.seen(v, same);
        let made = match seen {
            Seen::Made(i) | Seen::Other(i) => Some(i),
            Seen::Dim | Seen::Never => None,
        };
        if let Seen::Other(i) = seen
            && let Some(h) = self.handles.get(i)
            && (!inferring || is_distinctive(v))
        {
            let message = format!(
                "{own}='{v}' was made as {} (call {}), and is used here as {own}",
                self.name_of(h.name),
                h.call
            );
            let mut f = Finding::new(Kind::WrongKind, message).with(h.call).inferred(inferring);
            (f.handle, f.value) = (Some(own.clone()), Some(v.to_owned()));
            self.add_of(open, f);
        }
        if seen == Seen::Never {
            self.unminted(open, &own, v);
        }
        open.uses.push(Use { name, value: v.into(), made });
    }

    fn unminted(&mut self, open: &Open, name: &str, v: &str) {
        let inferring = self.inferring();
        if inferring {
            // Once for each value: where handles are only inferred, the person may have known it.
            let number = lean::mix(lean::hash(name.as_bytes()), Handles::number(v));
            if self.told.len() >= 100_000 || !self.told.insert(number) {
                return;
            }
        }
        let tool = &self.tool_of(open.tool).name;
        let unless = if inferring { ": it comes from outside, or from nowhere" } else { "" };
        let message = format!("{tool}: {name}='{v}' was not made in this trace{unless}");
        let mut f = Finding::new(Kind::UnmintedHandle, message).inferred(inferring);
        (f.handle, f.value) = (Some(name.to_owned()), Some(v.to_owned()));
        self.add_of(open, f);
    }

    /// A result of a call: what it made.
    pub(super) fn returned(&mut self, open: &Open, parts: &Parts<'_>, result: &str) {
        let tool_name = self.tool_of(open.tool).name.clone();
        let agreed = self.options.contracts.as_ref().map(|c| c.of(&tool_name).cloned());
        match agreed {
            None => self.infer_returned(open, parts),
            Some(None) => {}
            Some(Some(contract)) => {
                for term in &contract.produces {
                    let found = find(term, result, Some(parts));
                    let name = self.name(&term.name);
                    if !found.iter().any(|f| *f != Found::Empty) {
                        let goes_on = parts.task || unfinished(result, open.legacy);
                        if !term.optional && !goes_on {
                            let empty = if found.is_empty() { "" } else { " (it is empty)" };
                            self.not_returned(open, &term.name, empty);
                        }
                    }
                    for f in found {
                        match f {
                            Found::Is(v) => self.made(open, name, &v),
                            Found::Hidden => drop(self.hidden.insert(name)),
                            Found::Empty => {}
                        }
                    }
                }
            }
        }
    }

    fn not_returned(&mut self, open: &Open, name: &str, how: &str) {
        let message = format!("{} did not return {name}{how}", self.tool_of(open.tool).name);
        let mut f = Finding::new(Kind::NotReturned, message);
        f.handle = Some(name.to_owned());
        self.add_of(open, f);
    }

    /// A trace list has no result of this call.
    pub(super) fn returned_nothing(&mut self, open: &Open) {
        let tool = &self.tool_of(open.tool).name;
        let Some(contract) = self.options.contracts.as_ref().and_then(|c| c.of(tool)) else {
            return;
        };
        let names: Vec<String> =
            contract.produces.iter().filter(|t| !t.optional).map(|t| t.name.clone()).collect();
        for name in names {
            self.not_returned(open, &name, " (the trace holds no result)");
        }
    }

    fn infer_returned(&mut self, open: &Open, parts: &Parts<'_>) {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut hidden: Vec<String> = Vec::new();
        parts.scalars(&mut |name, raw| {
            if !looks_like_handle(name) {
                return;
            }
            match value(raw) {
                // What comes back as it was given was not made.
                Value::Is(_) if open.given.contains(&scalar_number(raw)) => {}
                Value::Is(v) => found.push((name.to_owned(), v.into_owned())),
                Value::Hidden => hidden.push(name.to_owned()),
                Value::Empty => {}
            }
        });
        for name in hidden {
            let n = self.name(&name);
            self.hidden.insert(n);
        }
        for (name, v) in found {
            let n = self.name(&name);
            self.made(open, n, &v);
        }
    }

    fn made(&mut self, open: &Open, name: u32, v: &str) {
        let own = plain(self.name_of(name));
        let names = &self.names;
        let seen = self
            .handles
            .seen(v, |n| n == name || names.get(n as usize).is_some_and(|o| plain(o) == own));
        let number = Handles::number(v);
        let told = self.inferring() && self.tool_of(open.tool).reads;
        let Seen::Made(i) = seen else {
            if let Some(t) = self.tool_mut(open.tool) {
                *t.makes.entry(name).or_default() += 1;
            }
            let mut h = Handle::new(name, v, open.tool, open.call, open.who);
            (h.key, h.told) = (request_number(open), told);
            self.handles.add(h);
            return;
        };
        let Some(h) = self.handles.get(i) else { return };
        if h.call == open.call {
            return;
        }
        let (maker, relation) = (h.clone(), self.relation(&h.who, &open.who));
        // Its own request's result again, or a value that was handed in.
        let again = request_number(open) != 0 && maker.key == request_number(open);
        if again || open.given.contains(&number) {
            return;
        }
        let newest = maker.newest();
        if relation == Relation::Same && newest.1 == open.who.generation {
            if let Some(t) = self.tool_mut(open.tool)
                && maker.tool == open.tool
            {
                t.repeats = true;
            }
            return;
        }
        let makes = !self.inferring()
            || (maker.tool == open.tool && !told && !self.tool_of(open.tool).repeats);
        if relation != Relation::Later || !makes {
            return;
        }
        let new =
            self.handles.get_mut(i).is_some_and(|h| h.made_again(open.call, open.who.generation));
        if new {
            let name = self.name_of(maker.name).to_owned();
            let message = format!(
                "{name}='{v}' was made by call {} in life {} of the server and made again by call {} in life {}: whoever kept the old one now holds another thing",
                newest.0, newest.1, open.call, open.who.generation
            );
            let mut f = Finding::new(Kind::HandleRebound, message)
                .with(newest.0)
                .inferred(self.inferring());
            (f.handle, f.value) = (Some(name), Some(v.to_owned()));
            // Inferred or not, two answers say the same value: that is seen.
            f.severity = Kind::HandleRebound.severity();
            self.add_of(open, f);
        }
    }

    /// A call was answered with a result.
    pub(super) fn used_well(&mut self, open: &Open) {
        for u in &open.uses {
            let Some(i) = u.made else { continue };
            let Some(h) = self.handles.get(i) else { continue };
            let (relation, newest) = (self.relation(&h.who, &open.who), h.newest());
            let rebound = !h.again.is_empty();
            if relation.is_foreign() {
                self.foreign(open, u, i, relation, Some(true));
            } else if relation == Relation::Later
                && newest.1 != open.who.generation
                && !rebound
                && h.across.is_none()
            {
                let message = format!(
                    "{}='{}' was made in life {} of the server (call {}) and still good in life {}: what it names does not hang on the session",
                    self.name_of(u.name),
                    u.value,
                    newest.1,
                    newest.0,
                    open.who.generation
                );
                self.about(open, u, Kind::HandleUsedAcrossRestart, message, newest.0);
                if let Some(h) = self.handles.get_mut(i) {
                    h.across = Some((open.call, open.who.generation));
                }
            }
            if let Some(h) = self.handles.get_mut(i) {
                h.used(open.call, open.who.generation, Some(true));
            }
        }
    }

    /// A call was answered with an error, which said this.
    pub(super) fn used_badly(&mut self, open: &Open, said: &str) {
        let low = said.to_lowercase();
        for u in &open.uses {
            let Some(i) = u.made else { continue };
            let Some(h) = self.handles.get(i) else { continue };
            let (relation, newest) = (self.relation(&h.who, &open.who), h.newest());
            let about_it =
                low.contains(&u.value.to_lowercase()) || GONE.iter().any(|w| low.contains(w));
            if relation.is_foreign() {
                self.foreign(open, u, i, relation, Some(false));
            } else if relation == Relation::Later
                && newest.1 != open.who.generation
                && about_it
                && h.lost.is_none_or(|(_, g)| g != open.who.generation)
            {
                let line: String =
                    said.lines().next().unwrap_or_default().chars().take(120).collect();
                let message = format!(
                    "{}='{}' was made in life {} of the server (call {}) and refused in life {}: {line}",
                    self.name_of(u.name),
                    u.value,
                    newest.1,
                    newest.0,
                    open.who.generation
                );
                self.about(open, u, Kind::LostHandle, message, newest.0);
                if let Some(h) = self.handles.get_mut(i) {
                    h.lost = Some((open.call, open.who.generation));
                }
            }
            if let Some(h) = self.handles.get_mut(i) {
                h.used(open.call, open.who.generation, Some(false));
            }
        }
    }

    /// Nobody knows what became of a call.
    pub(super) fn used_unanswered(&mut self, open: &Open) {
        for u in &open.uses {
            let Some(i) = u.made else { continue };
            let Some(h) = self.handles.get(i) else { continue };
            let relation = self.relation(&h.who, &open.who);
            if relation.is_foreign() {
                self.foreign(open, u, i, relation, None);
            }
            if let Some(h) = self.handles.get_mut(i) {
                h.used(open.call, open.who.generation, None);
            }
        }
    }

    fn foreign(&mut self, open: &Open, u: &Use, i: usize, relation: Relation, good: Option<bool>) {
        let Some(h) = self.handles.get_mut(i) else { return };
        if !h.used_by(open.call, open.who) {
            return;
        }
        let maker = h.call;
        let outcome = match good {
            Some(true) => {
                "and the server let it: is the caller checked there? A handle points at a thing, it grants nothing"
            }
            Some(false) => "and the server answered with an error",
            None => "and no answer came",
        };
        let message = format!(
            "{}='{}' was made by call {maker}, of {}, {outcome}",
            self.name_of(u.name),
            u.value,
            relation.whose()
        );
        let mut f = Finding::new(Kind::ForeignHandle, message).with(maker);
        if good == Some(false) {
            f.severity = super::finding::Severity::Warning;
        }
        f.inferred = self.inferring();
        (f.handle, f.value) = (Some(self.name_of(u.name).to_owned()), Some(u.value.to_string()));
        self.add_of(open, f);
    }

    fn about(&mut self, open: &Open, u: &Use, kind: Kind, message: String, made: u64) {
        let mut f = Finding::new(kind, message).with(made);
        f.inferred = self.inferring();
        (f.handle, f.value) = (Some(self.name_of(u.name).to_owned()), Some(u.value.to_string()));
        self.add_of(open, f);
    }
}

fn request_number(open: &Open) -> u64 {
    open.request.as_deref().map_or(0, |r| lean::hash(r.as_bytes()).max(1))
}
