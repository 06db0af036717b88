//! Runs the real `redial` binary and reads what it said.

use redial::json::raw;
use std::process::{Command, Output, Stdio};

pub struct Ran {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn from(out: Output) -> Ran {
        Ran {
            exit: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }

    /// A member of the JSON document, raw.
    pub fn get(&self, path: &[&str]) -> String {
        raw::get_path(&self.stdout, path)
            .unwrap_or_else(|| panic!("no {path:?} in {}\n{}", self.stdout, self.stderr))
            .to_owned()
    }

    /// The same, decoded.
    pub fn text(&self, path: &[&str]) -> String {
        let raw = self.get(path);
        raw::as_str(&raw).unwrap_or(raw)
    }

    /// Everything that reached the terminal or a pipe.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

pub fn command(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_redial"));
    c.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c.env_remove("REDIAL_READ_ONLY");
    c
}

/// Runs to the end.
pub fn redial(args: &[&str]) -> Ran {
    Ran::from(command(args).output().unwrap())
}

/// Runs to the end, started now: join it to see what it said.
pub fn redial_soon(args: &[&str]) -> std::thread::JoinHandle<Ran> {
    let child = command(args).spawn().unwrap();
    std::thread::spawn(move || Ran::from(child.wait_with_output().unwrap()))
}
