//! What can be done with a recording against something live: `script` is the conversation in it, `plan` what a
//! replay sends of it and what it leaves out and why, `diff` how an answer differs from the recorded one, `mock`
//! the recording as a server. Nothing here opens a connection.

pub mod diff;
pub mod mock;
pub mod plan;
pub mod script;
