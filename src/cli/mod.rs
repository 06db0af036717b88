//! The command line face: one small file a command, plain and JSON from the same value, printed through
//! `plain` and `json` alone. Nothing below knows this module.

pub mod args;
mod attach;
mod call;
mod configured;
mod connect;
mod demo;
mod failure;
mod find;
mod gate;
mod interrupt;
pub mod json;
mod open;
pub mod plain;
mod reissue;
mod report;
mod rows;
mod serve;
mod tools;
mod verify;

use crate::config::Config;
use crate::error::Exit;
use args::Command;
use clap::error::ErrorKind;
use failure::Asked;
use report::Done;

/// Parses `args` (with the program's name first), runs the command, prints its report or its error, and
/// says the exit status.
pub fn main(args: impl Iterator<Item = std::ffi::OsString>) -> Exit {
    let (cli, config) = match configured::parse(args, Config::load()) {
        Ok(both) => both,
        Err(configured::Failure::Usage(e)) => {
            failure::usage(&e);
            return match e.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Good,
                _ => Exit::Usage,
            };
        }
        Err(configured::Failure::Config(both)) => {
            let (command, e) = *both;
            return Asked::of(command.as_ref()).failed(&e.into());
        }
    };
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(r) => r,
            Err(e) => {
                plain::complain(&format!("no threads to run on: {e}"));
                return Exit::Endpoint;
            }
        };
    let asked = Asked::of(cli.command.as_ref());
    let done = runtime.block_on(run(cli.command, &config));
    // Blocking jobs that nobody waits for must not hold the exit up.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match done {
        Ok(exit) => exit,
        Err(failure) => asked.failed(&failure),
    }
}

async fn run(command: Option<Command>, config: &Config) -> Done {
    match command {
        None if attach::has_terminal() => attach::demo(config).await,
        None => demo::run().await,
        Some(Command::Attach(a)) => attach::run(a, config).await,
        Some(Command::Rows(a)) => rows::run(a).await,
        Some(Command::Find(a)) => find::run(a).await,
        Some(Command::Reissue(a)) => reissue::run(a, config).await,
        Some(Command::Tools(a)) => tools::run(a).await,
        Some(Command::Call(a)) => call::run(a, config).await,
        Some(Command::Verify(a)) => verify::run(a).await,
        Some(Command::Serve(a)) => serve::run(a).await,
    }
}
