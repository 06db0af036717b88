//! `serve tickets`: `create_ticket`, safe to call twice with the same request_id, and `find_request`, the way out
//! when nobody knows what became of a call. The tools and their hints; the ledger is `store`.

use super::faults::Faults;
use super::stop::{Stop, Stopped};
use super::store::{Failure, Store};
use super::tool::{Outcome, Tool, ToolSet, string};
use crate::error::{Error, Result};
use crate::files;
use crate::wire::id::Id;
use std::io::Read;
use std::path::{Path, PathBuf};

/// `redial serve tickets`.
#[derive(Debug, Clone)]
pub struct TicketOptions {
    /// `--ledger FILE`, made when it isn't there.
    pub ledger: PathBuf,
    /// `--work-seconds S`: how long the work of one ticket takes.
    pub work_seconds: f64,
    /// `--wait-seconds S`: how long a call waits for another that works on the same request (the reference: 20).
    pub wait_seconds: f64,
    /// `--fail-title TEXT` (hidden; for tests): work on a ticket of this title fails.
    pub fail_title: Option<String>,
}

impl Default for TicketOptions {
    fn default() -> TicketOptions {
        TicketOptions {
            ledger: "ledger.db".into(),
            work_seconds: 0.0,
            wait_seconds: 20.0,
            fail_title: None,
        }
    }
}

pub struct Tickets(Store);

impl Tickets {
    /// Opens the ledger once, so that a wrong path ends the server and not each call; prints the boot id.
    pub fn open(options: TicketOptions, stop: Stop, faults: Faults) -> Result<Tickets> {
        let store = Store {
            owner: super::uuid_hex()
                .map_err(|e| Error::usage(format!("no randomness for a boot id: {e}")))?,
            work: super::seconds("--work-seconds", options.work_seconds)?,
            wait: super::seconds("--wait-seconds", options.wait_seconds)?,
            path: options.ledger,
            fail_title: options.fail_title,
            stop,
            faults,
        };
        let wrong = |why: String| {
            Error::ledger(format!("the ledger {} can't be used: {why}", store.path.display()))
                .hint("--ledger names an SQLite file of this server, or one to be made in an existing folder")
        };
        // A new ledger gets its tables now, so that it can be attached to; one that is there is not touched.
        if is_new(&store.path).map_err(wrong)? {
            store.connect().map_err(|e| wrong(e.to_string()))?;
        }
        super::log(&format!("boot id {}", store.owner));
        Ok(Tickets(store))
    }
}

/// Whether there is no ledger yet, by a look alone: like the reference, one that is there is opened only for a
/// call, so that a server that is merely started changes nothing in it. An error when the file is no SQLite file.
fn is_new(path: &Path) -> std::result::Result<bool, String> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut head = Vec::new();
    files::ordinary(path).map_err(|e| e.to_string())?;
    match std::fs::File::open(path) {
        Ok(file) => {
            file.take(MAGIC.len() as u64).read_to_end(&mut head).map_err(|e| e.to_string())?
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e.to_string()),
    };
    match head.as_slice() {
        [] => Ok(true),
        MAGIC => Ok(false),
        _ => Err("it is no SQLite file".into()),
    }
}

impl ToolSet for Tickets {
    fn name(&self) -> &'static str {
        "ticket-ledger"
    }

    fn tools(&self) -> &'static [Tool] {
        &TOOLS
    }

    fn call(&self, _id: &Id, tool: &str, arguments: &str) -> Result<Outcome, Stopped> {
        let done = match tool {
            "create_ticket" => {
                let wanted = ["request_id", "title", "body"].map(|key| string(arguments, key));
                match wanted {
                    [Ok(request_id), Ok(title), Ok(body)] => {
                        self.0.create_ticket(&request_id, &title, &body)
                    }
                    wanted => return Ok(refused(tool, wanted)),
                }
            }
            _ => match string(arguments, "request_id") {
                Ok(request_id) => self.0.find_request(&request_id),
                Err(why) => return Ok(refused(tool, [Err(why)])),
            },
        };
        match done {
            Ok(json) => Ok(Outcome::Json(json)),
            Err(Failure::Stopped(s)) => Err(s),
            Err(e) => Ok(Outcome::Failed(format!("Error executing tool {tool}: {e}"))),
        }
    }
}

/// All that is wrong with the arguments, in one tool error (as FastMCP answers, not as -32602).
fn refused<const N: usize>(
    tool: &str,
    wanted: [std::result::Result<String, String>; N],
) -> Outcome {
    let why: Vec<String> = wanted.into_iter().filter_map(std::result::Result::err).collect();
    Outcome::Failed(format!("Error executing tool {tool}: {}", why.join("; ")))
}

static TOOLS: [Tool; 2] = [
    Tool {
        name: "create_ticket",
        description: "Creates one ticket. request_id: make a new unique string (a UUID, say; 1 to 64 characters) for \
                      each new ticket. When trying again after an error or a lost connection make no new one: look \
                      it up with find_request first, then call again with the same request_id and the same \
                      arguments. An answer with status in_progress means that it is not finished.",
        input_schema: r#"{"type":"object","properties":{"request_id":{"type":"string","minLength":1,"maxLength":64},"title":{"type":"string"},"body":{"type":"string"}},"required":["request_id","title","body"]}"#,
        annotations: r#"{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}"#,
    },
    Tool {
        name: "find_request",
        description: "Says what became of the request_id that was given to create_ticket: status is done, running, \
                      abandoned or unknown.",
        input_schema: r#"{"type":"object","properties":{"request_id":{"type":"string"}},"required":["request_id"]}"#,
        annotations: r#"{"readOnlyHint":true}"#,
    },
];
