//! Bytes to frames and back: JSON-RPC envelopes and ids, lines of stdio, server-sent events,
//! arguments mirrored into headers.
//! Pure: no IO, no policy, no clock.

pub mod broken;
pub mod coding;
pub mod frame;
pub mod id;
pub mod lines;
pub mod mirror;
pub mod sse;
