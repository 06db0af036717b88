//! The configuration: `redial.toml` in the project over `config.toml` in the user's folder, both over the defaults; the
//! environment over both. (Flags are the command line's affair, and beat all of it.) A key that isn't known is refused
//! with the nearest right one: a setting that silently does nothing is worse than none.

use crate::error::{Error, Result};
use crate::judge::gate::{HintOverride, ProjectHints};
use crate::tui::keymap::{Keymap, Remaps};
use etcetera::BaseStrategy;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

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
        let here = std::env::current_dir().ok();
        let project = here.as_deref().and_then(project);
        Config::from(user.as_deref(), project.as_deref(), &|name| std::env::var(name).ok())
    }

    /// From these files, where they are, and this environment.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn from(
        user: Option<&Path>,
        project: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Config> {
        let mut merged = Table::new();
        let mut project_hints = BTreeMap::new();
        for (path, from_project) in [(user, false), (project, true)] {
            if let Some(path) = path
                && let Some(text) = read(path)?
            {
                let mut table = parse(&path.display().to_string(), &text)?;
                roots_beside(path, &mut table);
                let on = |t: &Table| t.get("read_only").and_then(Value::as_bool);
                if from_project && on(&merged) == Some(true) {
                    // Nor does a project let out what its user stops.
                    table.remove("read_only");
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
                let value = typed(name, keys, &value)?;
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
        Ok(Config { theme_is_set, project_hints, ..config })
    }

    /// The hints as the gate takes them.
    pub fn hint_overrides(&self) -> BTreeMap<String, HintOverride> {
        let tools = self.hints.keys().chain(self.project_hints.keys());
        let of =
            |all: &BTreeMap<String, Hints>, t: &String| all.get(t).copied().unwrap_or_default();
        tools.map(|t| (t.clone(), of(&self.hints, t).with(of(&self.project_hints, t)))).collect()
    }
}

/// Reads one file's text; whatever is wrong with it is said with its name.
fn parse(name: &str, text: &str) -> Result<Table> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        Error::usage(format!("{name}: {}{}", line(text, &e), e.message()))
    })?;
    check(name, &table)?;
    Ok(table)
}

/// What is relative in a file means the file's folder, wherever redial was called.
fn roots_beside(file: &Path, table: &mut Table) {
    let roots = table.get_mut("server").and_then(|s| s.get_mut("roots"));
    for root in roots.and_then(Value::as_array_mut).into_iter().flatten() {
        if let (Value::String(text), Some(folder)) = (&mut *root, file.parent())
            && !text.starts_with("file://")
        {
            *root = Value::String(folder.join(text).display().to_string());
        }
    }
}

fn line(text: &str, e: &toml::de::Error) -> String {
    let at = e.span().and_then(|s| text.get(..s.start));
    at.map(|before| format!("line {}: ", before.matches('\n').count() + 1)).unwrap_or_default()
}

/// Every key is known and every value is of its kind.
fn check(name: &str, table: &Table) -> Result<()> {
    let wrong = |what: String| Error::usage(format!("{name}: {what}"));
    let sample: Table = SAMPLE.parse().map_err(|_| wrong("the shipped sample is broken".into()))?;
    for (key, value) in table {
        known(name, "", key, &sample)?;
        let (Some(inner), Some(Value::Table(defaults))) = (value.as_table(), sample.get(key))
        else {
            continue;
        };
        // What tools and places are called is open here; the keymap knows places and actions.
        if key == "keys" || key == "hints" {
            continue;
        }
        for k in inner.keys() {
            known(name, &format!("{key}."), k, defaults)?;
        }
    }
    if let Some(hints) = table.get("hints").and_then(Value::as_table) {
        let parts = ["read_only", "idempotent", "destructive"];
        for (tool, own) in hints.iter().filter_map(|(t, v)| Some((t, v.as_table()?))) {
            if let Some(k) = own.keys().find(|k| !parts.contains(&k.as_str())) {
                return Err(refused(name, &format!("hints.{tool}.{k}"), k, parts.into_iter()));
            }
        }
    }
    let config = Config::deserialize(table.clone()).map_err(|e| wrong(e.message().to_owned()))?;
    if !["auto", "one", "many"].contains(&config.ledger.owners.as_str()) {
        return Err(wrong(format!(
            "ledger.owners is {:?}, not auto, one or many",
            config.ledger.owners
        )));
    }
    let seconds = [
        ("ledger.stale_seconds", config.ledger.stale_seconds),
        ("server.call_seconds", config.server.call_seconds),
        ("server.start_seconds", config.server.start_seconds),
    ];
    if let Some((key, n)) = seconds.into_iter().find(|(_, n)| !n.is_finite() || *n < 0.0) {
        return Err(wrong(format!("{key} is {n}, not a number of seconds, 0 or more")));
    }
    Keymap::with(&config.keys).map_err(|e| Error { what: format!("{name}: {}", e.what), ..e })?;
    Ok(())
}

fn known(file: &str, above: &str, key: &str, defaults: &Table) -> Result<()> {
    if defaults.contains_key(key) {
        return Ok(());
    }
    Err(refused(file, &format!("{above}{key}"), key, defaults.keys().map(String::as_str)))
}

fn refused<'a>(file: &str, full: &str, key: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let names: Vec<&str> = names.collect();
    let mean = nearest(key, names.iter().copied());
    let mean = mean.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
    Error::usage(format!("{file}: there is no key {full}{mean}"))
        .hint(format!("there are: {}", names.join(", ")))
}

/// A variable's value as what its key holds in the sample.
fn typed(name: &str, keys: &[&str], value: &str) -> Result<Value> {
    let sample: Table = SAMPLE.parse().unwrap_or_default();
    let at = keys.iter().try_fold(Value::Table(sample), |v, k| v.get(*k).cloned());
    let bad = |kind: &str| Error::usage(format!("{name} is {value:?}, not {kind}"));
    Ok(match at {
        Some(Value::Boolean(_)) => Value::Boolean(match value {
            "1" | "true" | "yes" | "on" => true,
            "0" | "false" | "no" | "off" => false,
            _ => return Err(bad("true or false")),
        }),
        Some(Value::Float(_)) => Value::Float(value.parse().map_err(|_| bad("a number"))?),
        _ => Value::String(value.to_owned()),
    })
}

fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(a)), Value::Table(b)) => merge(a, b),
            // A project can't bring to light what its user hides.
            (Some(Value::Array(a)), Value::Array(mut b)) if key.starts_with("redact_") => {
                a.append(&mut b)
            }
            (_, value) => drop(under.insert(key, value)),
        }
    }
}

fn read(path: &Path) -> Result<Option<String>> {
    let wrong = |why: &str| Error::usage(format!("{}: {why}", path.display()));
    match path.metadata() {
        // A folder of somebody else's (another user's HOME) holds no configuration of ours.
        Err(e)
            if matches!(
                e.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied
            ) =>
        {
            return Ok(None);
        }
        Err(e) => return Err(wrong(&e.to_string())),
        Ok(m) if m.len() > LONGEST => return Err(wrong("too large for a configuration")),
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|e| wrong(&e.to_string()))
}

/// The user's folder for configuration; `None` for a user without a home.
pub fn folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("redial"))
}

/// The user's folder for what is remembered between runs.
pub fn state_folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.state_dir()?.join("redial"))
}

/// The project's file: `redial.toml` in `here` or above it, not beyond the folder of the repository.
pub fn project(here: &Path) -> Option<PathBuf> {
    for folder in here.ancestors() {
        let file = folder.join("redial.toml");
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

/// The name that was probably meant: within a few slips, or one that begins as `word` does.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = |n: &&str| strsim::damerau_levenshtein(n, word);
    let name = names.min_by_key(slips)?;
    (slips(&name) <= (word.chars().count() / 3).max(2)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn the_shipped_sample_equals_the_defaults() {
        let table = parse("sample", SAMPLE).unwrap();
        assert_eq!(Config::deserialize(table).unwrap(), Config::default());
        assert_eq!(Config::from(None, None, &none).unwrap(), Config::default());
        // What it shows commented out is right too, and every variable is named in it.
        let shown = SAMPLE
            .replace("# [", "[")
            .replace("# idempotent", "idempotent")
            .replace("# find", "find");
        let shown = shown.replace("\n[hints]", "").replace("\n[keys]", "");
        let config = Config::deserialize(parse("sample", &shown).unwrap()).unwrap();
        assert_eq!(config.hints["create_ticket"].idempotent, Some(true));
        assert_eq!(config.keys["main"]["find"], ["f", "f5"]);
        assert!(ENVIRONMENT.iter().all(|(name, _)| SAMPLE.contains(name)));
    }

    #[test]
    fn the_environment_beats_the_project_beats_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) =
            (folder.path().join("config.toml"), folder.path().join("redial.toml"));
        std::fs::write(
            &user,
            "theme = \"light\"\nmouse = false\n[ledger]\nstale_seconds = 30.0\nowners = \"one\"",
        )
        .unwrap();
        std::fs::write(&project, "theme = \"mono\"\n[ledger]\nstale_seconds = 40.0").unwrap();
        let env = |n: &str| (n == "REDIAL_STALE_SECONDS").then(|| "50".to_owned());
        let c = Config::from(Some(&user), Some(&project), &env).unwrap();
        assert_eq!((c.theme.as_str(), c.mouse, c.ledger.stale_seconds), ("mono", false, 50.0));
        assert_eq!(c.ledger.owners, "one");
        let gone = folder.path().join("nothing.toml");
        assert_eq!(Config::from(Some(&gone), None, &none).unwrap(), Config::default());
        assert_eq!(super::project(folder.path()), Some(project.clone()));
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(super::project(&deep), Some(project));
        std::fs::create_dir(folder.path().join("a/.git")).unwrap();
        assert_eq!(super::project(&deep), None);
    }

    #[test]
    fn a_project_can_make_the_gate_stricter_and_not_milder() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) =
            (folder.path().join("config.toml"), folder.path().join("redial.toml"));
        std::fs::write(&user, "[hints.a]\nidempotent = true\n[hints.b]\nidempotent = true")
            .unwrap();
        let hints = "[hints.a]\nidempotent = false\n[hints.b]\nidempotent = true\n[hints.c]\nread_only = true";
        std::fs::write(&project, hints).unwrap();
        let all = Config::from(Some(&user), Some(&project), &none).unwrap().hint_overrides();
        assert!(all["a"].project.not_idempotent && !all["a"].project.ignored);
        assert!(!all["b"].project.ignored && all["b"].idempotent == Some(true));
        assert!(all["c"].project.ignored && all["c"].read_only.is_none());
        std::fs::write(&user, "read_only = true").unwrap();
        std::fs::write(&project, "read_only = false").unwrap();
        assert!(Config::from(Some(&user), Some(&project), &none).unwrap().read_only);
    }

    #[test]
    fn what_is_not_known_is_refused_with_the_nearest_right_one() {
        for (text, says) in [
            ("them = \"dark\"", "there is no key them; did you mean theme?"),
            (
                "[ledger]\nstale_second = 3",
                "no key ledger.stale_second; did you mean stale_seconds?",
            ),
            ("[hints.x]\nidempotnt = true", "no key hints.x.idempotnt; did you mean idempotent?"),
            (
                "[keys.main]\nquti = [\"x\"]",
                "keys.main.quti: there is no such action; did you mean quit?",
            ),
            ("[keys.main]\nfind = [\"r\"]", "would mean two things"),
            ("mouse = 3", "invalid type"),
            ("theme = \"dark\"\nmouse = tru", "line 2"),
            ("[ledger]\nowners = \"few\"", "not auto, one or many"),
            ("[server]\ncall_seconds = -1.0", "not a number of seconds"),
            ("zzzzzzzz = 1", "there is no key zzzzzzzz"),
        ] {
            let e = parse("redial.toml", text).unwrap_err();
            assert!(e.what.starts_with("redial.toml: ") && e.what.contains(says), "{}", e.what);
        }
        let env = |n: &str| (n == "REDIAL_MOUSE").then(|| "maybe".to_owned());
        let e = Config::from(None, None, &env).unwrap_err();
        assert!(e.what.contains("REDIAL_MOUSE"), "{}", e.what);
    }
}
