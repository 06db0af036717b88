//! `redial show --redact`: an older file again, without its secrets.

use crate::cli::json::safe_lines;
use crate::cli::plain::{complain, print_raw};
use crate::cli::recorded::ShowArgs;
use crate::error::{Error, Exit, Result};
use crate::journal::Kind;
use crate::record::entry::{self, Line, decode};
use crate::record::redact::{KeyBlock, MASK, Rules};
use crate::record::{Entry, What};
use crate::recording::{BadLine, foreign, import};
use bytes::Bytes;

/// Writes the recording to stdout again, without its secrets. A line that can't be read can't be cleaned, so it
/// is left out and told on stderr.
pub fn redact(a: &ShowArgs, rules: &Rules) -> Result<Exit> {
    let path = crate::record::place::find(&a.file)?;
    let mut lines = import::open(&path)?;
    let mut left_out: Vec<BadLine> = lines.take_bad();
    let mut cleaner = Cleaner::new(rules);
    let mut written = false;
    loop {
        let mut out = String::new();
        let more = lines
            .read(|line| match decode(line.bytes) {
                Line::Header(mut h) => {
                    cleaner = Cleaner::new(rules);
                    h.command = rules.argv(&h.command);
                    h.url = h.url.map(|u| rules.url(&u));
                    h.redaction = rules.statement();
                    out.push_str(&entry::header(&h));
                }
                Line::Entry(mut e) => {
                    cleaner.entry(&mut e);
                    out.push_str(&entry::line(&e));
                }
                Line::Other => {
                    let why = "of a kind that is not known here".into();
                    left_out.push(BadLine { line: line.number, why });
                }
                Line::Bad(why) => left_out.push(BadLine { line: line.number, why }),
            })
            .map_err(|e| Error::ledger(format!("{} can't be read: {e}", path.display())))?;
        left_out.extend(lines.take_bad());
        if !out.is_empty() {
            written = true;
            print_raw(&safe_lines(&out));
        }
        if !more {
            break;
        }
    }
    if !written && let Some(b) = left_out.first() {
        let what = format!("{} is no recording: line {}: {}", path.display(), b.line, b.why);
        return Err(Error::ledger(what).hint(foreign::HOW_TO_CONVERT));
    }
    if let Some((line, _)) = lines.unfinished() {
        left_out.push(BadLine { line, why: "torn".into() });
    }
    for b in &left_out {
        complain(&format!("line {} is left out: {}", b.line, b.why));
    }
    Ok(Exit::Good)
}

/// Cleans the lines of one run, in order: a private key may stand on several.
struct Cleaner<'a> {
    rules: &'a Rules,
    stderr: KeyBlock,
    noise: KeyBlock,
}

impl<'a> Cleaner<'a> {
    fn new(rules: &'a Rules) -> Cleaner<'a> {
        Cleaner { rules, stderr: KeyBlock::default(), noise: KeyBlock::default() }
    }

    fn entry(&mut self, e: &mut Entry) {
        let hidden = match &e.what {
            // A piece has lost what would tell whose value it is. Where its line was ended the line is there too.
            What::Part { raw, .. } => !raw.is_empty() && raw != MASK,
            What::Event(Kind::Stderr { raw }) => self.stderr.takes(raw) && !raw.is_empty(),
            What::Event(Kind::Noise { raw, .. }) => self.noise.takes(raw) && !raw.is_empty(),
            _ => false,
        };
        if hidden {
            e.set_raw(Bytes::from_static(MASK.as_bytes()));
            e.wire.redacted = e.wire.redacted.saturating_add(1);
        }
        self.rules.entry(e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Side;
    use crate::record::entry::End;
    use crate::record::redact::Extra;
    use crate::time::Time;

    #[test]
    fn pieces_and_keys_over_several_lines_are_hidden_in_older_files() {
        let keys = vec!["card".into()];
        let rules = Rules::new(Extra { keys, ..Extra::default() }).unwrap();
        let mut cleaner = Cleaner::new(&rules);
        let part =
            |text: &'static [u8]| What::Part { side: Side::Sent, raw: Bytes::from_static(text) };
        let stderr =
            |text: &'static [u8]| What::Event(Kind::Stderr { raw: Bytes::from_static(text) });
        let said: Vec<String> = [
            part(br#"{"params":{"arguments":{"ca[redacted]"#),
            part(br#"rd":"4111-1111","#),
            stderr(b"-----BEGIN PRIVATE KEY-----"),
            part(br#""note":"x"}}}"#),
            stderr(b"MIIEowIB"),
            stderr(b"-----END PRIVATE KEY-----"),
            stderr(b"ready"),
        ]
        .into_iter()
        .map(|what| {
            let mut e = Entry::new(1, Time(0), 0, 1, what);
            e.wire.end = End::None;
            cleaner.entry(&mut e);
            String::from_utf8_lossy(e.raw().unwrap()).into_owned()
        })
        .collect();
        assert_eq!(said, [MASK, MASK, MASK, MASK, MASK, MASK, "ready"]);
    }
}
