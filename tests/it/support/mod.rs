//! What the tests share.

pub mod night;
pub mod svg;
