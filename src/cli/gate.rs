//! The gate at the command line: a flag, or the same question at a terminal. Default is always No.

use super::interrupt::Interrupt;
use super::plain::{Plain, Role};
use super::reissue::{Run, before};
use crate::error::{Error, Exit};
use crate::inspect::reissue::{Prepared, stopped};
use crate::judge::Ask;
use crate::judge::agreement::{Change, Total};
use crate::shell;
use std::io::{IsTerminal, Write};

/// What the person said.
pub enum Answer {
    /// Send it, with this confirmation. `shown`: it was given to a question, and holds for what that showed.
    Send { confirmed: Option<String>, shown: bool },
    /// Don't; the error says why and carries the exit status.
    Stop(Error),
}

/// Whether a question can be asked here: at a terminal (stdin and stderr), without `--json` and without a flag that
/// answers it.
pub fn can_ask(run: &Run<'_>) -> bool {
    !run.json
        && run.confirm.is_none()
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
}

/// Asks what the decision asks: with words where that can be done, else only the flag counts. `changes`: what is
/// another thing than in the question before, which was answered.
pub async fn ask(p: &Prepared, changes: &[Change], run: &Run<'_>) -> Answer {
    let d = &p.decision;
    if d.refused.is_some() {
        return Answer::Stop(stopped(d));
    }
    if let Some(name) = run.interrupt.seen() {
        return Answer::Stop(Interrupt::stopped(name, Exit::Endpoint));
    }
    if d.ask == Ask::None {
        return Answer::Send { confirmed: run.confirm.map(str::to_owned), shown: false };
    }
    if let Some(c) = run.confirm {
        return if d.passes(Some(c)) {
            Answer::Send { confirmed: Some(c.to_owned()), shown: false }
        } else {
            let what = format!(
                "--confirm says {c:?}, and this call wants {:?}; nothing was sent",
                shell::spoken(&d.confirm)
            );
            Answer::Stop(Error::new(stopped(d).exit, what))
        };
    }
    if !can_ask(run) {
        return Answer::Stop(stopped(d));
    }
    let said = tokio::select! {
        said = super::answer::to(|| show(p, changes)) => said,
        name = run.interrupt.first() => {
            let mut end = Plain::stderr();
            end.gap();
            end.complain();
            return Answer::Stop(Interrupt::stopped(name, Exit::Gate));
        }
    };
    let yes = said.is_some_and(|said| match d.ask {
        Ask::Type => shell::names(&said, &d.confirm),
        Ask::Ask => matches!(&*said, "y" | "Y" | "yes"),
        Ask::Preview | Ask::None => matches!(&*said, "" | "y" | "Y" | "yes"),
    });
    if yes {
        Answer::Send { confirmed: Some(d.confirm.clone()), shown: true }
    } else {
        Answer::Stop(Error::new(Exit::Gate, "not confirmed; nothing was sent"))
    }
}

/// The dialog, on stderr: what is known, the exact call, why it asks, and the question.
fn show(p: &Prepared, changes: &[Change]) {
    let d = &p.decision;
    let mut text = Plain::stderr();
    if !changes.is_empty() {
        text.gap();
        text.line(
            Role::Bad,
            "Things have changed since you were asked; nothing was sent. Asked anew:",
        );
        for (i, change) in changes.iter().enumerate() {
            text.field(if i == 0 { "changed" } else { "" }, Role::Bad, &change.words);
        }
        if p.terms.total == Total::Moving {
            text.field(
                "",
                Role::Warn,
                "others go on writing: the answer is not held to the count of all effects",
            );
        }
        text.gap();
    }
    before(&mut text, p, p.wish.request_id.as_deref());
    for (i, reason) in d.reasons.iter().enumerate() {
        text.field(if i == 0 { "why it asks" } else { "" }, Role::Warn, reason);
    }
    // The rest of what the decision tells stands above already: row, look-up, effects.
    if let Some(twice) = d.tells.last() {
        text.field("mind", Role::Warn, twice);
    }
    let question = match d.ask {
        Ask::Type => {
            format!("Type {} to send it (anything else: no): ", shell::spoken(&d.confirm))
        }
        Ask::Ask => "Send it? y (anything else: no): ".to_owned(),
        Ask::Preview | Ask::None => "Enter sends it (anything else: no): ".to_owned(),
    };
    text.complain();
    let mut err = anstream::stderr().lock();
    // Without stderr there is nobody to ask, and the answer read next is then no.
    write!(err, "{}", crate::text::visible(&question)).and_then(|()| err.flush()).ok();
}
