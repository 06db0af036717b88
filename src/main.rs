//! The binary: parses and dispatches, nothing else.
use clap::{Parser, Subcommand};
use redial::error::Error;
use redial::serve::{self, ChargeOptions, Offer, ServeOptions, TicketOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
enum Cli {
    /// The built-in servers.
    #[command(subcommand)]
    Serve(Serve),
}

#[derive(Subcommand)]
enum Serve {
    Tickets {
        #[arg(long)]
        http: Option<String>,
        #[arg(long, default_value = "ledger.db")]
        ledger: PathBuf,
        #[arg(long, default_value_t = 0.0)]
        work_seconds: f64,
        #[arg(long, default_value_t = 20.0)]
        wait_seconds: f64,
        #[arg(long, hide = true)]
        fail_title: Option<String>,
    },
    Charge {
        #[arg(long)]
        http: Option<String>,
        #[arg(long, default_value = "charges.jsonl")]
        effects: PathBuf,
        #[arg(long, default_value_t = 0.0)]
        work_seconds: f64,
    },
}

fn main() -> ExitCode {
    let Cli::Serve(serve) = Cli::parse();
    let options = match serve {
        Serve::Tickets { http, ledger, work_seconds, wait_seconds, fail_title } => ServeOptions {
            http,
            offer: Offer::Tickets(TicketOptions { ledger, work_seconds, wait_seconds, fail_title }),
        },
        Serve::Charge { http, effects, work_seconds } => {
            ServeOptions { http, offer: Offer::Charge(ChargeOptions { effects, work_seconds }) }
        }
    };
    let served = match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let served = runtime.block_on(serve::run(options));
            runtime.shutdown_timeout(Duration::from_millis(100));
            served
        }
        Err(e) => Err(Error::endpoint(format!("no runtime: {e}"))),
    };
    let exit = served.unwrap_or_else(|e| {
        let _ = writeln!(std::io::stderr().lock(), "redial: {e}");
        e.exit
    });
    ExitCode::from(exit as u8)
}
