//! The environment as a source of configuration: where the user's files are, and what can be wrong with saying so. A
//! variable that silently does nothing is worse than none.

use super::ENVIRONMENT;
use crate::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The one variable that the command line reads by itself.
pub(super) const READ_ONLY: &str = "REDIAL_READ_ONLY";

/// Why the user's folder may be another one than meant: no path, or no home.
pub(super) fn places(set: &dyn Fn(&str) -> Option<OsString>) -> Option<Error> {
    let not_read = "so your config.toml could not be looked for";
    if let Some(folder) = set("XDG_CONFIG_HOME") {
        let is_path = Path::new(&folder).is_absolute();
        return (!is_path).then(|| {
            Error::usage(format!("XDG_CONFIG_HOME is {folder:?}, which is no absolute path"))
                .hint(not_read)
        });
    }
    let home = set("HOME")?;
    (!Path::new(&home).is_absolute() || !Path::new(&home).is_dir()).then(|| {
        Error::usage(format!("HOME is {home:?}, which is no folder"))
            .hint(format!("{not_read}: name a folder in HOME or XDG_CONFIG_HOME, or unset HOME"))
    })
}

/// A variable that is nearly one of ours was meant as it.
pub(super) fn misspelt(names: impl Iterator<Item = OsString>) -> Result<()> {
    let ours = || ENVIRONMENT.iter().map(|(name, _)| *name).chain([READ_ONLY]);
    for name in names.filter_map(|n| n.into_string().ok()) {
        if !name.to_ascii_uppercase().starts_with("REDIAL") || ours().any(|o| o == name) {
            continue;
        }
        let upper = name.to_ascii_uppercase();
        // Whoever names what is to be hidden, or stopped, believes that it is.
        if ["REDACT", "RECORD"].iter().any(|w| upper.contains(w)) {
            return Err(Error::usage(format!("there is no variable {name}")).hint(
                "what recordings hide is set in [record] of redial.toml, or by --redact-key, --redact-path and --redact-pattern",
            ));
        }
        if let Some(meant) = ours().find(|o| strsim::damerau_levenshtein(o, &upper) <= 2) {
            return Err(Error::usage(format!("there is no variable {name}"))
                .hint(format!("did you mean {meant}?")));
        }
    }
    Ok(())
}

/// The variable that stops every call but reading ones says yes or no: whoever meant the one must not get the other.
pub(super) fn read_only(value: Option<&OsStr>) -> Result<()> {
    const WORDS: [&str; 12] =
        ["1", "true", "yes", "on", "y", "t", "0", "false", "no", "off", "n", "f"];
    let Some(value) = value else { return Ok(()) };
    let said = text(READ_ONLY, value)?;
    match WORDS.contains(&said.to_ascii_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Error::usage(format!("{READ_ONLY} is {said:?}, neither true nor false"))
            .hint("1 stops every call that may do work, 0 stops none")),
    }
}

/// The text of a variable.
pub(super) fn text<'a>(name: &str, value: &'a OsStr) -> Result<&'a str> {
    value.to_str().ok_or_else(|| Error::usage(format!("{name} is {value:?}, which is no text")))
}
