//! Errors for people: what happened, what to do, and which exit status it ends with.
//!
//! Every fallible path that a person can meet ends in [`Error`]. Layers below may use their own
//! typed errors, but they convert here before they reach a face (`cli`, `tui`).

use std::fmt;

/// Exit statuses of the command line (design: "Exit status"). Stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// 0: good.
    Good = 0,
    /// 1: the check found something; the call was answered with an error or refused; `find` contradicts
    /// the ledger or knows nothing.
    Found = 1,
    /// 2: usage or configuration.
    Usage = 2,
    /// 3: the gate (or `--read-only`) stopped it; nothing was sent.
    Gate = 3,
    /// 4: outcome unknown or still in progress.
    Unknown = 4,
    /// 5: the endpoint never became ready, or `not_sent`.
    Endpoint = 5,
    /// 6: the ledger or file can't be read or isn't one.
    Ledger = 6,
}

/// An error with its remedy. `Display` gives `what` and, when there is one, the hint on a second line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The exit status this error ends a command with.
    pub exit: Exit,
    /// What happened and why, as one sentence. May hold foreign text: faces pass it through `text`.
    pub what: String,
    /// What to do about it, if there is something.
    pub hint: Option<String>,
}

impl Error {
    /// An error that ends with `exit`.
    pub fn new(exit: Exit, what: impl Into<String>) -> Error {
        Error { exit, what: what.into(), hint: None }
    }
    /// Exit 2.
    pub fn usage(what: impl Into<String>) -> Error {
        Error::new(Exit::Usage, what)
    }
    /// Exit 5.
    pub fn endpoint(what: impl Into<String>) -> Error {
        Error::new(Exit::Endpoint, what)
    }
    /// Exit 6.
    pub fn ledger(what: impl Into<String>) -> Error {
        Error::new(Exit::Ledger, what)
    }
    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if let Some(h) = &self.hint {
            write!(f, "\n  {h}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
