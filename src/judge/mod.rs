//! Pure judgement: facts in, words out. No IO, no clock of its own (`now` is handed in).
//!
//! `state` judges a ledger row, `verdict` concludes from all witnesses, `gate` says what must be asked
//! before a call is repeated, `verify` counts and checks invariants. `words` holds their vocabulary.

pub mod facts;
pub mod words;

pub use facts::{Facts, HashCheck, LedgerView, Pairing, Twin};
pub use words::{Evidence, Finding, Judged, State, Strength, Verdict};
