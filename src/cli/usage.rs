//! What the parser itself says: help, and a command line that is wrong; the latter with `--json` as a document too, like
//! any other failure.

use super::args::Cli;
use super::failure::Asked;
use super::help::Whole;
use super::plain::{Plain, Role};
use crate::error::{Error, Exit};
use clap::CommandFactory;
use std::ffi::OsString;
use std::io::Write;

/// Help or the version, to stdout.
pub fn help(e: &clap::Error, whole: &Whole) -> Exit {
    let text = whole.put_back(&e.render().ansi().to_string());
    // A closed pipe is nobody's error.
    anstream::stdout().lock().write_all(text.as_bytes()).ok();
    Exit::Good
}

/// A command line that is wrong.
pub fn mistake(e: &clap::Error, args: &[OsString]) -> Exit {
    say(e);
    if wants_json(args) {
        Asked::unparsed(command(args)).documented(&error(e));
    }
    Exit::Usage
}

/// As it is, unless what was typed holds something a terminal could act on.
fn say(e: &clap::Error) {
    let text = e.to_string();
    if text.lines().all(|l| matches!(crate::text::visible(l), std::borrow::Cow::Borrowed(_))) {
        e.print().ok();
    } else {
        let mut p = Plain::stderr();
        text.lines().for_each(|l| p.line(Role::Text, l));
        p.complain();
    }
}

/// What is redial's own of a command line: what follows `--` is a server's.
fn own(args: &[OsString]) -> impl Iterator<Item = &str> {
    args.iter().skip(1).take_while(|a| *a != "--").filter_map(|a| a.to_str())
}

fn wants_json(args: &[OsString]) -> bool {
    own(args).any(|a| a == "--json" || a.starts_with("--json="))
}

/// The first word that names a command.
fn command(args: &[OsString]) -> &'static str {
    let all = Cli::command();
    let names = |word: &str| all.get_subcommands().any(|c| c.get_name() == word);
    let found = own(args).find(|a| names(a));
    // The names are those of the program, and few.
    found.map_or("redial", |name| &*String::leak(name.to_owned()))
}

/// The parser's words as one sentence and what to do.
fn error(e: &clap::Error) -> Error {
    let text = e.to_string();
    let parts: Vec<String> = text
        .split("\n\n")
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|part| !part.is_empty())
        .collect();
    let (what, rest) = parts.split_first().map_or(("", &[][..]), |(w, r)| (w.as_str(), r));
    let error = Error::usage(what.strip_prefix("error: ").unwrap_or(what));
    match rest.is_empty() {
        true => error,
        false => error.hint(rest.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> (bool, &'static str) {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        (wants_json(&args), command(&args))
    }

    #[test]
    fn what_was_asked_is_told_without_the_parser() {
        assert_eq!(of(&["redial", "rows", "--limit", "x", "--json"]), (true, "rows"));
        assert_eq!(of(&["redial", "call", "t", "--", "x", "--json"]), (false, "call"));
        assert_eq!(of(&["redial", "--json", "lab", "run"]), (true, "lab"));
        assert_eq!(of(&["redial", "rws", "--json=1"]), (true, "redial"));
    }

    #[test]
    fn a_mistake_is_one_sentence_with_what_to_do() {
        let e = <Cli as clap::Parser>::try_parse_from(["redial", "find", "--json"]).unwrap_err();
        let e = error(&e);
        assert!(e.what.contains("<REQUEST_ID>") && !e.what.contains('\n'), "{e:?}");
        assert!(e.hint.is_some_and(|h| h.contains("--help")) && e.exit == Exit::Usage);
    }
}
