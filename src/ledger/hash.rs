//! The arguments hash, by recipe: what the ledger holds to tell a repeat from another request.
//!
//! Owns the recipes only; whether one is proven for a ledger is judged elsewhere.

use crate::json::python::{DumpsError, python_dumps_where};
use crate::json::raw;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The member that names the request and is no part of the hash.
pub use crate::json::key::REQUEST_ID;

/// How a server makes the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Recipe {
    /// Lower-case hex SHA-256 of Python's `json.dumps(arguments without request_id, sort_keys=True,
    /// ensure_ascii=False)` in UTF-8.
    #[default]
    Python,
}

impl Recipe {
    /// Every recipe.
    pub const ALL: &'static [Recipe] = &[Recipe::Python];

    /// Its stable name in the configuration and in output.
    pub fn name(self) -> &'static str {
        match self {
            Recipe::Python => "python",
        }
    }

    /// The text that is hashed. `keep` says which other top-level members belong to it.
    fn text(self, arguments: &str, keep: impl Fn(&[u8]) -> bool) -> Result<String, HashError> {
        if !raw::is_object(arguments) {
            return Err(HashError::NotAnObject);
        }
        match self {
            Recipe::Python => Ok(python_dumps_where(arguments, true, |key| {
                key != REQUEST_ID.as_bytes() && keep(key)
            })?),
        }
    }

    /// The hash of all `arguments` (JSON text of an object) but the request_id.
    pub fn hash(self, arguments: &str) -> Result<String, HashError> {
        Ok(sha256_hex(&self.text(arguments, |_| true)?))
    }

    /// The hash of those `arguments` whose names are in `properties`: servers drop what their schema
    /// does not declare before they hash.
    pub fn hash_declared(
        self,
        arguments: &str,
        properties: &[String],
    ) -> Result<String, HashError> {
        let declared = |key: &[u8]| properties.iter().any(|p| p.as_bytes() == key);
        Ok(sha256_hex(&self.text(arguments, declared)?))
    }
}

/// Why arguments have no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// `tools/call` arguments are an object, always.
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    /// See [`DumpsError`].
    #[error(transparent)]
    Dumps(#[from] DumpsError),
}

/// [`Recipe::hash`] by the default recipe.
pub fn args_hash(arguments: &str) -> Result<String, HashError> {
    Recipe::default().hash(arguments)
}

/// SHA-256 of a text, in lower-case hex.
pub(crate) fn sha256_hex(text: &str) -> String {
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::python::python_dumps;

    /// Made by CPython: arguments, the text it hashed, the hash.
    const VECTORS: &str = include_str!("../../tests/fixtures/vectors/args_hash_python.jsonl");

    #[test]
    fn every_vector_of_cpython_is_reproduced() {
        let mut seen = 0;
        for line in VECTORS.lines() {
            let arguments = raw::get_str(line, "arguments_json").unwrap();
            let text = raw::get_str(line, "hashed_text").unwrap();
            let hash = raw::get_str(line, "sha256").unwrap();
            assert_eq!(python_dumps(&arguments, true, &[REQUEST_ID]), Ok(text), "{arguments}");
            assert_eq!(args_hash(&arguments), Ok(hash), "{arguments}");
            seen += 1;
        }
        assert_eq!(seen, 70);
    }

    #[test]
    fn undeclared_arguments_can_be_left_out() {
        let declared = ["title".to_owned(), "body".to_owned(), "request_id".to_owned()];
        let sent = r#"{"request_id":"r","title":"a","body":"","priority":3}"#;
        let kept = args_hash(r#"{"title":"a","body":""}"#).unwrap();
        assert_eq!(Recipe::default().hash_declared(sent, &declared), Ok(kept.clone()));
        assert_ne!(args_hash(sent), Ok(kept));
    }

    #[test]
    fn arguments_must_be_an_object() {
        assert_eq!(args_hash("[1]"), Err(HashError::NotAnObject));
        assert_eq!(args_hash(""), Err(HashError::NotAnObject));
        assert!(matches!(args_hash("{"), Err(HashError::Dumps(_))));
    }
}
