//! The audit of a trace: which tools make state and hand it out as handles, which use it, and what becomes of the
//! handles when the server, the session or the caller is another one (MCP 2026-07-28 takes the session away; the
//! article of seed 004: state lives on as handles in results and arguments).
//!
//! `read` turns lines of any trace into facts, `fold` takes them in one pass and bounded memory, `contract` is what a
//! person agreed, `infer` what a trace suggests, `finding` what comes out, `page` the one page about it, `fresh` the
//! judging of a run in which each call had a session of its own. Pure: files and servers are the faces' affair.

mod answers;
mod bounds;
mod calls;
pub mod content;
pub mod contract;
pub mod fact;
pub mod finding;
pub mod fold;
mod found;
pub mod fresh;
pub mod handle;
mod http;
pub mod infer;
pub mod items;
pub mod join;
mod judge;
#[cfg(test)]
mod kinds_tests;
pub mod lean;
mod lost;
mod met;
pub mod names;
pub mod page;
#[cfg(test)]
mod parity_tests;
pub mod read;
#[cfg(test)]
mod tests;

pub use bounds::Forgot;
pub use contract::Contracts;
pub use finding::{Finding, Findings, Kind, Severity};
pub use fold::{Audit, Options};
pub use read::Reader;
