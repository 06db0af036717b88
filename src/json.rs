//! JSON of other programs, read without ever becoming a `serde_json::Value` (depth limit, rewritten
//! numbers, magic keys): raw members here, a token scanner in `scan`, Python's spelling in `python`,
//! leaves with their paths in `flat`, ids of requests in `key`.

pub mod flat;
pub mod key;
pub mod loose;
pub mod python;
pub mod raw;
pub mod scan;
