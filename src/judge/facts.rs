//! What judgement is made from: every witness's word on one request, gathered by `model`.

use super::observed::{GoesOn, Observed};
use super::words::{Judged, State};
use crate::journal::Call;
use crate::ledger::Row;
use crate::time::Time;

/// Whether the endpoint writes the ledger that is open (design: "Is it the same ledger?").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pairing {
    /// Nobody has looked anything up yet.
    #[default]
    Unproven,
    /// `find_request` of a known row answered as the ledger says.
    Consistent,
    /// A call of ours changed this file.
    Proven,
    /// `find_request` denied a known row.
    Contradicted,
}

impl Pairing {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Pairing::Unproven => "unproven",
            Pairing::Consistent => "consistent",
            Pairing::Proven => "proven",
            Pairing::Contradicted => "contradicted",
        }
    }
}

/// The arguments' hash against the row's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HashCheck {
    /// No arguments, no stored hash, or no ledger.
    #[default]
    NotChecked,
    /// Equal by a recipe (all arguments, or the declared properties only).
    Equal,
    /// Different, and the recipe is proven for this ledger (it reproduced another row's hash).
    DiffersProven,
    /// Different, by a recipe nothing has proven yet.
    DiffersUnproven,
}

/// What the ledger could be asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum LedgerView {
    /// No ledger is attached.
    #[default]
    None,
    /// One is attached and can't be read now (locked, missing, damaged): it says nothing about this request.
    Unreadable(String),
    /// Read at this time.
    Read(Time),
}

/// Another request with the same arguments hash.
#[derive(Debug, Clone, PartialEq)]
pub struct Twin {
    /// Its id.
    pub request_id: String,
    /// Its judged state.
    pub state: State,
}

/// What the server's own look-up said of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerWord {
    /// When it was said.
    pub at: Time,
    /// Its status word, as sent.
    pub status: String,
    /// When redial itself started the process that said so; `None` for a server it merely talks to.
    /// Such a process has never seen the rows that were claimed before its start: its "not mine" is worth
    /// nothing.
    pub started_by_us: Option<Time>,
}

/// Every witness's word on one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The request.
    pub request_id: String,
    /// What the ledger could be asked.
    pub ledger: LedgerView,
    /// Its row, if there is one, effects included.
    pub row: Option<Row>,
    /// The row's judged state (`None` without a row).
    pub judged: Option<Judged>,
    /// Effects that carry this request_id though it has no row.
    pub loose_effects: u64,
    /// Those are in different tables, one in each: no repeat.
    pub loose_apart: bool,
    /// Those are older than the oldest effect that still has a request: its row may have been swept.
    pub purged: bool,
    /// The ledger has an effects table, so `done` without an effect means something.
    pub has_effects_table: bool,
    /// Other requests with the same hash.
    pub twins: Vec<Twin>,
    /// Its calls on the wire, oldest first, without look-ups: those change nothing.
    pub calls: Vec<Call>,
    /// The generations of those calls whose end was seen (process exit).
    pub ended_generations: Vec<Observed>,
    /// The generations of those calls that ended and left somebody behind.
    pub left_behind: Vec<GoesOn>,
    /// The owner of its row ended and left somebody behind.
    pub owner_goes_on: Option<GoesOn>,
    /// A row for it was seen earlier and is gone now (time it was first missed).
    pub row_vanished_at: Option<Time>,
    /// That row was done when it was last seen: swept, and not taken back by an error.
    pub was_done: bool,
    /// The arguments at hand against the row's hash.
    pub hash: HashCheck,
    /// Is it the same ledger.
    pub pairing: Pairing,
    /// What the server's own look-up last said.
    pub server_says: Option<ServerWord>,
}

impl Facts {
    /// What the ledger has not says something of the request: this server was seen to write it.
    pub fn ledger_is_the_servers(&self) -> bool {
        matches!(self.pairing, Pairing::Consistent | Pairing::Proven)
    }

    /// The ledger was read, so a missing row is one that was looked for.
    pub fn ledger_was_read(&self) -> bool {
        matches!(self.ledger, LedgerView::Read(_))
    }
}
