//! The one append-only stream of events of an endpoint, and the folds that read it.
//!
//! `event` says what an event is, `log` owns the stream, `fold` turns it into what the faces show:
//! generations, calls, tools, link. `sent`, `answers`, `exchange` and `task` are the parts of the fold that read what went out and
//! came in; `belongs` says whose an answer is; `settle`, `ends` and `refusal` hold the rules of outcomes, `strange` names what is not MCP, `waiting` says what a
//! pending call waits for. Nothing here does IO or decides what to send.

mod answers;
pub(crate) mod belongs;
pub mod bounded;
pub mod call;
mod deeper;
pub(crate) mod ends;
pub mod event;
pub(crate) mod exchange;
pub mod fold;
#[cfg(test)]
mod fold_tests;
pub mod generation;
#[cfg(test)]
mod hostile_tests;
pub mod launcher;
pub mod live;
pub mod log;
pub mod refusal;
pub mod says;
mod sent;
mod settle;
#[cfg(test)]
mod settle_tests;
mod strange;
mod task;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tools;
pub mod waiting;

pub(crate) use answers::MODERN;
pub use call::{AnswerStatus, Call, CallId, Outcome, Settled};
pub use event::{Event, Kind, LinkState, Note};
pub use fold::{Generation, Session};
pub use live::{Live, Progress, Task};
pub use log::Journal;
pub use text::Text;
pub use tools::{Hint, Tool, ToolList};
pub use waiting::{Waiting, starting, waiting};
