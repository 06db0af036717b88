//! `redial teach`: the lessons, on a terminal.

use super::args::TeachArgs;
use super::attach::{has_terminal, is_dumb};
use super::plain::{Plain, Role, complain};
use super::report::Done;
use crate::error::{Error, Exit};
use crate::lab::lesson::{LESSONS, Step, find};
use crate::tui::teach;

pub async fn run(a: TeachArgs) -> Done {
    let names = || LESSONS.iter().map(|l| l.name).collect::<Vec<_>>().join(", ");
    let first = match &a.lesson {
        None => None,
        Some(name) => Some(find(name).ok_or_else(|| {
            Error::usage(format!("there is no lesson {name}")).hint(format!("lessons: {}", names()))
        })?),
    };
    if is_dumb() {
        complain("this terminal can't show a screen (TERM=dumb): here is what the lessons say");
        report(first);
        return Ok(Exit::Good);
    }
    a.read_only.stops("a lesson makes calls that do work")?;
    if !has_terminal() {
        return Err(Error::usage("lessons open a screen, and there is no terminal here")
            .hint(format!(
                "at a terminal: redial teach [{}]; without one: redial lab run all",
                names().replace(", ", "|")
            ))
            .into());
    }
    Ok(teach::run(first, None).await?)
}

/// The lessons as text, or the one that was named: nothing is played, and nothing sent.
fn report(only: Option<usize>) {
    let mut p = Plain::stdout();
    for (i, l) in LESSONS.iter().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i)) {
        p.line(Role::Strong, &format!("{}. {} (redial teach {})", i + 1, l.title, l.name));
        p.line(Role::Text, &format!("  {}", l.story));
        if only.is_some() {
            for step in l.steps {
                let words = match step {
                    Step::Do { say, .. } => say,
                    Step::Ask { question } => question,
                };
                p.line(Role::Text, &format!("  - {words}"));
            }
            if !l.steps.is_empty() {
                p.line(Role::Strong, &format!("  In the end: {} effects. {}", l.effects, l.why));
            }
        }
        p.line(Role::Dim, &format!("  {}", l.take_home));
    }
    p.gap();
    p.line(Role::Text, "Played for real without a screen: redial lab run all");
    p.print();
}
