//! `serve charge`: the tool that must not be called twice (the four reproductions of the article on retry safety of
//! MCP tools). Its effect is a line in a file, written *before* the time the call takes, and it has no key.

use super::faults::{Faults, KillPoint};
use super::stop::{Stop, Stopped};
use super::tool::{Outcome, Tool, ToolSet};
use crate::error::{Error, Result};
use crate::files;
use crate::json::python::float_repr;
use crate::json::raw;
use crate::text::visible;
use crate::time::Time;
use crate::wire::id::Id;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `redial serve charge`.
#[derive(Debug, Clone)]
pub struct ChargeOptions {
    /// `--effects FILE`: one JSON line for each charge, appended.
    pub effects: PathBuf,
    /// `--work-seconds S`: how long a call sleeps after its effect.
    pub work_seconds: f64,
}

impl Default for ChargeOptions {
    fn default() -> ChargeOptions {
        ChargeOptions { effects: "charges.jsonl".into(), work_seconds: 0.0 }
    }
}

pub struct Charge {
    effects: PathBuf,
    work: Duration,
    stop: Stop,
    faults: Faults,
    /// Where its lines for people go.
    log: fn(&str),
}

impl Charge {
    /// Opens the effects file once, so that a wrong path ends the server and not each call.
    pub fn open(options: ChargeOptions, stop: Stop, faults: Faults) -> Result<Charge> {
        let work = super::seconds("--work-seconds", options.work_seconds)?;
        append(&options.effects).map_err(|e| {
            Error::ledger(format!(
                "the effects file {} can't be written: {e}",
                options.effects.display()
            ))
        })?;
        Ok(Charge { effects: options.effects, work, stop, faults, log: super::log })
    }
}

impl ToolSet for Charge {
    fn name(&self) -> &'static str {
        "charge"
    }

    fn tools(&self) -> &'static [Tool] {
        &TOOLS
    }

    fn call(&self, id: &Id, tool: &str, arguments: &str) -> Result<Outcome, Stopped> {
        let Some(amount) = raw::get(arguments, "amount").and_then(number) else {
            return Ok(Outcome::Failed(format!(
                "Error executing tool {tool}: amount must be a number"
            )));
        };
        self.faults.reached(KillPoint::BeforeClaim);
        let amount = float_repr(amount);
        let line = format!(
            "{{\"time\":\"{}\",\"reqId\":{},\"amount\":{amount},\"pid\":{}}}\n",
            Time::now().rfc3339(),
            id.to_json(),
            std::process::id()
        );
        // It claims nothing and commits nothing: its points are before and after its one write.
        self.faults.reached(KillPoint::BeforeCommit);
        // One write on an O_APPEND file: charges of several processes never mix within a line.
        if let Err(e) =
            append(&self.effects).and_then(|mut f| f.write_all(line.as_bytes()).and(f.flush()))
        {
            return Ok(Outcome::Failed(format!(
                "Error executing tool {tool}: the charge was not written: {e}"
            )));
        }
        (self.log)(&format!(
            r#"SIDE EFFECT COMMITTED {{"reqId":{},"amount":{amount}}}"#,
            visible(&id.to_json())
        ));
        self.stop.pause(self.work / 2)?;
        self.faults.reached(KillPoint::DuringWork);
        self.stop.pause(self.work - self.work / 2)?;
        self.faults.reached(KillPoint::AfterCommit);
        Ok(Outcome::Text(format!("charged {amount}")))
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    files::ordinary(path)?;
    OpenOptions::new().append(true).create(true).open(path)
}

/// A JSON number that fits a double.
fn number(value: &str) -> Option<f64> {
    serde_json::from_str::<f64>(value).ok().filter(|n| n.is_finite())
}

static TOOLS: [Tool; 1] = [Tool {
    name: "charge",
    description: "Charges an amount. Each call charges again: there is no key by which a repeat could be told.",
    input_schema: r#"{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}"#,
    annotations: r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}"#,
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_a_line_and_an_amount_that_is_none_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let effects = dir.path().join("charges.jsonl");
        let mut c = Charge::open(
            ChargeOptions { effects: effects.clone(), work_seconds: 0.0 },
            Stop::default(),
            Faults::default(),
        )
        .unwrap();
        c.log = |_| ();
        let id = Id::from_raw("\"a\"");
        for _ in 0..2 {
            assert_eq!(
                c.call(&id, "charge", r#"{"amount":100}"#),
                Ok(Outcome::Text("charged 100.0".into()))
            );
        }
        for bad in ["{}", r#"{"amount":"100"}"#, r#"{"amount":1e999}"#, r#"{"amount":null}"#] {
            assert!(matches!(c.call(&id, "charge", bad), Ok(Outcome::Failed(_))), "{bad}");
        }
        let text = std::fs::read_to_string(&effects).unwrap();
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            assert_eq!(raw::get(line, "reqId"), Some("\"a\""));
            assert_eq!(raw::get(line, "amount"), Some("100.0"));
            assert_eq!(raw::get(line, "pid"), Some(std::process::id().to_string().as_str()));
            assert!(raw::get_str(line, "time").is_some_and(|t| t.ends_with('Z')));
        }
    }

    #[test]
    fn the_charge_is_made_before_the_end_cuts_the_call_short() {
        let dir = tempfile::tempdir().unwrap();
        let effects = dir.path().join("charges.jsonl");
        let stop = Stop::default();
        let mut c = Charge::open(
            ChargeOptions { effects: effects.clone(), work_seconds: 3600.0 },
            stop.clone(),
            Faults::default(),
        )
        .unwrap();
        c.log = |_| ();
        stop.stop();
        assert_eq!(c.call(&Id::from(1), "charge", r#"{"amount":1}"#), Err(Stopped));
        assert_eq!(std::fs::read_to_string(&effects).unwrap().lines().count(), 1);
    }
}
