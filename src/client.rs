//! The MCP client: one endpoint, its link and its calls. Ours on purpose: an inspector shows what was on the
//! wire and never acts by itself, so nothing here repeats a `tools/call`, follows a foreign redirect, or
//! sends a frame that no person, script or handshake asked for.
//!
//! `driver` owns the link and its state, `recover` what follows an end, `calls` what is asked for; `stdio` and `http`
//! are the transports behind `conn` (`incoming` is its other direction); `handshake` finds the era; `follow` does rounds and tasks; `offer` is what we
//! answer when the server asks; `backoff` is when to try again. Every step is a journal event before it is done.

mod backoff;
mod calls;
mod conn;
mod driver;
mod follow;
mod group;
mod handshake;
pub(crate) mod http;
mod incoming;
mod listening;
mod modern;
mod offer;
mod opening;
mod outbox;
mod reading;
mod recover;
pub(crate) mod shown;
mod stdio;

use crate::error::{Error, Result};
use crate::journal::event::Note;
use crate::journal::{Call, CallId, Journal, LinkState, ToolList};
use crate::urls;
use driver::Command;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

pub use offer::{Answerer, Choice, Question, Root, defaults};
pub use recover::SESSION_LOST;

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A child process that speaks on its stdin and stdout.
    Stdio {
        /// Program and arguments; never empty.
        command: Vec<String>,
        /// Variables added to the inherited environment.
        env: Vec<(String, String)>,
        /// The folder to start it in.
        cwd: Option<PathBuf>,
    },
    /// A Streamable HTTP URL.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// Extra headers for every request to this origin.
        headers: Vec<(String, String)>,
    },
}

impl Endpoint {
    /// How it is named to people, without the parts of a URL that may be secrets. May hold foreign text.
    pub fn shown(&self) -> String {
        match self {
            Endpoint::Stdio { command, .. } => {
                let shown = |w: &String| match w.contains("://") {
                    true => urls::shown(w),
                    false => w.clone(),
                };
                command.iter().map(shown).collect::<Vec<_>>().join(" ")
            }
            Endpoint::Http { url, .. } => shown::shown_url(url),
        }
    }
    /// The transport's word.
    pub fn is_http(&self) -> bool {
        matches!(self, Endpoint::Http { .. })
    }
}

/// What came in place of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoResult {
    /// In words. May hold foreign text.
    pub words: String,
    /// The server answered, with something.
    pub answered: bool,
    /// The raw JSON-RPC error, when that was the answer.
    pub error: Option<String>,
}

impl NoResult {
    /// Nothing came; why.
    pub(crate) fn of(words: impl Into<String>) -> NoResult {
        NoResult { words: words.into(), answered: false, error: None }
    }
}

/// Which protocol era to speak (design: `--era`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Era {
    /// Ask with `server/discover`, fall back to `initialize`.
    #[default]
    Auto,
    /// 2026-07-28 only.
    Modern,
    /// `initialize` first.
    Legacy,
}

/// How the client behaves; times in seconds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Protocol era.
    pub era: Era,
    /// How long the whole handshake may take.
    pub start_limit_s: f64,
    /// How long `server/discover` may stay unanswered on stdio before `initialize` is tried.
    pub probe_limit_s: f64,
    /// How long a call may take before it counts as unknown and is cancelled.
    pub call_limit_s: f64,
    /// HTTP: try again by itself, for ever. Off for one-shot commands.
    pub reconnect: bool,
    /// Stdio: start a child that ended again by itself.
    pub respawn: bool,
    /// Keep the optional stream open (2025-11-25: GET over HTTP; 2026-07-28: `subscriptions/listen` where the
    /// server declares it), so that a server can speak, and its death is noticed, while idle.
    pub listen: bool,
    /// Progress moves a call's limit. Off: the limit is the whole time a call may take.
    pub progress_extends: bool,
    /// Folders told to a server that asks; none: not offered.
    pub roots: Vec<Root>,
    /// Who answers a server's `elicitation/create`.
    pub answerer: Answerer,
    /// How the endpoint is named to people, where its own words may hold secrets (variables that were expanded).
    pub shown: Option<String>,
}

impl Settings {
    /// How `endpoint` is named to people. May hold foreign text, and no secret that redial knows of.
    pub fn name(&self, endpoint: &Endpoint) -> String {
        let name = self.shown.clone().unwrap_or_else(|| endpoint.shown());
        match endpoint {
            Endpoint::Http { url, .. } => name + &http::proxy::way(url),
            Endpoint::Stdio { .. } => name,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            era: Era::Auto,
            start_limit_s: 30.0,
            probe_limit_s: 4.0,
            call_limit_s: 60.0,
            reconnect: false,
            respawn: false,
            listen: false,
            progress_extends: false,
            roots: Vec::new(),
            answerer: Answerer::Nobody,
            shown: None,
        }
    }
}

/// A handle on a live endpoint; clones share it. Ends its child when `close` is called or the last handle
/// is dropped.
#[derive(Clone)]
pub struct Client {
    journal: Journal,
    endpoint: Endpoint,
    settings: Settings,
    commands: mpsc::UnboundedSender<Command>,
    hurry: watch::Sender<bool>,
}

impl Client {
    /// Starts connecting. Must be called on a tokio runtime; returns at once.
    pub fn start(endpoint: Endpoint, settings: Settings) -> Client {
        let journal = Journal::new();
        let (commands, inbox) = mpsc::unbounded_channel();
        let (hurry, hurried) = watch::channel(false);
        let (to, how) = (endpoint.clone(), settings.clone());
        tokio::spawn(driver::run(to, how, journal.clone(), inbox, hurried));
        Client { journal, endpoint, settings, commands, hurry }
    }

    /// The stream of everything that happens here.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How it is named to people. May hold foreign text, and no secret that redial knows of.
    pub fn name(&self) -> String {
        self.settings.name(&self.endpoint)
    }

    /// ` through the proxy http://…` where one leads to it.
    pub fn way(&self) -> String {
        match &self.endpoint {
            Endpoint::Http { url, .. } => http::proxy::way(url),
            Endpoint::Stdio { .. } => String::new(),
        }
    }

    /// How it behaves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Waits until a real request was answered.
    ///
    /// # Errors
    /// Exit 5 when the endpoint ended or refused before it was ready; the error says how, with the child's
    /// end where there is one.
    pub async fn ready(&self) -> Result<()> {
        self.journal
            .wait(|s| {
                let link = s.link.as_ref()?;
                match link.state {
                    LinkState::Ready => Some(Ok(())),
                    LinkState::Dead | LinkState::Closed => Some(Err(link.why.clone())),
                    LinkState::Connecting | LinkState::Waiting { .. } => None,
                }
            })
            .await
            .map_err(|why| {
                let error = match &self.endpoint {
                    Endpoint::Http { .. } => Error::endpoint(format!("{}: {why}", self.name())),
                    Endpoint::Stdio { .. } => Error::endpoint(why.clone()),
                };
                match opening::hint(&why, &self.endpoint) {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            })
    }

    /// The tools of this connection, all pages; asks again when the server said that they changed.
    ///
    /// # Errors
    /// Exit 5 when there is no connection.
    pub async fn tools(&self) -> Result<ToolList> {
        self.ready().await?;
        if self.journal.read(|s| s.tools_stale) {
            let (reply, answer) = oneshot::channel();
            self.send(Command::ListTools(reply));
            // A dropped reply means that the link went; what was listed last is then all there is.
            answer.await.ok();
        }
        Ok(self.journal.read(|s| s.tools.clone()))
    }

    /// Asks the server again who it is and what its tools are: behind one URL another may have taken its place
    /// without a word.
    ///
    /// # Errors
    /// Exit 5 when it does not say.
    pub async fn look_again(&self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::LookAgain(reply));
        let why = match answer.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "there is no connection".to_owned(),
        };
        Err(Error::endpoint(format!("the tools could not be listed again: {why}")))
    }

    /// Sends one `tools/call`, once, and returns its id as soon as it is in the journal. `args` is the raw
    /// JSON object of the arguments. `limit_s` overrides the call limit. It goes out on the connection there is
    /// now, or not at all: what is known of the tool was listed there.
    ///
    /// # Errors
    /// Exit 5 when the client is closed.
    pub async fn call(&self, tool: &str, args: &str, limit_s: Option<f64>) -> Result<CallId> {
        let generation = self.journal.read(|s| s.generation().map_or(0, |g| g.n));
        self.call_on(generation, tool, args, limit_s).await
    }

    /// [`Client::call`] on the connection of that generation, or not at all.
    ///
    /// # Errors
    /// Exit 5 when the client is closed.
    pub async fn call_on(
        &self,
        generation: u32,
        tool: &str,
        args: &str,
        limit_s: Option<f64>,
    ) -> Result<CallId> {
        let (reply, answer) = oneshot::channel();
        let call = calls::Asked {
            tool: tool.to_owned(),
            args: args.to_owned(),
            generation,
            limit_s: limit_s.unwrap_or(self.settings.call_limit_s),
            extends: self.settings.progress_extends,
        };
        self.send(Command::Call { call, reply });
        answer.await.map_err(|_| Error::endpoint("the endpoint is closed; nothing was sent"))
    }

    /// Waits until a call has an outcome.
    pub async fn settled(&self, call: CallId) -> Option<Call> {
        self.journal
            .wait(|s| match s.calls.get(&call) {
                None => Some(None),
                Some(c) if c.is_pending() => None,
                Some(c) => Some(Some(c.clone())),
            })
            .await
    }

    /// Gives a call up and tells the server; the answer, should it come, is still taken.
    pub fn cancel(&self, call: CallId) {
        self.send(Command::GiveUp { call, note: Note::Cancelled { call } });
    }

    /// Stops waiting for a call without telling the server; its answer is still taken, and marked late.
    pub fn stop_waiting(&self, call: CallId) {
        self.send(Command::GiveUp { call, note: Note::StoppedWaiting { call } });
    }

    /// Sends one request that is no `tools/call` (resources, prompts, …) with raw `params`, and waits for its
    /// raw result.
    ///
    /// # Errors
    /// Exit 2 for a `tools/call`, exit 5 with the server's words when no result came.
    pub async fn request(&self, method: &str, params: &str) -> Result<String> {
        if method == "tools/call" {
            return Err(Error::usage("a tools/call goes out as a call, so that it has an outcome"));
        }
        self.asked(method, params).await.map_err(|no| Error::endpoint(no.words))
    }

    /// [`Client::request`], with what came in place of a result as it came. A `tools/call` is not sent.
    ///
    /// # Errors
    /// What was no result.
    pub async fn asked(&self, method: &str, params: &str) -> Result<String, NoResult> {
        if method == "tools/call" {
            return Err(NoResult::of("a tools/call goes out as a call; nothing was sent"));
        }
        let (reply, answer) = oneshot::channel();
        let (method, params) = (method.to_owned(), params.to_owned());
        self.send(Command::Request { method, params, reply });
        let closed = |_| Err(NoResult::of("the endpoint is closed; nothing was sent"));
        answer.await.unwrap_or_else(closed)
    }

    /// Sends one notification with raw `params`, and waits until it has left.
    ///
    /// # Errors
    /// Exit 5 when there is no connection it could leave on.
    pub async fn notify(&self, method: &str, params: &str) -> Result<()> {
        let (reply, left) = oneshot::channel();
        let (method, params) = (method.to_owned(), params.to_owned());
        self.send(Command::Notify { method, params, reply });
        // A pipe that nobody reads, or a server that never takes the POST, must not hold anybody up for ever.
        let left = tokio::time::timeout(std::time::Duration::from_secs(10), left).await;
        left.ok().and_then(std::result::Result::ok).ok_or_else(|| {
            Error::endpoint(
                "no connection, or it broke: the notification is not known to have left",
            )
        })
    }

    /// Connects again now: an HTTP endpoint that waits, or a child that ended (a new process).
    pub fn reconnect(&self) {
        self.send(Command::Reconnect);
    }

    /// Says in the journal why the endpoint is about to be closed, so that what its child's end does to a call is not
    /// taken for the child's own doing.
    pub fn ending(&self, why: &str) {
        self.send(Command::Ending(why.to_owned()));
    }

    /// Ends the endpoint: HTTP session deleted, child's stdin closed, then SIGTERM, then SIGKILL of its
    /// group, each bounded. Returns when it is done.
    pub async fn close(&self) {
        let (reply, done) = oneshot::channel();
        self.send(Command::Close(reply));
        // The driver drops the reply when it is already gone.
        tokio::time::timeout(Duration::from_secs(8), done).await.ok();
    }

    /// The same without a grace: what is left of the child's group is killed at once, also when it is being
    /// closed already.
    pub async fn close_now(&self) {
        self.hurry.send_replace(true);
        self.close().await;
    }

    fn send(&self, command: Command) {
        // A closed driver drops the command together with its reply channel, which the caller sees.
        self.commands.send(command).ok();
    }
}

/// Seconds as a duration; what is too long for one is for ever.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
