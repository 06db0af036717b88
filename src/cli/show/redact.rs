//! `redial show --redact`: an older file again, without its secrets.

use crate::cli::plain::{complain, print_raw};
use crate::cli::recorded::ShowArgs;
use crate::error::{Error, Exit, Result};
use crate::record::entry::{self, Line, decode};
use crate::record::redact::Rules;
use crate::recording::{BadLine, import};

/// Writes the recording to stdout again, without its secrets. A line that can't be read can't be cleaned, so it
/// is left out and told on stderr.
pub fn redact(a: &ShowArgs, rules: &Rules) -> Result<Exit> {
    let path = crate::record::place::find(&a.file)?;
    let mut lines = import::open(&path)?;
    let mut left_out: Vec<BadLine> = lines.take_bad();
    loop {
        let mut out = String::new();
        let more = lines
            .read(|line| match decode(line.bytes) {
                Line::Header(mut h) => {
                    h.command = rules.argv(&h.command);
                    h.url = h.url.map(|u| rules.url(&u));
                    h.redaction = rules.statement();
                    out.push_str(&entry::header(&h));
                }
                Line::Entry(mut e) => {
                    rules.entry(&mut e);
                    out.push_str(&entry::line(&e));
                }
                Line::Other => {
                    let why = "of a kind that is not known here".into();
                    left_out.push(BadLine { line: line.number, why });
                }
                Line::Bad(why) => left_out.push(BadLine { line: line.number, why }),
            })
            .map_err(|e| Error::ledger(format!("{} can't be read: {e}", path.display())))?;
        print_raw(&out);
        if !more {
            break;
        }
    }
    if let Some((line, _)) = lines.unfinished() {
        left_out.push(BadLine { line, why: "torn".into() });
    }
    for b in &left_out {
        complain(&format!("line {} is left out: {}", b.line, b.why));
    }
    Ok(Exit::Good)
}
