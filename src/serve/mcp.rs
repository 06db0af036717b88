//! MCP of a server with tools, from frame to answer text, for both eras in one process: 2026-07-28, where each request
//! carries its version, and 2025-11-25 and older, opened by `initialize`. A request that carries a version is
//! modern, any other legacy.
//!
//! Knows no bytes, no sessions and no headers. A legacy request before `initialize` is answered: nothing here depends
//! on what was said before.

use super::faults::{Faults, Instead};
use super::stop::Stopped;
use super::tool::{Outcome, ToolSet};
use crate::json::raw::{self, quote};
use crate::wire::frame::{self, Frame};
use crate::wire::id::Id;
use serde_json::value::RawValue;

/// The modern revision spoken here.
pub const MODERN: &str = "2026-07-28";
/// The legacy revisions spoken here, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// `_meta` key of the version a modern request is made in (2026-07-28 basic, "`_meta`").
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Header and body of a modern request differ.
pub const HEADER_MISMATCH: i64 = -32020;
const PARSE: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
/// Missing or wrong parameters; also an unknown tool.
pub const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// What one message asks for.
#[derive(Debug)]
pub enum Step {
    /// No answer: a notification, or an answer to a question that was never asked.
    Nothing,
    /// `notifications/cancelled` for this id.
    Cancel(Id),
    /// Answered at once.
    Answer(Answer),
    /// A tool is to be called: [`Server::call`], on a thread that may block.
    Call(Call),
}

/// An answer and the HTTP status that the 2026-07-28 binding gives it (200 for what only legacy knows).
#[derive(Debug)]
pub struct Answer {
    pub json: String,
    pub status: u16,
}

/// A call that can be carried out.
#[derive(Debug)]
pub struct Call {
    pub id: Id,
    era: Era,
    tool: String,
    arguments: String,
}

/// Why a request is refused.
struct Refusal {
    code: i64,
    message: String,
    data: Option<String>,
    status: u16,
}

impl Refusal {
    fn new(code: i64, message: impl Into<String>, status: u16) -> Refusal {
        Refusal { code, message: message.into(), data: None, status }
    }
}

/// A tool set behind MCP.
pub struct Server(Box<dyn ToolSet>, Faults);

impl Server {
    /// Serves `tools`, with what is to go wrong.
    pub fn new(tools: impl ToolSet, faults: Faults) -> Server {
        Server(Box::new(tools), faults)
    }

    /// What a transport does to the next call instead of handling it.
    pub fn instead(&self) -> Option<Instead> {
        self.1.instead()
    }

    /// Whether the answer of a call that was carried out is lost on its way.
    pub fn drops_answer(&self) -> bool {
        self.1.drops_answer()
    }

    /// What `frame` (parsed from `text`) asks for.
    pub fn step(&self, text: &str, frame: Frame<'_>) -> Step {
        let (id, refusal) = match frame {
            Frame::Request { id: Id::Null, .. } => {
                (Id::Null, Refusal::new(INVALID_REQUEST, "Invalid request: its id is null", 400))
            }
            Frame::Request { id, method, params } => match self.request(&id, &method, params) {
                Ok(step) => return step,
                Err(refusal) => (id, refusal),
            },
            Frame::Notification { method, params } => {
                let cancelled = (method == "notifications/cancelled")
                    .then(|| params.and_then(|p| raw::get(p, "requestId")))
                    .flatten();
                return cancelled.map_or(Step::Nothing, |id| Step::Cancel(Id::from_raw(id)));
            }
            Frame::Response { .. } => return Step::Nothing,
            Frame::Malformed { id, why } => {
                let id = id.filter(|id| !matches!(id, Id::Odd(_))).unwrap_or(Id::Null);
                (id, Refusal::new(INVALID_REQUEST, format!("Invalid request: {why}"), 400))
            }
            Frame::NotRpc if serde_json::from_str::<&RawValue>(text).is_ok() => (
                Id::Null,
                Refusal::new(INVALID_REQUEST, "Invalid request: not a JSON-RPC message", 400),
            ),
            Frame::NotRpc => (Id::Null, Refusal::new(PARSE, "Parse error: not JSON", 400)),
        };
        Step::Answer(refused(&id, refusal))
    }

    fn request(&self, id: &Id, method: &str, params: Option<&str>) -> Result<Step, Refusal> {
        let params = params.unwrap_or("{}");
        if !raw::is_object(params) {
            return Err(Refusal::new(INVALID_PARAMS, "params must be an object", 400));
        }
        let era = era(method, params)?;
        let result = match (era, method) {
            (Era::Legacy, "initialize") => self.initialize(params),
            (Era::Legacy, "ping") => "{}".into(),
            (Era::Modern, "server/discover") => self.discover(),
            (_, "tools/list") => self.list(era, params)?,
            (_, "tools/call") => return self.check_call(id, era, params).map(Step::Call),
            (Era::Legacy, _) => return Err(no_method(method, 200)),
            (Era::Modern, _) => return Err(no_method(method, 404)),
        };
        Ok(Step::Answer(Answer { json: frame::result(id, &result), status: 200 }))
    }

    fn initialize(&self, params: &str) -> String {
        let asked = raw::get_str(params, "protocolVersion");
        let version = LEGACY.into_iter().find(|v| asked.as_deref() == Some(v)).unwrap_or(LEGACY[0]);
        format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{"listChanged":false}}}},"serverInfo":{}}}"#,
            self.info()
        )
    }

    fn discover(&self) -> String {
        format!(
            r#"{{"resultType":"complete","supportedVersions":{},"capabilities":{{"tools":{{}}}},{CACHE},{}}}"#,
            supported(),
            self.meta()
        )
    }

    fn list(&self, era: Era, params: &str) -> Result<String, Refusal> {
        if raw::get(params, "cursor").is_some_and(|c| !raw::is_null(c)) {
            return Err(Refusal::new(INVALID_PARAMS, "Invalid cursor: there is one page", 200));
        }
        let tools: Vec<String> = self
            .0
            .tools()
            .iter()
            .map(|t| {
                format!(
                    r#"{{"name":"{}","description":{},"inputSchema":{},"annotations":{}}}"#,
                    t.name,
                    quote(t.description),
                    t.input_schema,
                    t.annotations
                )
            })
            .collect();
        let tools = tools.join(",");
        Ok(match era {
            Era::Legacy => format!(r#"{{"tools":[{tools}]}}"#),
            Era::Modern => {
                format!(r#"{{"resultType":"complete","tools":[{tools}],{CACHE},{}}}"#, self.meta())
            }
        })
    }

    fn check_call(&self, id: &Id, era: Era, params: &str) -> Result<Call, Refusal> {
        let Some(tool) = raw::get_str(params, "name") else {
            return Err(Refusal::new(INVALID_PARAMS, "params.name must be a string", 200));
        };
        if !self.0.tools().iter().any(|t| t.name == tool) {
            return Err(Refusal::new(INVALID_PARAMS, format!("Unknown tool: {tool}"), 200));
        }
        let arguments = raw::get(params, "arguments").unwrap_or("{}");
        if !raw::is_object(arguments) {
            return Err(Refusal::new(INVALID_PARAMS, "params.arguments must be an object", 200));
        }
        Ok(Call { id: id.clone(), era, tool, arguments: arguments.into() })
    }

    /// Carries out a call and gives the whole answer. Blocks.
    ///
    /// # Errors
    /// When the process ends first: then nothing is to be sent.
    pub fn call(&self, call: &Call) -> Result<String, Stopped> {
        self.1.call();
        if self.1.rpc_error() {
            return Ok(frame::error(&call.id, -32603, "Internal error: told to fail"));
        }
        let body = match self.0.call(&call.id, &call.tool, &call.arguments)? {
            Outcome::Json(j) => format!(
                r#""content":[{{"type":"text","text":{}}}],"structuredContent":{j},"isError":false"#,
                quote(&j)
            ),
            Outcome::Text(t) => {
                format!(r#""content":[{{"type":"text","text":{}}}],"isError":false"#, quote(&t))
            }
            Outcome::Failed(t) => {
                format!(r#""content":[{{"type":"text","text":{}}}],"isError":true"#, quote(&t))
            }
        };
        let result = match call.era {
            Era::Legacy => format!("{{{body}}}"),
            Era::Modern => format!(r#"{{"resultType":"complete",{body},{}}}"#, self.meta()),
        };
        Ok(frame::result(&call.id, &result))
    }

    fn info(&self) -> String {
        format!(r#"{{"name":"{}","version":"{}"}}"#, self.0.name(), env!("CARGO_PKG_VERSION"))
    }

    fn meta(&self) -> String {
        format!(r#""_meta":{{"{SERVER_KEY}":{}}}"#, self.info())
    }
}

/// The tools of a process never change, but the next process on the same port may have others.
const CACHE: &str = r#""ttlMs":60000,"cacheScope":"private""#;

/// The version that a request's `_meta` declares, if it declares one as a string.
pub fn declared_version(params: Option<&str>) -> Option<String> {
    raw::get_str(raw::get(params?, "_meta")?, VERSION_KEY)
}

fn era(method: &str, params: &str) -> Result<Era, Refusal> {
    let meta = raw::get(params, "_meta");
    let missing = |key: &str, what: &str| {
        Refusal::new(INVALID_PARAMS, format!("Invalid params: _meta must hold {key}, {what}"), 400)
    };
    let Some(version) = meta.and_then(|m| raw::get(m, VERSION_KEY)) else {
        return match method {
            "server/discover" => Err(missing(VERSION_KEY, "a string")),
            _ => Ok(Era::Legacy),
        };
    };
    let version = raw::as_str(version).ok_or_else(|| missing(VERSION_KEY, "a string"))?;
    if version != MODERN {
        let data = format!(r#"{{"supported":{},"requested":{}}}"#, supported(), quote(&version));
        return Err(Refusal {
            data: Some(data),
            ..Refusal::new(UNSUPPORTED_VERSION, "Unsupported protocol version", 400)
        });
    }
    match meta.and_then(|m| raw::get(m, CAPABILITIES_KEY)) {
        Some(c) if raw::is_object(c) => Ok(Era::Modern),
        _ => Err(missing(CAPABILITIES_KEY, "an object")),
    }
}

fn supported() -> String {
    let all: Vec<String> = std::iter::once(MODERN).chain(LEGACY).map(quote).collect();
    format!("[{}]", all.join(","))
}

fn no_method(method: &str, status: u16) -> Refusal {
    Refusal::new(NO_METHOD, format!("Method not found: {method}"), status)
}

fn refused(id: &Id, r: Refusal) -> Answer {
    let mut json = frame::error(id, r.code, &r.message);
    if let Some(data) = r.data {
        // `frame::error` ends with the braces of the error and of the answer.
        json.truncate(json.len() - 2);
        json.push_str(&format!(r#","data":{data}}}}}"#));
    }
    Answer { json, status: r.status }
}
