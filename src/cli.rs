//! The command line face: one small file a command, plain and JSON from the same value, printed through
//! `plain` and `json` alone. Nothing below knows this module.

mod answer;
pub mod args;
mod attach;
mod audit;
mod batch;
mod call;
mod configured;
mod connect;
mod demo;
mod endpoint;
mod failure;
mod find;
mod gate;
mod help;
mod interrupt;
pub mod json;
mod killtest;
mod lab;
mod mock;
mod open;
pub mod plain;
mod record;
pub mod recorded;
mod reissue;
mod replay;
mod report;
mod rows;
mod serve;
mod show;
mod teach;
mod tools;
mod usage;
mod verify;

use crate::config::Config;
use crate::error::Exit;
use args::Command;
use clap::error::ErrorKind;
use failure::Asked;
use report::Done;

/// Parses `args` (with the program's name first), runs the command, prints its report or its error, and
/// says the exit status. (Not generic: what it calls would be compiled once more in every program that calls it.)
pub fn main(args: Vec<std::ffi::OsString>) -> u8 {
    if let Some(status) = record::exec(&args) {
        return status;
    }
    // What a child leaves behind comes to us: nobody else could say whether it is gone.
    crate::procs::adopt_orphans();
    let (cli, config) = match configured::parse(args.iter().cloned(), Config::load()) {
        Ok(both) => both,
        Err(configured::Failure::Usage(e, whole)) => {
            return match e.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => usage::help(&e, &whole),
                _ => usage::mistake(&e, &args),
            } as u8;
        }
        Err(configured::Failure::Config(both)) => {
            let (command, e) = *both;
            return Asked::of(command.as_ref()).failed(&e.into()) as u8;
        }
    };
    // A tap has no runtime, and its exit status is the server's.
    if let Some(Command::Record(a)) = &cli.command {
        return record::run(a, &config);
    }
    if let Some(e) = &config.unheard {
        plain::complain(&format!("{e}\n  the configuration is not used"));
    }
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(r) => r,
            Err(e) => {
                plain::complain(&format!("no threads to run on: {e}"));
                return Exit::Endpoint as u8;
            }
        };
    let asked = Asked::of(cli.command.as_ref());
    if let Some(Command::Mock(a)) = &cli.command {
        let done = runtime.block_on(mock::run(a));
        runtime.shutdown_timeout(std::time::Duration::from_millis(200));
        return done.unwrap_or_else(|e| asked.failed(&e.into()) as u8);
    }
    let done = runtime.block_on(run(cli.command, &config));
    // Blocking jobs that nobody waits for must not hold the exit up.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    crate::ledger::remove_private_copies();
    match done {
        // Who reads the exit status only must not take a report for given; but of what was sent it tells what became of
        // it, since 2 says that nothing was done and a script may do it again.
        Ok(exit) => match (exit, plain::all_written()) {
            (Exit::Good, false) if !asked.sends => Exit::Usage as u8,
            _ => exit as u8,
        },
        Err(failure) => asked.failed(&failure) as u8,
    }
}

async fn run(command: Option<Command>, config: &Config) -> Done {
    match command {
        None if attach::has_terminal() => attach::demo(config).await,
        None => demo::run().await,
        Some(Command::Attach(a)) => attach::run(a, config).await,
        Some(Command::Rows(a)) => interrupt::reading(rows::run(a)).await,
        Some(Command::Find(a)) if a.endpoint.is_none() => {
            let config = config.clone();
            interrupt::reading(async move { find::run(a, &config).await }).await
        }
        Some(Command::Find(a)) => find::run(a, config).await,
        Some(Command::Reissue(a)) => reissue::run(a, config).await,
        Some(Command::Tools(a)) => tools::run(a, config).await,
        Some(Command::Call(a)) => call::run(a, config).await,
        Some(Command::Killtest(a)) => killtest::run(a, config).await,
        Some(Command::Lab(a)) => lab::run(a, config).await,
        Some(Command::Teach(a)) => teach::run(a).await,
        Some(Command::Batch(a)) => batch::run(a, config).await,
        Some(Command::Verify(a)) => interrupt::reading(verify::run(a)).await,
        Some(Command::Serve(a)) => serve::run(a).await,
        // Taken in `main`, before there was a runtime.
        Some(Command::Record(_)) => Ok(Exit::Good),
        Some(Command::Show(a)) => show::run(a, config).await,
        Some(Command::Replay(a)) => replay::run(a, config).await,
        // Taken in `main`: its exit status can be the recorded server's.
        Some(Command::Mock(_)) => Ok(Exit::Good),
        Some(Command::Audit(a)) => audit::run(a, config).await,
    }
}
