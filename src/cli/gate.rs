//! The gate at the command line: a flag, or the same question at a terminal. Default is always No.

use super::plain::{Plain, Role};
use super::reissue::before;
use crate::error::Error;
use crate::inspect::reissue::{Prepared, stopped};
use crate::judge::Ask;
use std::io::{BufRead, IsTerminal, Write};

/// What the person said.
pub enum Answer {
    /// Send it, with this confirmation.
    Send(Option<String>),
    /// Don't; the error says why and carries the exit status.
    Stop(Error),
}

/// Asks what the decision asks. At a terminal (stdin and stderr, no `--json`) with words; else only the flag
/// counts.
pub fn ask(p: &Prepared, confirm: Option<&str>, json: bool, id: Option<&str>) -> Answer {
    let d = &p.decision;
    if d.refused.is_some() {
        return Answer::Stop(stopped(d));
    }
    if d.ask == Ask::None {
        return Answer::Send(confirm.map(str::to_owned));
    }
    if let Some(c) = confirm {
        return if d.passes(Some(c)) {
            Answer::Send(Some(c.to_owned()))
        } else {
            let e = stopped(d);
            Answer::Stop(Error::new(
                e.exit,
                format!(
                    "--confirm says {c:?}, and this call wants {:?}; nothing was sent",
                    d.confirm
                ),
            ))
        };
    }
    let at_terminal = !json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !at_terminal {
        return Answer::Stop(stopped(d));
    }
    let mut text = Plain::default();
    before(&mut text, p, id);
    for t in &d.tells {
        text.field("", Role::Text, t);
    }
    for r in &d.reasons {
        text.field("why asked", Role::Warn, r);
    }
    let question = match d.ask {
        Ask::Type => format!("Type {} to send it (anything else: no): ", d.confirm),
        Ask::Ask => "Send it? y (anything else: no): ".to_owned(),
        Ask::Preview | Ask::None => "Enter sends it, n: no: ".to_owned(),
    };
    let mut err = anstream::stderr().lock();
    // Without stderr there is nobody to ask, and the answer read below is then no.
    write!(err, "{}{}", text.text(), crate::text::visible(&question))
        .and_then(|()| err.flush())
        .ok();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).unwrap_or(0);
    let said = line.trim();
    let yes = read > 0
        && match d.ask {
            Ask::Type => said == d.confirm,
            Ask::Ask => matches!(said, "y" | "Y" | "yes"),
            Ask::Preview | Ask::None => matches!(said, "" | "y" | "Y" | "yes"),
        };
    if yes {
        Answer::Send(Some(d.confirm.clone()))
    } else {
        Answer::Stop(Error::new(crate::error::Exit::Gate, "not confirmed; nothing was sent"))
    }
}
