//! Writes down a session as a recording (src/record/FORMAT.md): what the kill test keeps of a trial, and the lab of a
//! scenario on request. Mode 0600, credentials replaced as in any recording.

use crate::error::Error;
use crate::files::not_ordinary;
use crate::journal::event::Transport;
use crate::journal::{Journal, Kind};
use crate::record::Rules;
use crate::record::entry::{Entry, Header, VERSION, What, header, line};
use crate::record::redact::{Extra, secrets_of_environment};
use crate::time::Time;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes all that these journals hold to `path`, each as a run of its own; `hides`: what a person wants hidden, too.
///
/// # Errors
/// The system's.
pub fn keep(path: &Path, server: &str, journals: &[Journal], hides: &Extra) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    crate::files::ordinary(path)?;
    let text = recording(server, journals, hides).map_err(std::io::Error::other)?;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Says at the start whether recordings can be kept there: a folder, or one to be made.
///
/// # Errors
/// Exit 2 in words.
pub fn folder(path: &Path) -> Result<(), Error> {
    match path.metadata() {
        Ok(about) if !about.is_dir() => {
            let what = not_ordinary(&about).unwrap_or("a file");
            Err(Error::usage(format!("--keep {} is {what}, not a folder", path.display())))
        }
        _ => Ok(()),
    }
}

/// What these journals hold as the text of a recording, each as a run of its own.
///
/// # Errors
/// In words, when the rules of redaction can't be made.
pub fn recording(server: &str, journals: &[Journal], hides: &Extra) -> Result<String, String> {
    let rules = rules(journals, hides)?;
    let runs = journals.iter().enumerate();
    Ok(runs.map(|(n, journal)| run(n, server, journal, &rules)).collect())
}

/// The same as a tap's: besides what looks like a credential and what a person wants hidden, the values of the
/// environment and of the command lines.
fn rules(journals: &[Journal], hides: &Extra) -> Result<Rules, String> {
    let plain = Rules::new(Extra::default())?;
    let mut values = secrets_of_environment(&plain);
    for journal in journals {
        journal.read(|s| {
            for g in &s.generations {
                if let Transport::Stdio { command, .. } = &g.transport {
                    values.extend(plain.secrets_of_argv(command));
                }
            }
        });
    }
    values.extend(hides.values.iter().cloned());
    Rules::new(Extra { values, ..hides.clone() })
}

fn run(n: usize, server: &str, journal: &Journal, rules: &Rules) -> String {
    let mut entries: Vec<Entry> = journal
        .events_from(0)
        .0
        .iter()
        .map(|e| Entry::new(e.seq, e.at, e.mono_us, e.generation, What::Event(e.kind.clone())))
        .collect();
    // The journal keeps stderr and noise as tails, each line with its time: they are put where they came.
    let start = entries.first().map_or(Time(0), |e| e.at);
    let mono = |at: Time| u64::try_from(at.0 - start.0).unwrap_or(0);
    journal.read(|s| {
        for g in &s.generations {
            let stderr = g.stderr.iter().map(|(at, raw)| (at, Kind::Stderr { raw: raw.clone() }));
            let noise =
                g.noise.iter().map(|(at, raw)| (at, Kind::Noise { raw: raw.clone(), cut: 0 }));
            entries.extend(
                stderr
                    .chain(noise)
                    .map(|(at, kind)| Entry::new(u64::MAX, at, mono(at), g.n, What::Event(kind))),
            );
        }
    });
    entries.sort_by_key(|e| (e.at, e.seq));
    let mut out = header(&Header {
        version: VERSION,
        run: format!("{n:08x}"),
        at: start,
        tap: "client".into(),
        program: format!("redial {}", env!("CARGO_PKG_VERSION")),
        server: server.to_owned(),
        redaction: rules.statement(),
        ..Header::default()
    });
    for (seq, mut entry) in entries.into_iter().enumerate() {
        // Places in the file are counted anew: a hole would mean a loss.
        entry.seq = seq as u64 + 1;
        rules.entry(&mut entry);
        out.push_str(&line(&entry));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::event::Purpose;

    #[test]
    fn what_a_person_wants_hidden_is_hidden_in_what_is_kept() {
        let journal = Journal::default();
        let raw = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"ssn":"123-45","note":"CUST-9"}}}"#;
        let purpose = Purpose::Asked;
        journal.append(1, Kind::Sent { raw: raw.as_slice().into(), exchange: None, purpose });
        let hides = Extra {
            keys: vec!["ssn".into()],
            patterns: vec!["CUST-[0-9]+".into()],
            ..Extra::default()
        };
        let text = recording("x", std::slice::from_ref(&journal), &hides).unwrap();
        assert!(!text.contains("123-45") && !text.contains("CUST-9"), "{text}");
        assert!(text.contains(r#""keys":["ssn"]"#), "{text}");
        let plain = recording("x", &[journal], &Extra::default()).unwrap();
        assert!(plain.contains("123-45"), "{plain}");
    }
}
