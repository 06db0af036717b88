//! Opening an endpoint for a one-shot command, and what to say when that fails.

use super::args::{Calling, EndpointArgs};
use super::interrupt::Interrupt;
use super::open::{open_ledger, readable};
use super::plain::{Plain, Role, complain};
use super::report::{Failure, Witness};
use crate::client::{Client, Endpoint, Settings};
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
pub use crate::inspect::tool::known_tool;
use crate::inspect::tool::named_once;
use crate::journal::generation::stopped_words;
use crate::journal::{Journal, LinkState};
use crate::json::raw;
use std::path::Path;

/// How a one-shot command behaves: it does not connect again, and nobody is there to answer questions.
///
/// # Errors
/// Exit 2 for a root that is no folder.
pub fn settings(args: &EndpointArgs, call_limit_s: f64) -> Result<Settings> {
    Ok(Settings {
        era: args.era(),
        start_limit_s: args.start_timeout,
        call_limit_s,
        roots: args.roots()?,
        shown: args.shown(),
        ..Settings::default()
    })
}

/// What a command that makes calls works with.
pub struct Opened {
    /// The endpoint, ready.
    pub client: Client,
    /// It and the ledger, with what holds for both.
    pub inspector: Inspector,
    /// The signals, from before the endpoint was started.
    pub interrupt: Interrupt,
}

impl Opened {
    /// Reads the ledger once, so that one that can't be read ends this before a server is started for it; then
    /// connects, with `settings` made of the usual ones.
    ///
    /// # Errors
    /// Exit 2 without an endpoint, 6 for the ledger, 5 with the server's last words.
    pub async fn new(
        a: &Calling,
        config: &Config,
        change: impl FnOnce(Settings) -> Settings,
    ) -> std::result::Result<Opened, Failure> {
        let endpoint = a.endpoint.required()?;
        let (ledger, rules) = open_ledger(&a.ledger)?;
        readable(ledger.as_ref()).await?;
        let interrupt = Interrupt::listen();
        a.endpoint.configure(config);
        let usual = Settings {
            answerer: a.elicit.answerer(),
            progress_extends: config.server.progress_extends,
            ..settings(&a.endpoint, a.call_limit_s())?
        };
        let client = open(endpoint, change(usual), &interrupt).await?;
        let mut inspector = Inspector::new(ledger, Some(client.clone()), rules);
        inspector.read_only = a.read_only.read_only;
        inspector.look_up.clone_from(&a.lookup);
        inspector.row.clone_from(&a.row);
        inspector.hints = config.hint_overrides();
        Ok(Opened { client, inspector, interrupt })
    }
}

impl Calling {
    /// Seconds a call may take. To be asked after the endpoint.
    pub fn call_limit_s(&self) -> f64 {
        self.endpoint.call_limit(self.timeout)
    }
}

/// The longest file with arguments.
pub const ARGUMENTS: u64 = 64 << 20;
/// The longest transcript they may be in.
pub const TRANSCRIPT: u64 = 512 << 20;

/// A file's text; bytes that are no UTF-8 are replaced, since a transcript may hold anything.
///
/// # Errors
/// Exit 2 in the system's words.
pub fn text_of(path: &Path, longest: u64) -> Result<String> {
    let bytes = crate::files::whole(path, longest).map_err(|e| {
        Error::usage(format!("{} can't be read: {e}; nothing was sent", path.display()))
    })?;
    // Not twice in memory where it is well formed.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// Connects and waits until the server has answered a real request.
///
/// # Errors
/// Exit 5 with the server's last words.
pub async fn open(
    endpoint: Endpoint,
    settings: Settings,
    interrupt: &Interrupt,
) -> std::result::Result<Client, Failure> {
    let client = Client::start(endpoint, settings);
    tokio::spawn(tell_when_stopped(client.journal().clone()));
    let ready = tokio::select! {
        ready = first_ready(&client) => ready,
        name = interrupt.first() => Err(Interrupt::stopped(name, Exit::Endpoint)),
    };
    match ready {
        Ok(()) => {
            let way = client.way();
            if !way.is_empty() {
                let mut p = Plain::stderr();
                p.line(Role::Dim, &format!("reached{way}"));
                p.complain();
            }
            Ok(client)
        }
        Err(error) => {
            let witness = Some(Witness::after(&client, None).await);
            client.close().await;
            Err(Failure { error, witness })
        }
    }
}

/// Says at once when the kernel has stopped the server: until its limit a command would only be silent.
async fn tell_when_stopped(journal: Journal) {
    let mut last = None;
    loop {
        let now = journal
            .wait(|s| {
                let now = s.generation()?.stopped.clone();
                (now != last).then_some(now)
            })
            .await;
        match &now {
            Some(who) => complain(&stopped_words(who)),
            None => complain("the server goes on"),
        }
        last = now;
    }
}

/// A server that isn't there at the start is no break to be waited out, even where a later one would be.
async fn first_ready(client: &Client) -> Result<()> {
    let waits = client.journal().wait(|s| {
        let link = s.link.as_ref()?;
        matches!(link.state, LinkState::Waiting { .. }).then(|| link.why.clone())
    });
    tokio::select! {
        ready = client.ready() => ready,
        why = waits => Err(Error::endpoint(format!("{}: {why}", client.name()))),
    }
}

/// Checks that `text` is one JSON object.
///
/// # Errors
/// Exit 2 that says what it is instead.
pub fn arguments_object(text: &str, from: &str) -> Result<()> {
    if raw::members(text).is_some() {
        return named_once(text, from);
    }
    let what = match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(_) => "is JSON, but not an object".to_owned(),
        Err(e) => format!("is not JSON: {e}"),
    };
    Err(Error::usage(format!("{from} {what}; nothing was sent"))
        .hint("arguments are one JSON object, e.g. '{\"request_id\":\"r-1\",\"title\":\"…\"}'"))
}

/// Checks a request_id that is to be sent. How long one may be is the server's rule.
///
/// # Errors
/// Exit 2 when it is empty: it would name nothing.
pub fn check_request_id(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(Error::usage("the request_id is empty; nothing was sent"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_ids_are_checked_in_words() {
        assert!(arguments_object("{}", "--args").is_ok());
        assert!(arguments_object("[1]", "--args").unwrap_err().what.contains("not an object"));
        assert!(arguments_object("{", "--args").unwrap_err().what.contains("not JSON"));
        let twice = r#"{"request_id":"a","n":{"request_id":1},"request\u005fid":"b"}"#;
        assert!(arguments_object(twice, "--args").unwrap_err().what.contains("2 times"));
        assert!(check_request_id(&"é".repeat(65)).is_ok());
        assert!(check_request_id("").is_err());
    }
}
