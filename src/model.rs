//! What both faces show, joined from ledger, wire and judgement. Nothing here prints, draws, reads a file
//! or asks a clock.
//!
//! `facts` gathers the witnesses of a request, `board` makes lines and counts of them, `history` keeps
//! what was seen happening to rows, `pairing` folds whether server and ledger belong together, `lookup`
//! reads the server's own answers, `arguments` finds what a repeat has to send.

pub mod arguments;
pub mod board;
pub mod facts;
pub mod hash;
pub mod history;
pub mod lookup;
pub mod pairing;
pub mod transcript;

pub use board::{Counts, Line, UNREADABLE};
pub use facts::{Context, LedgerFacts};
pub use history::Histories;
pub use lookup::LookUp;
pub use pairing::Paired;
