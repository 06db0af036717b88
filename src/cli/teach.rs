//! `redial teach`: the lessons, on a terminal.

use super::args::TeachArgs;
use super::attach::has_terminal;
use super::report::Done;
use crate::error::Error;
use crate::lab::lesson::{LESSONS, find};
use crate::tui::teach;

pub async fn run(a: TeachArgs) -> Done {
    let names = || LESSONS.iter().map(|l| l.name).collect::<Vec<_>>().join(", ");
    let first = match &a.lesson {
        None => None,
        Some(name) => Some(find(name).ok_or_else(|| {
            Error::usage(format!("there is no lesson {name}")).hint(format!("lessons: {}", names()))
        })?),
    };
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
