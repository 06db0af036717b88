//! The command line under the configuration: what a file or the environment says becomes the default of its flag, so that
//! a flag always wins and `--help` shows what holds.

use super::args::id::{dashed, help_was_meant, takes_id};
use super::args::{Cli, Command};
use super::help::Whole;
use crate::config::Config;
use crate::error::{Error, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Why nothing is run.
pub enum Failure {
    /// The command line is wrong, or asks for help.
    Usage(clap::Error, Whole),
    /// The configuration is wrong, and this command would have used it.
    Config(Box<(Option<Command>, Error)>),
}

/// Parses `args` (with the program's name first) under a configuration. A wrong one doesn't stand in the way of help or of
/// a command that takes nothing from it.
///
/// # Errors
/// See [`Failure`].
pub fn parse(
    args: impl Iterator<Item = OsString>,
    config: Result<Config>,
) -> Result<(Cli, Config), Failure> {
    let args: Vec<OsString> = args.collect();
    let (config, wrong) = match config {
        Ok(c) => (c, None),
        Err(e) => (Config::default(), Some(e)),
    };
    let mut whole = Whole::default();
    let mut command = whole.take(implied(numbers(with_defaults(Cli::command(), &config))));
    let meant = args.clone();
    let args = dashed(args, &command);
    let parsed = command.try_get_matches_from_mut(args);
    let parsed = parsed.map_err(|e| match &wrong {
        // The parser reads a variable too, and would call it an argument.
        Some(w) if e.kind() == ErrorKind::InvalidUtf8 => {
            command.error(ErrorKind::InvalidUtf8, &w.what)
        }
        _ => e,
    });
    let parsed = parsed.map_err(|e| no_help(e, &meant, &mut command));
    let parsed = parsed.and_then(|m| {
        let unsaid = may_send_unsaid(&m);
        let cli = Cli::from_arg_matches(&m).map_err(|e| e.format(&mut command))?;
        Ok((cli, unsaid))
    });
    let (mut cli, unsaid) = parsed.map_err(|e| Failure::Usage(e, whole))?;
    if let Err(e) = named(&mut cli) {
        return Err(Failure::Config(Box::new((cli.command, e))));
    }
    let unheard = config.unheard.clone().filter(|_| unsaid);
    match (wrong, unheard) {
        // A file that nobody could look for may stop all calls: as long as nobody says that, or that it doesn't, none
        // is sent.
        (None, Some(e)) => {
            let hint = e.hint.as_ref().map(|h| format!("{h}; ")).unwrap_or_default();
            let e = e.hint(format!(
                "{hint}nothing was started or sent, since read_only may be set there: REDIAL_READ_ONLY=0 says that it is not, --read-only that it is"
            ));
            Err(Failure::Config(Box::new((cli.command, e))))
        }
        (None, None) => Ok((cli, config)),
        // What a client has started as its server, and what takes nothing from the file, must not fail for it. A tap
        // does: it would write what the file hides.
        (Some(e), _) if matches!(cli.command, Some(Command::Serve(_) | Command::Mock(_))) => {
            Ok((cli, Config { unheard: Some(e), ..config }))
        }
        (Some(e), _) => Err(Failure::Config(Box::new((cli.command, e)))),
    }
}

/// The command may send a call that does work, and neither flag nor environment nor a file that was read says whether
/// it may.
fn may_send_unsaid(matches: &ArgMatches) -> bool {
    let mut m = matches;
    while let Some((_, sub)) = m.subcommand() {
        m = sub;
    }
    let Ok(Some(stopped)) = m.try_get_one::<bool>("read_only") else { return false };
    let words = m.get_raw("read_only").into_iter().flatten();
    let said = m.value_source("read_only") != Some(ValueSource::DefaultValue)
        && words.into_iter().any(|w| !w.is_empty());
    // `attach` may have nobody to send to; what takes no endpoint has servers of its own.
    let to_somebody = m.try_contains_id("where").unwrap_or(true);
    !stopped && !said && to_somebody
}

/// Reads the id of a command that takes one.
fn named(cli: &mut Cli) -> Result<()> {
    match &mut cli.command {
        Some(Command::Find(a)) => a.request_id = a.id.take()?,
        Some(Command::Reissue(a)) => a.request_id = a.id.take()?,
        _ => {}
    }
    Ok(())
}

/// Help that nobody asked for is a mistake, and an id that was taken for a flag has another spelling.
fn no_help(e: clap::Error, args: &[OsString], command: &mut clap::Command) -> clap::Error {
    const SPELLED: &str = "a request_id that looks like a flag is given as --id=VALUE";
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion if !help_was_meant(args) => {
            let asked = args.iter().skip(1).find(|a| a.to_string_lossy().starts_with("-"));
            let asked = asked.map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
            let what = format!("unexpected argument {asked:?}\n\n  tip: {SPELLED}");
            command.error(ErrorKind::UnknownArgument, what)
        }
        ErrorKind::MissingRequiredArgument if takes_id(args) => {
            let mut e = e;
            let tip = clap::builder::StyledStr::from(SPELLED);
            e.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            e
        }
        _ => e,
    }
}

/// What implies another flag can't stand beside what that one excludes.
fn implied(command: clap::Command) -> clap::Command {
    const RULES: [&str; 3] = ["redact_key", "redact_path", "redact_pattern"];
    const OTHERS: [&str; 6] = ["json", "follow", "calls", "limit", "ledger", "filter"];
    let show = |sub: clap::Command| {
        RULES.into_iter().fold(sub, |sub, id| sub.mut_arg(id, |a| a.conflicts_with_all(OTHERS)))
    };
    command.mut_subcommand("show", show)
}

/// `--timeout -1` is a wrong number and not an unknown flag.
fn numbers(command: clap::Command) -> clap::Command {
    let takes = |a: &clap::Arg| a.get_long().is_some() && a.get_action().takes_values();
    command
        .mut_args(|a| if takes(&a) { a.allow_negative_numbers(true) } else { a })
        .mut_subcommands(numbers)
}

fn with_defaults(command: clap::Command, config: &Config) -> clap::Command {
    let s = &config.server;
    let defaults = vec![
        ("stale_seconds", config.ledger.stale_seconds.to_string()),
        ("owners", config.ledger.owners.clone()),
        ("lookup", s.lookup.clone()),
        ("start_timeout", s.start_seconds.to_string()),
    ];
    let limit = s.call_limit().map(|l| l.to_string());
    let read_only = config.read_only;
    command.mut_subcommands(|mut sub| {
        // Where a server can be named, its own entry may hold a limit: that comes before the one for all servers, and
        // is looked for when the endpoint is known.
        let named = sub.get_arguments().any(|a| a.get_id() == "server");
        if let (Some(limit), false) = (&limit, named)
            && sub.get_arguments().any(|a| a.get_id() == "timeout")
        {
            let value = clap::builder::OsStr::from(limit.clone());
            sub = sub.mut_arg("timeout", |a| a.default_value(value));
        }
        for (id, value) in &defaults {
            if sub.get_arguments().any(|a| a.get_id() == id) {
                let value = clap::builder::OsStr::from(value.clone());
                sub = sub.mut_arg(id, |a| a.default_value(value));
            }
        }
        if !s.roots.is_empty() && sub.get_arguments().any(|a| a.get_id() == "root") {
            sub = sub.mut_arg("root", |a| a.default_values(s.roots.clone()));
        }
        if read_only {
            sub = only_reading(sub);
        }
        sub
    })
}

/// `--read-only` where there is such a flag, in commands of commands too.
fn only_reading(mut command: clap::Command) -> clap::Command {
    if command.get_arguments().any(|a| a.get_id() == "read_only") {
        command = command.mut_arg("read_only", |a| a.default_value("true"));
    }
    command.mut_subcommands(only_reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(words: &[&str], config: Config) -> (f64, bool) {
        let args = words.iter().map(OsString::from);
        let Ok((cli, _)) = parse(args, Ok(config)) else { panic!("it parses") };
        match cli.command {
            Some(Command::Attach(a)) => (a.ledger.stale_seconds, a.read_only.read_only),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flag_beats_the_configuration() {
        let attach = ["redial", "attach", "--ledger", "x"];
        let mut config = Config::default();
        assert_eq!(rows(&attach, config.clone()), (120.0, false));
        (config.ledger.stale_seconds, config.read_only) = (30.0, true);
        assert_eq!(rows(&attach, config.clone()), (30.0, true));
        for words in [&["killtest"][..], &["teach"], &["lab", "run", "all"]] {
            let args = [&["redial"], words].concat().into_iter().map(OsString::from);
            let Ok((cli, _)) = parse(args, Ok(config.clone())) else { panic!("it parses") };
            let stopped = match cli.command {
                Some(Command::Killtest(a)) => a.read_only.stops("").is_err(),
                Some(Command::Teach(a)) => a.read_only.stops("").is_err(),
                Some(Command::Lab(a)) => match a.command {
                    crate::cli::args::LabCommand::Run { read_only, .. } => {
                        read_only.stops("").is_err()
                    }
                    _ => false,
                },
                _ => false,
            };
            assert!(stopped, "{words:?}");
        }
        let flag = [&attach[..], &["--stale-seconds", "7"]].concat();
        assert_eq!(rows(&flag, config).0, 7.0);
        implied(numbers(with_defaults(Cli::command(), &Config::default()))).debug_assert();
    }

    #[test]
    fn a_flag_that_would_do_nothing_is_a_mistake() {
        for line in [
            "show f --redact-key k --json",
            "show f --redact-pattern x --calls",
            "show f --redact tool:x",
            "show f --redact --ledger l",
            "show f --calls --follow",
            "show f --owners one",
            "find r --ledger l --lookup t",
            "find r --ledger l --era modern",
            "find r --ledger l --root .",
            "find r --stale-seconds 3 -- x",
            "attach --ledger l --respawn",
            "attach --respawn --http http://h/",
            "batch f --respawn --http http://h/",
            "call t --header A:b -- x",
            "call t --header A:b --server s",
            "record --out o --listen 127.0.0.1:1 -- x",
            "record --out o --listen-anywhere -- x",
            "audit f --timeout 3",
            "audit f --infer --ledger l",
            "audit f --infer --contracts c",
            "tools --http http://h/ --timeout -1",
            "replay f --timeout nan -- x",
            "replay f --dry-run --pace recorded -- x",
            "replay f --dry-run --ignore a -- x",
            "replay f --dry-run --timeout 3 -- x",
        ] {
            let words = ["redial"].into_iter().chain(line.split(' ')).map(OsString::from);
            let told = parse(words, Ok(Config::default()));
            assert!(matches!(told, Err(Failure::Usage(..))), "{line}");
        }
        // What the configuration says of them is no flag.
        let mut config = Config::default();
        (config.ledger.stale_seconds, config.server.start_seconds) = (30.0, 5.0);
        (config.ledger.owners, config.server.roots) = ("one".into(), vec!["/a".into()]);
        for line in ["find r --ledger l", "find r -- x", "audit f", "show f --redact-key k"] {
            let words = ["redial"].into_iter().chain(line.split(' ')).map(OsString::from);
            assert!(parse(words, Ok(config.clone())).is_ok(), "{line}");
        }
    }

    #[test]
    fn roots_come_from_the_file_unless_a_flag_names_others() {
        let mut config = Config::default();
        config.server.roots = vec!["/a".into(), "/b".into()];
        let roots = |words: &[&str]| {
            let all = ["redial", "tools", "--http", "http://x/"].iter().chain(words);
            match parse(all.map(OsString::from), Ok(config.clone())) {
                Ok((Cli { command: Some(Command::Tools(a)) }, _)) => a.endpoint.root,
                _ => panic!("it parses"),
            }
        };
        assert_eq!(
            (roots(&[]), roots(&["--root", "/c"])),
            (config.server.roots.clone(), vec!["/c".into()])
        );
    }

    #[test]
    fn what_may_send_waits_for_a_word_on_a_file_that_nobody_could_look_for() {
        let lost = Config { unheard: Some(Error::usage("HOME is no folder")), ..Config::default() };
        let strict = Config { read_only: true, ..lost.clone() };
        let runs = |line: &str, config: &Config| {
            let words = ["redial"].into_iter().chain(line.split(' ')).map(OsString::from);
            match parse(words, Ok(config.clone())) {
                Ok(_) => true,
                Err(Failure::Config(both)) => {
                    assert!(both.1.hint.is_some_and(|h| h.contains("REDIAL_READ_ONLY=0")));
                    false
                }
                Err(Failure::Usage(e, _)) => panic!("{line}: {e}"),
            }
        };
        for line in [
            "call t --http http://h/",
            "reissue r -- x",
            "batch f -- x",
            "replay f -- x",
            "attach --ledger l -- x",
            "audit f --fresh-sessions -- x",
            "killtest",
            "lab run all",
            "teach",
        ] {
            assert!(!runs(line, &lost), "{line}");
            assert!(runs(line, &Config::default()) && runs(line, &strict), "{line}");
        }
        for line in ["rows --ledger l", "find r -- x", "attach --ledger l", "audit f", "lab list"] {
            assert!(runs(line, &lost), "{line}");
        }
        assert!(runs("call t --read-only --http http://h/", &lost));
    }

    #[test]
    fn a_wrong_file_stops_what_would_use_it_and_nothing_else() {
        let wrong = || Err(Error::usage("redial.toml: no"));
        let run = |words: &[&str]| parse(words.iter().map(OsString::from), wrong());
        assert!(matches!(run(&["redial", "rows", "--ledger", "x"]), Err(Failure::Config(..))));
        assert!(matches!(run(&["redial", "--help"]), Err(Failure::Usage(..))));
        let tap = ["redial", "record", "--out", "x", "--", "server"];
        assert!(matches!(run(&tap), Err(Failure::Config(..))));
        let Ok((_, config)) = run(&["redial", "serve", "tickets"]) else { panic!("it starts") };
        assert!(config.unheard.is_some(), "and says so");
    }
}
