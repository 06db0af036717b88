//! The server's ledger, read without a trace. Nothing here ever writes to it or judges it.

pub mod hash;
pub mod row;

pub use row::{Effect, Row};
