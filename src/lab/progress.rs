//! Which lessons a person has finished: one name a line, in the user's state folder (XDG). Forgetting is no error:
//! where nothing can be written, lessons still work.

use etcetera::BaseStrategy;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// `$XDG_STATE_HOME/redial/lessons`, by default in `~/.local/state`.
fn file() -> Option<PathBuf> {
    let dirs = etcetera::base_strategy::Xdg::new().ok()?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_dir()).join("redial").join("lessons"))
}

/// The names of finished lessons.
pub fn finished() -> BTreeSet<String> {
    let bytes = file().and_then(|f| crate::files::whole(&f, 64 << 10).ok()).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    text.lines().map(str::to_owned).filter(|l| !l.is_empty()).collect()
}

/// Adds one.
///
/// # Errors
/// The system's, when it can't be written.
pub fn finish(name: &str) -> std::io::Result<()> {
    let mut all = finished();
    if !all.insert(name.to_owned()) {
        return Ok(());
    }
    let Some(file) = file() else { return Ok(()) };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let text: String = all.iter().map(|n| format!("{n}\n")).collect();
    std::fs::write(file, text)
}
