//! What a person agrees to: the facts that a question shows, held beside the same facts as they are right before the
//! call is sent. Any difference voids the answer. Pure.
//!
//! Nothing in here changes by the clock alone: a claim grows old, and the answer to a question about it still holds.

use super::facts::{Facts, HashCheck, LedgerView, Pairing};
use super::gate::{Ask, Decision};
use super::words::{State, Strength};
use crate::journal::fold::ServerInfo;
use crate::journal::{CallId, Hint, Outcome, Tool};
use crate::json::python::python_dumps;
use crate::json::raw::quote;
use crate::ledger::Row;
use crate::ledger::hash::sha256_hex;
use crate::time::Time;

/// Hex digits of a `row_version`.
const VERSION: usize = 16;

/// Everything a question shows, as it was when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// The tool's name.
    pub tool: String,
    /// The exact arguments.
    pub args: String,
    /// What is asked; `None` where it is refused.
    pub ask: Option<Ask>,
    /// The request's part of the ledger.
    pub row: RowTerms,
    /// Effects of all requests.
    pub total: Total,
    /// The request's calls as far as they are known, and what became of them.
    pub calls: Vec<(CallId, Option<Outcome>)>,
    /// Other requests with the same arguments, and whether they are done.
    pub twins: Vec<(String, bool)>,
    /// The arguments against the row's hash.
    pub hash: HashCheck,
    /// Whether the server writes this ledger.
    pub pairing: Tie,
    /// The status in the server's own last word on the request.
    pub says: Option<String>,
    /// The tool as the server lists it; `None` where it doesn't.
    pub definition: Option<Definition>,
    /// The server's name and version.
    pub server: Option<(String, String)>,
    /// The connection: the generation it was asked on.
    pub connection: u32,
}

/// The ledger's part of [`Terms`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RowTerms {
    /// No ledger is attached.
    #[default]
    NoLedger,
    /// It can't be read.
    Unreadable,
    /// It was read.
    Read {
        /// See [`row_version`].
        version: String,
        /// The stored status; `None` without a row.
        status: Option<String>,
        /// The owner of what isn't finished was seen to end.
        ended: bool,
        /// Who claimed it.
        owner: Option<String>,
        /// When.
        claimed_at: Option<Time>,
        /// How many effects it has.
        effects: u64,
    },
}

/// Effects of all requests, as a question holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Total {
    /// Not known.
    #[default]
    Unknown,
    /// So many.
    Known(u64),
    /// Others go on writing, and that was said: no number is held to.
    Moving,
}

/// Whether server and ledger belong together, as far as the gate tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tie {
    /// Nothing shows it.
    #[default]
    Unproven,
    /// They do.
    Tied,
    /// They don't.
    Contradicted,
}

/// A tool's definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Definition {
    /// readOnly, destructive, idempotent, openWorld; listed twice differently; the list is whole and up to date.
    pub hints: ([Hint; 4], bool, bool, bool),
    /// All that it says, as one hash.
    pub digest: String,
}

/// One kind of fact in a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// The request's state.
    State,
    /// Its effects.
    Effects,
    /// Effects in all.
    Total,
    /// Its owner or claim.
    Owner,
    /// Something else in its row.
    Row,
    /// Its calls.
    Calls,
    /// Other requests with the same arguments.
    Twins,
    /// The hash check.
    Hash,
    /// The pairing.
    Pairing,
    /// The server's own word on it.
    LookUp,
    /// The tool's hints.
    Hints,
    /// The rest of the tool's definition.
    Tool,
    /// The server's name or version.
    Server,
    /// The connection.
    Connection,
    /// The call itself.
    Call,
    /// What is asked.
    Question,
}

/// A fact that is another one by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub fact: Fact,
    /// In words, with what it was. May hold foreign text.
    pub words: String,
}

/// What a question is about, to make [`Terms`] of.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The exact arguments.
    pub args: &'a str,
    /// Every witness's word on the request.
    pub facts: &'a Facts,
    /// Effects of all requests.
    pub total: Option<u64>,
    /// The gate's decision.
    pub decision: &'a Decision,
    /// The tool as listed.
    pub tool: Option<&'a Tool>,
    /// The list is whole, of this connection, and not called changed since.
    pub list_complete: bool,
    /// The server, as it names itself.
    pub server: Option<&'a ServerInfo>,
    /// The generation.
    pub connection: u32,
}

/// Names the ledger's part of a request as it is: another row, status, owner, claim, hash, result or effect gives
/// another version, and so does another of several rows with the id; time alone never does. `None` where the ledger could not be read. Stable across runs.
pub fn row_version(facts: &Facts) -> Option<String> {
    matches!(facts.ledger, LedgerView::Read(_))
        .then(|| version_of(&facts.request_id, facts.row.as_ref(), facts.loose_effects))
}

/// The same from a row alone.
pub fn version_of(request_id: &str, row: Option<&Row>, loose: u64) -> String {
    let optional = |t: Option<&str>| t.map_or_else(|| "null".into(), quote);
    let mut parts = vec![quote(request_id)];
    match row {
        None => parts.push(format!("no row, {loose}")),
        Some(r) => {
            parts.push(quote(&r.status));
            for text in [&r.args_hash, &r.result, &r.owner, &r.tool] {
                parts.push(optional(text.as_deref()));
            }
            parts.push(r.claimed_at.map_or_else(|| "null".into(), |t| t.0.to_string()));
            let mut effects: Vec<String> = r
                .effects
                .iter()
                .map(|e| format!("{}:{}", quote(&e.key), quote(&e.label)))
                .collect();
            effects.sort_unstable();
            parts.extend(effects);
            // Rows with one id may be alike in all of that: what tells this one apart is a part of it.
            if let Some(same) = &r.same {
                parts.push(format!("one of {} {}", same.rows, same.unassigned));
                parts.extend(same.tells.iter().map(|(c, v)| format!("{}:{}", quote(c), quote(v))));
            }
        }
    }
    let mut version = sha256_hex(&parts.join(","));
    version.truncate(VERSION);
    version
}

impl Terms {
    /// As they are now.
    pub fn new(s: &Shown<'_>) -> Terms {
        let f = s.facts;
        let row = match (&f.ledger, row_version(f)) {
            (LedgerView::None, _) => RowTerms::NoLedger,
            (LedgerView::Unreadable(_), _) | (_, None) => RowTerms::Unreadable,
            (LedgerView::Read(_), Some(version)) => {
                let row = f.row.as_ref();
                RowTerms::Read {
                    version,
                    status: row.map(|r| r.status.clone()),
                    ended: ended(f),
                    owner: row.and_then(|r| r.owner.clone()),
                    claimed_at: row.and_then(|r| r.claimed_at),
                    effects: row.map_or(f.loose_effects, |r| r.effects.len() as u64),
                }
            }
        };
        let mut twins: Vec<_> =
            f.twins.iter().map(|t| (t.request_id.clone(), t.state == State::Done)).collect();
        twins.sort_unstable();
        let calls = f.calls.iter().filter(|c| !c.reads_only);
        Terms {
            tool: s.name.to_owned(),
            args: s.args.to_owned(),
            ask: s.decision.refused.is_none().then_some(s.decision.ask),
            row,
            total: s.total.map_or(Total::Unknown, Total::Known),
            calls: calls.map(|c| (c.id, c.outcome())).collect(),
            twins,
            hash: f.hash,
            pairing: match f.pairing {
                Pairing::Unproven => Tie::Unproven,
                Pairing::Consistent | Pairing::Proven => Tie::Tied,
                Pairing::Contradicted => Tie::Contradicted,
            },
            says: f.server_says.as_ref().map(|w| w.status.clone()),
            definition: s.tool.map(|t| Definition::of(t, s.list_complete)),
            server: s.server.map(|s| (s.name.clone(), s.version.clone())),
            connection: s.connection,
        }
    }

    /// The version of the request's row, where the ledger was read.
    pub fn row_version(&self) -> Option<&str> {
        match &self.row {
            RowTerms::Read { version, .. } => Some(version),
            RowTerms::NoLedger | RowTerms::Unreadable => None,
        }
    }

    /// What is another thing by now, worst first. `since`: when the row was seen to become what it is.
    pub fn changes(&self, now: &Terms, since: Time) -> Vec<Change> {
        let mut out = Vec::new();
        let mut add = |fact, words: String| out.push(Change { fact, words });
        self.row_changes(now, since, &mut add);
        if let (Total::Known(was), Total::Known(is)) = (self.total, now.total)
            && was != is
        {
            add(Fact::Total, format!("effects in all: {was} → {is}"));
        }
        if self.calls != now.calls {
            add(Fact::Calls, calls(&self.calls, &now.calls));
        }
        if self.twins != now.twins {
            let names: Vec<&str> = now.twins.iter().map(|(id, _)| id.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            add(Fact::Twins, format!("other requests with the same arguments: now {names}"));
        }
        if self.hash != now.hash {
            add(
                Fact::Hash,
                format!("the arguments' hash: {} → {}", hash(self.hash), hash(now.hash)),
            );
        }
        if self.pairing != now.pairing {
            let (was, is) = (tie(self.pairing), tie(now.pairing));
            add(Fact::Pairing, format!("server and ledger: {was} → {is}"));
        }
        if self.says != now.says {
            let word =
                |s: &Option<String>| s.clone().unwrap_or_else(|| "nothing that holds".into());
            let (was, is) = (word(&self.says), word(&now.says));
            add(Fact::LookUp, format!("the server says: {was} → {is}"));
        }
        self.server_changes(now, &mut add);
        if (&self.tool, &self.args) != (&now.tool, &now.args) {
            add(Fact::Call, "the call is another one".into());
        }
        if self.ask != now.ask {
            let word = |a: Option<Ask>| a.map_or("refused", Ask::word);
            add(Fact::Question, format!("the gate: {} → {}", word(self.ask), word(now.ask)));
        }
        out
    }

    /// The terms of a question that is asked anew after `before`: where only others go on writing, the count of all
    /// effects is said to move, and the next answer is not held to it.
    pub fn after(mut self, before: &Terms) -> Terms {
        let moved =
            |was: u64, is: u64| is.abs_diff(was) != before.effects().abs_diff(self.effects());
        self.total = match (before.total, self.total) {
            (Total::Moving, _) => Total::Moving,
            (Total::Known(was), Total::Known(is)) if moved(was, is) => Total::Moving,
            (_, now) => now,
        };
        self
    }

    fn effects(&self) -> u64 {
        match &self.row {
            RowTerms::Read { effects, .. } => *effects,
            RowTerms::NoLedger | RowTerms::Unreadable => 0,
        }
    }

    fn row_changes(&self, now: &Terms, since: Time, add: &mut impl FnMut(Fact, String)) {
        let (
            RowTerms::Read { version, status, ended, owner, claimed_at, effects },
            RowTerms::Read {
                version: version_now,
                status: status_now,
                ended: ended_now,
                owner: owner_now,
                claimed_at: claimed_now,
                effects: effects_now,
            },
        ) = (&self.row, &now.row)
        else {
            if self.row != now.row {
                let words = match now.row {
                    RowTerms::Read { .. } => "the ledger can be read now",
                    RowTerms::Unreadable | RowTerms::NoLedger => {
                        "the ledger can't be read any more"
                    }
                };
                add(Fact::State, words.into());
            }
            return;
        };
        let clock = since.clock();
        let mut told = Vec::new();
        if status != status_now {
            let word = |s: &Option<String>| s.clone().unwrap_or_else(|| "no row".into());
            let was = word(status);
            told.push((Fact::State, format!("{} since {clock} (was {was})", word(status_now))));
        } else if ended != ended_now {
            let words = match ended_now {
                true => "its owner was seen to end",
                false => "that its owner was seen to end no longer holds",
            };
            told.push((Fact::State, words.to_owned()));
        }
        if effects != effects_now {
            let words = format!("effects of this request: {effects} → {effects_now}");
            told.push((Fact::Effects, words));
        }
        if owner != owner_now {
            let name = |o: &Option<String>| o.clone().unwrap_or_else(|| "nobody".into());
            told.push((Fact::Owner, format!("owner: {} → {}", name(owner), name(owner_now))));
        } else if claimed_at != claimed_now {
            told.push((Fact::Owner, format!("claimed again, seen at {clock}")));
        }
        let silent = told.is_empty();
        told.into_iter().for_each(|(fact, words)| add(fact, words));
        if version != version_now && silent {
            add(
                Fact::Row,
                format!(
                    "something in its row is another since {clock} (result, hash, or which effects)"
                ),
            );
        }
    }

    fn server_changes(&self, now: &Terms, add: &mut impl FnMut(Fact, String)) {
        match (&self.definition, &now.definition) {
            (was, is) if was == is => {}
            (Some(was), Some(is)) => {
                if was.hints != is.hints {
                    add(Fact::Hints, format!("hints: {} → {}", was.hint_words(), is.hint_words()));
                }
                if was.digest != is.digest {
                    add(Fact::Tool, format!("the server defines {} otherwise now", now.tool));
                }
            }
            (Some(_), None) => add(Fact::Tool, format!("the server no longer lists {}", now.tool)),
            (None, _) => add(Fact::Tool, format!("the server lists {} now", now.tool)),
        }
        if self.server != now.server {
            let name = |s: &Option<(String, String)>| {
                s.as_ref().map_or_else(|| "unnamed".into(), |(n, v)| format!("{n} {v}"))
            };
            add(
                Fact::Server,
                format!("the server: {} → {}", name(&self.server), name(&now.server)),
            );
        }
        if self.connection != now.connection {
            let words = "the connection is a new one: the server may have been started anew";
            add(Fact::Connection, words.into());
        }
    }
}

/// Whether the owner of an unfinished row was seen to end. Any weaker strength may come with the clock and is none of
/// it; a word of the server is held by itself.
fn ended(f: &Facts) -> bool {
    f.judged.as_ref().is_some_and(|j| {
        let unfinished = matches!(j.state, State::Running | State::Abandoned);
        unfinished && j.strength == Strength::Observed
    })
}

impl Definition {
    fn of(tool: &Tool, list_complete: bool) -> Definition {
        // Members come in any order, and a server may list them in another one each time.
        let same = |raw: Option<&str>| {
            raw.map(|r| python_dumps(r, true, &[]).unwrap_or_else(|_| r.to_owned()))
        };
        let said = [
            Some(tool.description.to_string()),
            same(tool.annotations.as_deref()),
            same(tool.input_schema.as_deref()),
            Some(format!("{} {}", tool.only_as_task, tool.rest)),
        ];
        let said: Vec<String> =
            said.iter().map(|s| s.as_deref().map_or_else(|| "null".into(), quote)).collect();
        Definition {
            hints: (
                [tool.read_only, tool.destructive, tool.idempotent, tool.open_world],
                tool.listed_twice,
                list_complete,
                tool.not_kept.is_some(),
            ),
            digest: sha256_hex(&said.join(",")),
        }
    }

    /// The hints as sent, in words.
    pub fn hint_words(&self) -> String {
        let names = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
        let (all, twice, complete, let_go) = &self.hints;
        if *let_go {
            return "not kept".into();
        }
        let mut words: Vec<String> = names
            .iter()
            .zip(all)
            .filter_map(|(name, hint)| match hint {
                Hint::Absent => None,
                Hint::True => Some(format!("{name} true")),
                Hint::False => Some(format!("{name} false")),
                Hint::WrongType => Some(format!("{name} no boolean")),
            })
            .collect();
        if *twice {
            words.push("listed twice, differently".into());
        }
        if !complete {
            words.push("the list is not complete".into());
        }
        if words.is_empty() { "none".into() } else { words.join(", ") }
    }
}

fn hash(h: HashCheck) -> &'static str {
    match h {
        HashCheck::NotChecked => "can't be checked",
        HashCheck::Equal => "equal",
        HashCheck::DiffersProven => "differs, proven",
        HashCheck::DiffersUnproven => "differs, by an unproven recipe",
    }
}

fn tie(t: Tie) -> &'static str {
    match t {
        Tie::Unproven => "not shown to belong together",
        Tie::Tied => "belong together",
        Tie::Contradicted => "contradict each other",
    }
}

/// The newest call that differs.
fn calls(was: &[(CallId, Option<Outcome>)], is: &[(CallId, Option<Outcome>)]) -> String {
    let word = |o: Option<Outcome>| o.map_or("pending", Outcome::word);
    let differs = is.iter().rev().find(|c| !was.contains(c));
    match differs {
        Some((id, o)) => match was.iter().find(|(w, _)| w == id) {
            Some((_, before)) => format!("an earlier call of it: {} → {}", word(*before), word(*o)),
            None => format!("another call of it was made meanwhile: {}", word(*o)),
        },
        None => "an earlier call of it is no longer known".into(),
    }
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
