//! The command line face: one small file a command, plain and JSON from the same value, printed through
//! `plain` and `json` alone. Nothing below knows this module.

pub mod args;
mod attach;
mod call;
mod connect;
mod demo;
mod find;
mod gate;
pub mod json;
mod open;
pub mod plain;
mod record;
mod reissue;
mod report;
mod rows;
mod serve;
mod tools;

use crate::error::Exit;
use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use report::{Done, Failure};
use serde::Serialize;

/// Parses `args` (with the program's name first), runs the command, prints its report or its error, and
/// says the exit status.
pub fn main(args: impl Iterator<Item = std::ffi::OsString>) -> u8 {
    let args: Vec<_> = args.collect();
    if let Some(status) = record::exec(&args) {
        return status;
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // clap writes help to stdout and mistakes to stderr; a closed pipe is nobody's error.
            e.print().ok();
            return match e.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Good as u8,
                _ => Exit::Usage as u8,
            };
        }
    };
    // A tap has no runtime, and its exit status is the server's.
    if let Some(Command::Record(a)) = &cli.command {
        return record::run(a);
    }
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(r) => r,
            Err(e) => {
                plain::complain(&format!("no threads to run on: {e}"));
                return Exit::Endpoint as u8;
            }
        };
    let (name, wants_json) = describe(cli.command.as_ref());
    let done = runtime.block_on(run(cli.command));
    // Blocking jobs that nobody waits for must not hold the exit up.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match done {
        Ok(exit) => exit as u8,
        Err(failure) => complain(&failure, name, wants_json) as u8,
    }
}

async fn run(command: Option<Command>) -> Done {
    match command {
        None if attach::has_terminal() => attach::demo().await,
        None => demo::run().await,
        Some(Command::Attach(a)) => attach::run(a).await,
        Some(Command::Rows(a)) => rows::run(a).await,
        Some(Command::Find(a)) => find::run(a).await,
        Some(Command::Reissue(a)) => reissue::run(a).await,
        Some(Command::Tools(a)) => tools::run(a).await,
        Some(Command::Call(a)) => call::run(a).await,
        Some(Command::Serve(a)) => serve::run(a).await,
        // Taken in `main`, before there was a runtime.
        Some(Command::Record(_)) => Ok(Exit::Good),
    }
}

/// The command's name and whether it was asked for JSON.
fn describe(command: Option<&Command>) -> (&'static str, bool) {
    match command {
        None => ("demo", false),
        Some(Command::Attach(_)) => ("attach", false),
        Some(Command::Rows(a)) => ("rows", a.json),
        Some(Command::Find(a)) => ("find", a.json),
        Some(Command::Reissue(a)) => ("reissue", a.json),
        Some(Command::Tools(a)) => ("tools", a.json),
        Some(Command::Call(a)) => ("call", a.json),
        Some(Command::Serve(_)) => ("serve", false),
        Some(Command::Record(_)) => ("record", false),
    }
}

/// The one place where errors are printed: words on stderr, and with `--json` a document on stdout too.
fn complain(failure: &Failure, name: &str, wants_json: bool) -> Exit {
    #[derive(Serialize)]
    struct Doc<'a> {
        schema: String,
        error: Words<'a>,
        #[serde(flatten)]
        witness: Option<&'a report::Witness>,
    }
    #[derive(Serialize)]
    struct Words<'a> {
        message: &'a str,
        hint: Option<&'a str>,
        exit_status: u8,
    }
    let Failure { error, witness } = failure;
    if let Some(w) = witness {
        for line in &w.stderr {
            plain::complain_more(&format!("  │ {line}"));
        }
        for line in &w.noise {
            plain::complain_more(&format!("  │ (stdout) {line}"));
        }
    }
    plain::complain(&error.to_string());
    if wants_json {
        let doc = Doc {
            schema: format!("redial/{name}@1"),
            error: Words {
                message: &error.what,
                hint: error.hint.as_deref(),
                exit_status: error.exit as u8,
            },
            witness: witness.as_ref(),
        };
        // Stdout gone: the words are on stderr.
        plain::print_raw(&json::document(&doc)).ok();
    }
    error.exit
}
