//! The server's ledger, read without a trace. Nothing here ever writes to it or judges it.
//!
//! `thread` owns the handle and the one thread that opens the file; `open` decides how, with `header` and
//! `copy`; `schema` finds the tables; `reader`, `effects`, `survey` and `checks` ask; `repeats` finds equal values, `join` equal ids;
//! `salvage` reads what damage has left; `stamp` sees changes.

mod bare;
pub mod checks;
mod copy;
mod effects;
pub mod hash;
mod header;
mod join;
mod open;
pub mod pass;
pub mod reader;
mod repeats;
pub mod row;
mod salvage;
mod same;
pub mod schema;
pub mod stamp;
pub mod survey;
mod thread;
pub mod trouble;
mod value;

pub use checks::{HashGroup, Labels, Loose, LooseScan, Named};
pub use copy::remove_private_copies;
pub use open::Mode;
pub use reader::{How, Reader};
pub use repeats::PLACES;
pub use row::{Effect, Row, is_repeated};
pub use same::{Same, Tells, told};
pub use stamp::Stamp;
pub use survey::{Counts, DONE, Moment, OwnerSpan, Survey};
pub use thread::Ledger;
pub use trouble::{LedgerError, Trouble};
