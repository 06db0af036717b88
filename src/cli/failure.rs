//! A command that could not do what it is for: words on stderr, and with `--json` a document on stdout that holds
//! the command's own fields too, as far as they are known then. Never prints a report of success.

use super::args::{Command, ReissueArgs};
use super::json::{document, line, raw_value};
use super::plain::{Plain, complain, print_raw};
use super::report::{CallJson, Failure, Witness, clip};
use crate::error::{Error, Exit};
use serde::Serialize;
use serde_json::value::RawValue;

/// What was asked for, kept for the case that it fails.
pub struct Asked {
    name: &'static str,
    json: bool,
    about: About,
    /// It makes calls that may do work.
    pub sends: bool,
}

enum About {
    Rows,
    Verify,
    Find { id: String },
    Tools,
    Call { tool: String, args: Option<String> },
    Reissue { id: String, tool: Option<String>, args: Option<String> },
    Batch,
    Other,
}

impl Asked {
    /// From the parsed command; `None` is the demo.
    pub fn of(command: Option<&Command>) -> Asked {
        let (name, json, about) = match command {
            None => ("demo", false, About::Other),
            Some(Command::Attach(_)) => ("attach", false, About::Other),
            Some(Command::Serve(_)) => ("serve", false, About::Other),
            Some(Command::Killtest(a)) => ("killtest", a.json, About::Other),
            Some(Command::Lab(a)) => ("lab", a.json(), About::Other),
            Some(Command::Teach(_)) => ("teach", false, About::Other),
            Some(Command::Verify(a)) => ("verify", a.json, About::Verify),
            Some(Command::Record(_)) => ("record", false, About::Other),
            Some(Command::Mock(_)) => ("mock", false, About::Other),
            Some(Command::Show(a)) => ("show", a.json, About::Other),
            Some(Command::Audit(a)) => ("audit", a.json, About::Other),
            Some(Command::Replay(a)) => ("replay", a.json, About::Other),
            Some(Command::Rows(a)) => ("rows", a.json, About::Rows),
            Some(Command::Find(a)) => ("find", a.json, About::Find { id: a.request_id.clone() }),
            Some(Command::Tools(a)) => ("tools", a.json, About::Tools),
            Some(Command::Call(a)) => {
                // Those of a file may be what can't be read.
                let none = || a.args_file.is_none().then(|| "{}".to_owned());
                let args = a.args.clone().or_else(none);
                ("call", a.one.json, About::Call { tool: a.tool.clone(), args })
            }
            Some(Command::Batch(a)) => ("batch", a.json, About::Batch),
            Some(Command::Reissue(a)) => ("reissue", a.one.json, reissue(a)),
        };
        let sends = match command {
            Some(Command::Audit(a)) => a.fresh_sessions,
            Some(
                Command::Call(_)
                | Command::Reissue(_)
                | Command::Batch(_)
                | Command::Replay(_)
                | Command::Killtest(_)
                | Command::Lab(_),
            ) => true,
            _ => false,
        };
        Asked { name, json, about, sends }
    }

    /// A command that the parser never got to the end of.
    pub fn unparsed(name: &'static str) -> Asked {
        let about = match name {
            "rows" => About::Rows,
            "verify" => About::Verify,
            "find" => About::Find { id: String::new() },
            "tools" => About::Tools,
            "call" => About::Call { tool: String::new(), args: None },
            "reissue" => About::Reissue { id: String::new(), tool: None, args: None },
            "batch" => About::Batch,
            _ => About::Other,
        };
        Asked { name, json: true, about, sends: false }
    }

    /// Prints the document of a failure that was told in words already.
    pub fn documented(&self, error: &Error) {
        print_raw(&self.document(error, None));
    }

    /// Prints the failure, and says the exit status.
    pub fn failed(&self, failure: &Failure) -> Exit {
        let Failure { error, witness } = failure;
        let mut p = Plain::stderr();
        // A mistake in what was asked is not the server's: its words would only hide the sentence.
        if let Some(w) =
            witness.as_ref().filter(|_| !matches!(error.exit, Exit::Usage | Exit::Gate))
        {
            w.tails(&mut p, "");
        }
        p.complain();
        complain(&clip(&error.to_string()));
        if self.json {
            print_raw(&self.document(error, witness.as_ref()));
        }
        error.exit
    }

    fn document(&self, error: &Error, witness: Option<&Witness>) -> String {
        let schema = format!("redial/{}@1", self.name);
        let why = error.what.clone();
        let next = error.hint.clone().unwrap_or_default();
        let words = ErrorJson::of(error);
        let witness = witness.cloned().unwrap_or_default();
        match &self.about {
            About::Rows => document(&Rows { schema, error: words, ..Rows::default() }),
            About::Verify => document(&Verify { schema, error: words, ..Verify::default() }),
            About::Find { id } => document(&Find {
                schema,
                request_id: id.clone(),
                state: "unknown",
                server_why: why.clone(),
                why,
                pairing: "unproven",
                next,
                error: words,
                witness,
                ..Find::default()
            }),
            About::Tools => document(&Tools { schema, error: words, witness, ..Tools::default() }),
            About::Call { tool, args } => document(&Call {
                schema,
                call: CallJson::failed(tool, args.as_deref(), error, witness),
            }),
            About::Reissue { id, tool, args } => {
                let tool = tool.as_deref().unwrap_or_default();
                let call = CallJson::failed(tool, args.as_deref(), error, witness);
                document(&Reissue {
                    call: Call { schema, call },
                    request_id: id.clone(),
                    state_after: "unknown",
                    pairing: "unproven",
                    next,
                    ..Reissue::default()
                })
            }
            // A line, as its reader expects them.
            About::Batch => line(&Bare { schema, error: words, witness }),
            About::Other => document(&Bare { schema, error: words, witness }),
        }
    }
}

fn reissue(a: &ReissueArgs) -> About {
    About::Reissue { id: a.request_id.clone(), tool: a.tool.clone(), args: a.args.clone() }
}

/// An error as JSON: the three names of a JSON-RPC error, and what redial adds.
#[derive(Serialize, Default)]
pub struct ErrorJson {
    code: Option<i64>,
    message: String,
    data: Option<()>,
    hint: Option<String>,
    exit_status: u8,
}

impl ErrorJson {
    /// From an error of ours.
    pub fn of(error: &Error) -> ErrorJson {
        ErrorJson {
            message: error.what.clone(),
            hint: error.hint.clone(),
            exit_status: error.exit as u8,
            ..ErrorJson::default()
        }
    }

    /// For a place that holds errors of others, too.
    pub fn raw(error: &Error) -> Option<Box<RawValue>> {
        raw_value(&line(&ErrorJson::of(error)))
    }
}

/// Null, not empty: nobody could count.
#[derive(Serialize, Default)]
struct Rows {
    schema: String,
    error: ErrorJson,
    counts: Option<()>,
    effects: Option<()>,
    rows: Option<()>,
}

#[derive(Serialize, Default)]
struct Verify {
    schema: String,
    error: ErrorJson,
    requests: Option<()>,
    effects: Option<()>,
    exactly_once: Option<bool>,
    problems: Option<()>,
}

#[derive(Serialize, Default)]
struct Find {
    schema: String,
    request_id: String,
    state: &'static str,
    why: String,
    ledger: Option<()>,
    server: Option<()>,
    server_why: String,
    pairing: &'static str,
    verdict: [String; 0],
    next: String,
    error: ErrorJson,
    #[serde(flatten)]
    witness: Witness,
}

#[derive(Serialize, Default)]
struct Tools {
    schema: String,
    error: ErrorJson,
    server: Option<()>,
    tools: Option<()>,
    dropped: Option<()>,
    #[serde(flatten)]
    witness: Witness,
}

#[derive(Serialize, Default)]
struct Call {
    schema: String,
    #[serde(flatten)]
    call: CallJson,
}

#[derive(Serialize, Default)]
struct Reissue {
    #[serde(flatten)]
    call: Call,
    request_id: String,
    hash_matches: Option<bool>,
    replayed: Option<bool>,
    state_after: &'static str,
    pairing: &'static str,
    effects_before: Option<u64>,
    effects_after: Option<u64>,
    effects_total_before: Option<u64>,
    effects_total_after: Option<u64>,
    verdict: [String; 0],
    next: String,
}

#[derive(Serialize)]
struct Bare {
    schema: String,
    error: ErrorJson,
    #[serde(flatten)]
    witness: Witness,
}
