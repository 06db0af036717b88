//! What is remembered between runs: theme, sort order, pane sizes, the filter of each ledger. A file in the user's state
//! folder; when it can't be read or written nothing is remembered and nothing is said, since nothing is lost.

use super::app::App;
use super::layout::{SHARE, Shares};
use super::list::Sort;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Ledgers whose filter is remembered, newest last.
const LEDGERS: usize = 30;
/// The longest file that is read, in bytes.
const LONGEST: u64 = 256 << 10;

/// See the module's head.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub theme: Option<String>,
    pub sort: Option<String>,
    pub turned: bool,
    pub upper: Option<u16>,
    pub first: Option<u16>,
    pub left: Option<u16>,
    pub calls: Option<u16>,
    pub filters: Vec<Filter>,
}

/// A ledger's filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    pub ledger: String,
    pub filter: String,
}

impl Memory {
    /// What the file holds; nothing when it can't be read.
    pub fn load(file: &Path) -> Memory {
        let bytes = crate::files::whole(file, LONGEST).unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_default();
        toml::from_str(&text).unwrap_or_default()
    }

    /// Writes it whole or not at all.
    pub fn save(&self, file: &Path) {
        let write = || -> std::io::Result<()> {
            let folder = file.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder)?;
            let text = toml::to_string(self).map_err(std::io::Error::other)?;
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut new, text.as_bytes())?;
            new.persist(file).map_err(|e| e.error)?;
            Ok(())
        };
        // A full or read-only disk must not get between a person and the shell.
        write().ok();
    }

    /// Gives it to the screen. `theme`: nothing else says which theme; `ledger`: whose filter.
    pub fn give(&self, app: &mut App, theme: bool, ledger: Option<&str>) {
        if let Some(name) = self.theme.as_ref().filter(|_| theme) {
            // A theme that is gone is no reason to stop.
            app.themes.choose(name).ok();
        }
        if let Some(sort) = self.sort.as_deref().and_then(Sort::of) {
            app.requests.set_sort(sort, self.turned);
        }
        let within = |s: Option<u16>| s.map(|p| p.clamp(SHARE.0, SHARE.1));
        app.shares = Shares {
            zoom: false,
            verify: false,
            upper: within(self.upper),
            first: within(self.first),
            left: within(self.left),
            calls: within(self.calls),
        };
        let filter = self.filters.iter().find(|f| Some(f.ledger.as_str()) == ledger);
        if let Some(f) = filter {
            app.requests.begin_with(&f.filter);
        }
    }

    /// Takes from the screen what is worth remembering; what it knows of other ledgers stays.
    pub fn take(&mut self, app: &App, ledger: Option<&str>) {
        let (sort, turned) = app.requests.sorted();
        let asked = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        if !asked {
            self.theme = Some(app.themes.chosen().1.to_owned());
        }
        (self.sort, self.turned) = (Some(sort.word().to_owned()), turned);
        (self.upper, self.first) = (app.shares.upper, app.shares.first);
        (self.left, self.calls) = (app.shares.left, app.shares.calls);
        let Some(ledger) = ledger else { return };
        self.filters.retain(|f| f.ledger != ledger);
        if !app.requests.filter.is_empty() {
            let filter = app.requests.filter.clone();
            self.filters.push(Filter { ledger: ledger.to_owned(), filter });
        }
        let over = self.filters.len().saturating_sub(LEDGERS);
        self.filters.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::super::app::Start;
    use super::super::theme::Themes;
    use super::*;
    use crate::time::Time;

    fn app() -> App {
        let mut app = App::new(Start::default(), Time(0), (140, 40));
        app.themes = Themes::built_in().unwrap();
        app
    }

    #[test]
    fn what_was_set_comes_back_and_each_ledger_has_its_filter() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/state.toml");
        let mut a = app();
        a.themes.choose("gruvbox").unwrap();
        a.requests.set_sort(Sort::Id, true);
        a.shares.left = Some(40);
        a.requests.filter = "障害".into();
        let mut m = Memory::load(&file);
        m.take(&a, Some("/a"));
        m.save(&file);
        let mut b = app();
        let m = Memory::load(&file);
        m.give(&mut b, true, Some("/a"));
        assert_eq!((b.themes.chosen().1, b.requests.sorted()), ("gruvbox", (Sort::Id, true)));
        assert_eq!((b.shares, b.requests.filter.as_str()), (a.shares, "障害"));
        let mut c = app();
        m.give(&mut c, false, Some("/b"));
        assert_eq!((c.themes.chosen().1, c.requests.filter.as_str()), ("dark", ""));
        std::fs::write(&file, "theme = 3").unwrap();
        assert_eq!(Memory::load(&file), Memory::default());
        Memory::default().save(Path::new("/proc/nowhere/state.toml"));
    }
}
