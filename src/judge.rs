//! Pure judgement: facts in, words out. No IO, no clock of its own (`now` is handed in).
//!
//! `state` judges a ledger row, `observed` says whose owner was seen to end, `verdict` concludes from all
//! witnesses (with `wire`, `evidence` and `next`), `gate` says what must be asked before a call is
//! repeated, `agreement` what an answer to that is bound to, `class` sorts tools, `verify` counts and checks invariants. `words` holds their vocabulary.

pub mod agreement;
pub mod class;
mod evidence;
pub mod facts;
pub mod gate;
mod gate_row;
pub mod next;
pub mod observed;
pub mod owners;
pub mod state;
#[cfg(test)]
pub(crate) mod testing;
mod totals;
pub mod verdict;
pub mod verify;
mod wire;
pub mod words;

pub use facts::{Facts, HashCheck, LedgerView, Pairing, ServerWord, Twin};
pub use gate::{
    Ask, Decision, Earlier, GateFacts, HintOverride, Refusal, ToolGate, gate, tool_gate,
};
pub use next::{Act, NextStep};
pub use observed::{GoesOn, Observed, OwnerEnd, Tie};
pub use owners::{OwnerClaims, OwnerView};
pub use state::{Owners, Rules, judge_row};
pub use verdict::conclude;
pub use words::{Evidence, Finding, Judged, State, Strength, Verdict};
