//! Writing a recording: the format, what is left out of it (secrets), and the taps that sit in the pipe.
//!
//! `entry` is one line of the format (FORMAT.md), `summary` what a line says of its frame for readers that
//! don't parse it, `redact` what is replaced on write, `sink` the writer that never holds up the traffic,
//! `recorder` numbers and times the events, `place` says which file, `stdio` and `http` are the taps.
//! Nothing here judges: a tap passes on what comes, whatever it is.

pub mod entry;
pub mod http;
pub mod limit;
pub mod place;
pub mod recorder;
pub mod redact;
pub mod sink;
pub mod split;
pub mod stdio;
pub mod summary;

pub use entry::{Entry, Header, Side, What, Wire};
pub use recorder::Recorder;
pub use redact::{Rules, WHAT_IS_HIDDEN};
