//! The one append-only stream of events of an endpoint, and the folds that read it.
//!
//! `event` says what an event is, `log` owns the stream, `fold` turns it into what the faces show:
//! generations, calls, tools, link. Nothing here does IO or decides what to send.

pub mod call;
pub mod event;
pub mod fold;
pub mod log;
pub mod settle;
pub mod tools;

pub use call::{AnswerStatus, Call, CallId, Outcome, Settled};
pub use event::{Event, Kind, LinkState, Note};
pub use fold::{Generation, Session};
pub use log::Journal;
pub use tools::{Hint, Tool, ToolList};
