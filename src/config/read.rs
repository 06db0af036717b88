//! Reads the text of a configuration: every key is known, every value of its kind, and whatever is wrong is said with
//! the file's name and the nearest right word. Knows no order among files.

use super::{Config, LONGEST, RecordConfig, SAMPLE};
use crate::error::{Error, Result};
use crate::keys::keymap::Keymap;
use crate::near::nearest;
use crate::record::Rules;
use crate::record::redact::Extra;
use serde::Deserialize;
use std::io::{ErrorKind, Read};
use std::path::Path;
use toml::{Table, Value};

/// Reads one file's text; whatever is wrong with it is said with its name.
pub(super) fn parse(name: &str, text: &str) -> Result<Table> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        Error::usage(format!("{name}: {}{}", line(text, &e), e.message()))
    })?;
    check(name, &table)?;
    Ok(table)
}

/// What is relative in a file means the file's folder, wherever redial was called.
pub(super) fn roots_beside(file: &Path, table: &mut Table) {
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
pub(super) fn check(name: &str, table: &Table) -> Result<()> {
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
    rules(&config.record).map_err(|why| wrong(format!("record: {why}")))?;
    Keymap::with(&config.keys).map_err(|e| Error { what: format!("{name}: {}", e.what), ..e })?;
    Ok(())
}

/// What is to be hidden can be hidden: whoever uses the rules, a mistake in them is a mistake of the file.
fn rules(record: &RecordConfig) -> std::result::Result<Rules, String> {
    let RecordConfig { redact_keys, redact_paths, redact_patterns } = record.clone();
    let (keys, paths, patterns) = (redact_keys, redact_paths, redact_patterns);
    Rules::new(Extra { keys, paths, patterns, ..Extra::default() })
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
pub(super) fn typed(name: &str, keys: &[&str], value: &str) -> Result<Value> {
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

pub(super) fn merge(under: &mut Table, over: Table) {
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

/// What is at the place of a file.
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// Nobody here may look: a folder of somebody else's (another user's HOME) may hold settings, or may not.
    Hidden(Error),
    Text(String),
}

pub(super) fn read(path: &Path) -> Result<Found> {
    let wrong = |why: &str| Error::usage(format!("{}: {why}", path.display()));
    let no = |e: std::io::Error| wrong(&format!("can't be read: {e}"));
    match path.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Found::Absent),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => return Ok(Found::Hidden(no(e))),
        Err(e) => return Err(no(e)),
        Ok(_) => {}
    }
    let about = path.metadata().map_err(|e| match e.kind() {
        ErrorKind::NotFound => wrong("is a link that leads nowhere"),
        _ => no(e),
    })?;
    // Neither a pipe, which would be waited for, nor a device, which may have no end.
    if !about.is_file() {
        let what = if about.is_dir() { "is a folder" } else { "is no ordinary file" };
        return Err(wrong(&format!("{what}, not a configuration")));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(no)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(no)?;
    if bytes.len() as u64 > LONGEST {
        return Err(wrong(&format!(
            "is too large for a configuration: over {} KiB",
            LONGEST >> 10
        )));
    }
    String::from_utf8(bytes).map(Found::Text).map_err(|e| {
        wrong(&format!("is no text in UTF-8: byte {}", e.utf8_error().valid_up_to() + 1))
    })
}
