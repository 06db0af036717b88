//! Parse, dispatch, exit status; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(redial::cli::main(std::env::args_os().collect()))
}
