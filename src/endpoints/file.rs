//! The file itself: its text, and the servers in it, also in the form that other programs give it.

use super::FILE;
use crate::error::{Error, Result};
use crate::json::raw;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

pub(super) const SHAPE: &str =
    r#"it looks like {"mcpServers":{"NAME":{"command":"…","args":["…"]}}}"#;

/// Names and raw entries.
pub(super) type Servers = Vec<(String, String)>;

/// Its text; `None`: there is none.
pub(super) fn text(file: &Path) -> Result<Option<String>> {
    let bad = |what: String| Error::usage(format!("{} {what}", file.display()));
    match file.metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(bad(format!("can't be read: {e}"))),
        // A pipe would be waited for, and a device may have no end.
        Ok(m) if !m.is_file() => return Err(bad("is no ordinary file".into())),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file);
    let read = read.and_then(|f| f.take(LONGEST + 1).read_to_end(&mut bytes));
    read.map_err(|e| bad(format!("can't be read: {e}")))?;
    if bytes.len() as u64 > LONGEST {
        return Err(bad(format!("is too large for a {FILE}: over {} MiB", LONGEST >> 20)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| bad(format!("is not UTF-8 (at byte {})", e.utf8_error().valid_up_to())))?;
    Ok(Some(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned)))
}

/// What it names: `servers`, as Visual Studio and VS Code write it, and `mcpServers`, which comes last and so wins.
/// `Err`, in words: it is JSON, and of another program's form.
pub(super) fn servers(file: &Path, text: &str) -> Result<std::result::Result<Servers, String>> {
    let bad = |what: String| Error::usage(format!("{} {what}", file.display()));
    if let Err(e) = serde_json::from_str::<&serde_json::value::RawValue>(text) {
        return Err(bad(format!("is not JSON: {e}")));
    }
    let members = |key: &str| match raw::get(text, key) {
        None => Ok(None),
        Some(servers) => raw::members(servers)
            .map(|all| Some(all.into_iter().map(|(n, raw)| (n.into_owned(), raw.to_owned()))))
            .ok_or_else(|| bad(format!("has {key} that are no object")).hint(SHAPE)),
    };
    let ours = members("mcpServers")?;
    let theirs =
        if ours.is_some() { members("servers").ok().flatten() } else { members("servers")? };
    Ok(match (ours, theirs) {
        (None, None) => Err(format!(
            "{} has no mcpServers: it is another program's, or of its form",
            file.display()
        )),
        (ours, theirs) => {
            Ok(theirs.into_iter().flatten().chain(ours.into_iter().flatten()).collect())
        }
    })
}
