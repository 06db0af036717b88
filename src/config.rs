//! The configuration: `redial.toml` in the project over `config.toml` in the user's folder, both over the defaults; the
//! environment over both. (Flags are the command line's affair, and beat all of it.) A key that isn't known is refused
//! with the nearest right one: a setting that silently does nothing is worse than none.

mod environment;
mod read;

use crate::error::{Error, Result};
use crate::judge::gate::{HintOverride, ProjectHints};
use crate::keys::keymap::{Keymap, Remaps};
use etcetera::BaseStrategy;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

use read::{Found, check, merge, parse, read, roots_beside, typed};

/// All keys with their defaults, as shipped. A test proves that it equals [`Config::default`].
pub const SAMPLE: &str = include_str!("../redial.sample.toml");

/// The longest file that is read, in bytes.
const LONGEST: u64 = 256 << 10;

/// What is configured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The theme's name.
    pub theme: String,
    /// The mouse is listened to.
    pub mouse: bool,
    /// How the end of a long call, or of a server, is told.
    pub bell: Bell,
    /// Only calls of tools that say they change nothing.
    pub read_only: bool,
    /// How the ledger is judged.
    pub ledger: LedgerConfig,
    /// How the server is talked to.
    pub server: ServerConfig,
    /// What is hidden in recordings.
    pub record: RecordConfig,
    /// How answers of then and now are compared.
    pub replay: ReplayConfig,
    /// A person's word on tools.
    pub hints: BTreeMap<String, Hints>,
    /// The project's word on tools, which can only make the gate stricter.
    #[serde(skip)]
    pub project_hints: BTreeMap<String, Hints>,
    /// Other keys than the table's.
    pub keys: Remaps,
    /// A theme was named.
    #[serde(skip)]
    pub theme_is_set: bool,
    /// A place that may hold settings and could not be asked, or held a mistake: whoever must not miss a word of it
    /// (what is to be hidden) doesn't start, and everybody else says so.
    #[serde(skip)]
    pub unheard: Option<Error>,
}

/// See [`Config::bell`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bell {
    /// Not at all.
    #[default]
    Off,
    /// The terminal's bell.
    Bell,
    /// A notification of the desktop (OSC 9), where the terminal makes one.
    Notify,
}

/// `[ledger]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerConfig {
    /// `auto`, `one`, `many`.
    pub owners: String,
    /// Seconds after which a claim counts as stale.
    pub stale_seconds: f64,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The look-up tool.
    pub lookup: String,
    /// Seconds until a call counts as unknown.
    pub call_seconds: f64,
    /// Progress begins them anew.
    pub progress_extends: bool,
    /// Seconds it may take to become ready.
    pub start_seconds: f64,
    /// Folders that are told to a server which asks for roots; a relative one is beside the file that names it.
    pub roots: Vec<String>,
}

impl ServerConfig {
    /// The call limit, where one was configured: the entry of a named server may hold another.
    pub fn call_limit(&self) -> Option<f64> {
        let own = ServerConfig::default().call_seconds;
        Some(self.call_seconds).filter(|s| *s != own)
    }
}

/// `[record]`; what the user's file and the project's say is both hidden.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordConfig {
    /// Names of members, headers and options whose values are hidden.
    pub redact_keys: Vec<String>,
    /// Paths of a frame whose values are.
    pub redact_paths: Vec<String>,
    /// Regular expressions for texts that are.
    pub redact_patterns: Vec<String>,
}

/// `[replay]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Paths of an answer that may differ.
    pub ignore: Vec<String>,
}

/// `[hints.TOOL]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hints {
    pub read_only: Option<bool>,
    pub idempotent: Option<bool>,
    pub destructive: Option<bool>,
}

impl Hints {
    /// As the user's own word, beside what the project says.
    fn with(self, project: Hints) -> HintOverride {
        let milder = project.read_only == Some(true)
            || project.idempotent == Some(true)
            || project.destructive == Some(false);
        // What the user says too is the user's word.
        let same = |own: Option<bool>, said: Option<bool>| said.is_none() || own == said;
        let agreed = same(self.read_only, project.read_only)
            && same(self.idempotent, project.idempotent)
            && same(self.destructive, project.destructive);
        HintOverride {
            read_only: self.read_only,
            idempotent: self.idempotent,
            destructive: self.destructive,
            project: ProjectHints {
                not_read_only: project.read_only == Some(false),
                not_idempotent: project.idempotent == Some(false),
                destructive: project.destructive == Some(true),
                ignored: milder && !agreed,
            },
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            theme: "dark".into(),
            mouse: true,
            bell: Bell::Off,
            read_only: false,
            ledger: LedgerConfig::default(),
            server: ServerConfig::default(),
            record: RecordConfig::default(),
            replay: ReplayConfig::default(),
            hints: BTreeMap::new(),
            project_hints: BTreeMap::new(),
            keys: Remaps::new(),
            theme_is_set: false,
            unheard: None,
        }
    }
}

impl Default for LedgerConfig {
    fn default() -> LedgerConfig {
        LedgerConfig { owners: "auto".into(), stale_seconds: 120.0 }
    }
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            lookup: crate::model::lookup::LOOK_UP.into(),
            call_seconds: 60.0,
            progress_extends: false,
            start_seconds: 60.0,
            roots: Vec::new(),
        }
    }
}

/// Variables of the environment and the keys they stand for.
const ENVIRONMENT: [(&str, &[&str]); 8] = [
    ("REDIAL_THEME", &["theme"]),
    ("REDIAL_MOUSE", &["mouse"]),
    ("REDIAL_BELL", &["bell"]),
    ("REDIAL_OWNERS", &["ledger", "owners"]),
    ("REDIAL_STALE_SECONDS", &["ledger", "stale_seconds"]),
    ("REDIAL_LOOKUP", &["server", "lookup"]),
    ("REDIAL_CALL_SECONDS", &["server", "call_seconds"]),
    ("REDIAL_START_SECONDS", &["server", "start_seconds"]),
];

impl Config {
    /// From the files and the environment of this process.
    ///
    /// # Errors
    /// Exit 2, naming the file and the key.
    pub fn load() -> Result<Config> {
        let user = folder().map(|f| f.join("config.toml"));
        let here = std::env::current_dir();
        let project = here.as_deref().ok().and_then(project);
        let lost = here.err().map(|e| {
            Error::usage(format!("the current folder can't be found: {e}"))
                .hint("a redial.toml in it, or above it, could not be looked for")
        });
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let places = environment::places(&set).or(lost);
        let names = std::env::vars_os().map(|(name, _)| name);
        environment::misspelt(names)?;
        environment::read_only(set(environment::READ_ONLY).as_deref())?;
        let config = Config::from(user.as_deref(), project.as_deref(), &set)?;
        Ok(Config { unheard: places.or(config.unheard.clone()), ..config })
    }

    /// From these files, where they are, and this environment.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn from(
        user: Option<&Path>,
        project: Option<&Path>,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Config> {
        let mut merged = Table::new();
        let mut project_hints = BTreeMap::new();
        let mut unheard = None;
        for (path, from_project) in [(user, false), (project, true)] {
            let Some(path) = path else { continue };
            let found = read(path)?;
            if let Found::Hidden(e) = found {
                unheard = Some(e);
            } else if let Found::Text(text) = found {
                let mut table = parse(&path.display().to_string(), &text)?;
                roots_beside(path, &mut table);
                let on = |t: &Table| t.get("read_only").and_then(Value::as_bool);
                if from_project && on(&merged) == Some(true) {
                    // Nor does a project let out what its user stops.
                    table.remove("read_only");
                }
                if from_project && let Some(keys) = table.get("keys").cloned() {
                    let keys = Remaps::deserialize(keys).unwrap_or_default();
                    Keymap::check_project(&keys).map_err(|e| Error {
                        what: format!("{}: {}", path.display(), e.what),
                        ..e
                    })?;
                }
                if from_project && let Some(hints) = table.remove("hints") {
                    // It was checked with the rest of the file.
                    project_hints = BTreeMap::deserialize(hints).unwrap_or_default();
                }
                merge(&mut merged, table);
            }
        }
        for (name, keys) in ENVIRONMENT {
            if let Some(value) = env(name).filter(|v| !v.is_empty()) {
                let value = typed(name, keys, environment::text(name, &value)?)?;
                let table = keys
                    .iter()
                    .rev()
                    .fold(value, |v, k| Value::Table([((*k).to_owned(), v)].into_iter().collect()));
                if let Value::Table(table) = table {
                    check(name, &table)?;
                    merge(&mut merged, table);
                }
            }
        }
        let theme_is_set = merged.contains_key("theme");
        let config = Config::deserialize(merged)
            .map_err(|e| Error::usage(format!("configuration: {}", e.message())))?;
        Ok(Config { theme_is_set, project_hints, unheard, ..config })
    }

    /// The hints as the gate takes them.
    pub fn hint_overrides(&self) -> BTreeMap<String, HintOverride> {
        let tools = self.hints.keys().chain(self.project_hints.keys());
        let of =
            |all: &BTreeMap<String, Hints>, t: &String| all.get(t).copied().unwrap_or_default();
        tools.map(|t| (t.clone(), of(&self.hints, t).with(of(&self.project_hints, t)))).collect()
    }
}

/// The user's folder for configuration; `None` for a user without a home.
pub fn folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("redial"))
}

/// The user's folder for what is remembered between runs.
pub fn state_folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.state_dir()?.join("redial"))
}

/// The project's file: `redial.toml` in `here` or above it, not beyond the folder of the repository. Whatever has that
/// name is it: a folder, a device or a link that leads nowhere is a mistake that must be told, not an absent file.
pub fn project(here: &Path) -> Option<PathBuf> {
    for folder in here.ancestors() {
        let file = folder.join("redial.toml");
        match file.symlink_metadata() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            _ => return Some(file),
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests;
