//! How clients in the wild repeat a call, as data, and the one loop that plays them. For lab, lessons and kill tests
//! only: redial's own policy is `none`.

use crate::client::{Client, Endpoint, Era, Settings};
use crate::error::Result;
use crate::journal::call::answer_object;
use crate::journal::{Call, Hint, Journal, Outcome, Tool};
use crate::json::raw;
use std::time::{Duration, Instant};

/// What became of an attempt, as a retrying client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// An answer came: a result, a tool error or a JSON-RPC error.
    Answered,
    /// No answer within the limit.
    TimedOut,
    /// The connection or the process ended first (ConnectionError).
    Lost,
    /// The server does not know the session any more (HTTP 404 or 400).
    SessionLost,
    /// HTTP 429 or 503.
    Busy,
    /// The tool answered, and the client's own step failed after it with a value, type or runtime error.
    OtherError,
}

/// A named way of repeating.
#[derive(Debug)]
pub struct Policy {
    /// The name.
    pub name: &'static str,
    /// Whose behaviour it is, in one line.
    pub about: &'static str,
    /// Attempts in all.
    pub tries: u32,
    /// Seconds before the first repeat; doubles with each further one.
    pub first_wait_s: f64,
    /// No wait is longer.
    pub cap_s: f64,
    /// What is repeated.
    pub repeats: &'static [Ended],
    /// Only over HTTP.
    pub http_only: bool,
    /// Only tools that say they are read-only or idempotent.
    pub hinted_only: bool,
    /// Each repeat has a connection of its own.
    pub new_connection: bool,
}

/// All of them; `none` first.
pub static POLICIES: [Policy; 5] = [
    Policy {
        name: "none",
        about: "redial's own: a call is sent once, whatever comes of it",
        tries: 1,
        first_wait_s: 0.0,
        cap_s: 0.0,
        repeats: &[],
        http_only: false,
        hinted_only: false,
        new_connection: false,
    },
    Policy {
        name: "by-hand",
        about: "article 002's test program: one repeat after a timeout or a closed connection",
        tries: 2,
        first_wait_s: 0.0,
        cap_s: 0.0,
        repeats: &[Ended::TimedOut, Ended::Lost],
        http_only: false,
        hinted_only: false,
        new_connection: false,
    },
    Policy {
        name: "claude-code",
        about: "its documentation: a pending call once more on a new connection, HTTP only, and only if the tool says it is read-only or idempotent; 5 reconnects from 1 s doubling, then on for about 30 minutes",
        tries: 2,
        first_wait_s: 1.0,
        cap_s: 16.0,
        repeats: &[Ended::Lost],
        http_only: true,
        hinted_only: true,
        new_connection: true,
    },
    Policy {
        name: "framework",
        about: "LangGraph's default: the whole step up to three times, from 0.5 s doubling, after a ConnectionError; never after a value, type or runtime error",
        tries: 3,
        first_wait_s: 0.5,
        cap_s: 128.0,
        repeats: &[Ended::Lost],
        http_only: false,
        hinted_only: false,
        new_connection: false,
    },
    Policy {
        name: "night-batch",
        about: "article 003: 5 tries (HTTP 4), 1 s doubling plus up to 0.5 s, cap 15 s; starts a dead server again, initializes again after 400 and 404, waits after 429 and 503, never repeats after an RPC error",
        tries: 5,
        first_wait_s: 1.0,
        cap_s: 15.0,
        repeats: &[Ended::TimedOut, Ended::Lost, Ended::SessionLost, Ended::Busy],
        http_only: false,
        hinted_only: false,
        new_connection: false,
    },
];

/// The policy of that name; `none` for any other.
pub fn named(name: &str) -> &'static Policy {
    POLICIES.iter().find(|p| p.name == name).unwrap_or(&POLICIES[0])
}

impl Policy {
    /// Attempts in all on this transport.
    pub fn tries_on(&self, http: bool) -> u32 {
        if self.http_only && !http {
            1
        } else if self.name == "night-batch" && http {
            4
        } else {
            self.tries
        }
    }

    /// Whether an attempt that ended so is repeated.
    pub fn repeats(&self, ended: Ended, tool: Option<&Tool>, http: bool) -> bool {
        let hinted = tool.is_some_and(|t| t.idempotent == Hint::True || t.read_only == Hint::True);
        self.repeats.contains(&ended) && (!self.http_only || http) && (!self.hinted_only || hinted)
    }

    /// Seconds to wait before attempt `next` (2 is the first repeat). `dice` in 0..1.
    pub fn wait_s(&self, next: u32, ended: Ended, dice: f64) -> f64 {
        if ended == Ended::SessionLost {
            return 0.0; // A new session first, then at once.
        }
        let doubled = self.first_wait_s * f64::from(1u32 << next.saturating_sub(2).min(16));
        let jitter = if self.name == "night-batch" { 0.5 * dice } else { 0.0 };
        (doubled + jitter).min(self.cap_s)
    }
}

/// One attempt, as it was.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its JSON-RPC id.
    pub rpc_id: String,
    /// The raw arguments.
    pub args: String,
    /// Its outcome's word.
    pub outcome: &'static str,
    /// Why, in words.
    pub why: String,
    /// How long it might take, in seconds.
    pub limit_s: f64,
    /// How long it took.
    pub took_s: f64,
    /// How long was waited before it.
    pub waited_s: f64,
    /// The object that the answer carried.
    pub answer: Option<String>,
}

/// A line to a server: how it is reached, and the connections made so far.
pub struct Line {
    /// Where.
    pub endpoint: Endpoint,
    /// The protocol.
    pub era: Era,
    clients: Vec<Client>,
}

impl Line {
    /// Nothing is started yet.
    pub fn new(endpoint: Endpoint, era: Era) -> Line {
        Line { endpoint, era, clients: Vec::new() }
    }

    /// The connection in use; the first one is made here.
    ///
    /// # Errors
    /// Exit 5 when the server never becomes ready.
    pub async fn client(&mut self) -> Result<Client> {
        match self.clients.last() {
            Some(c) => Ok(c.clone()),
            None => self.fresh().await,
        }
    }

    /// A connection of its own, as a new client has: JSON-RPC ids start again. On stdio that is a new process.
    ///
    /// # Errors
    /// Exit 5 when the server never becomes ready.
    pub async fn fresh(&mut self) -> Result<Client> {
        let client =
            Client::start(self.endpoint.clone(), Settings { era: self.era, ..Settings::default() });
        self.clients.push(client.clone());
        client.ready().await?;
        Ok(client)
    }

    /// What was on the wire, a journal for each connection.
    pub fn journals(&self) -> Vec<Journal> {
        self.clients.iter().map(|c| c.journal().clone()).collect()
    }

    /// Ends all connections, and the processes behind them.
    pub async fn close(&self) {
        for client in &self.clients {
            client.close().await;
        }
    }
}

/// How long a new session may take to be opened before the next attempt goes on without it.
const NEW_SESSION: Duration = Duration::from_secs(10);

/// One call and its end.
///
/// # Errors
/// Exit 5 when the client is closed.
pub async fn attempt(
    client: &Client,
    tool: &str,
    args: &str,
    limit_s: f64,
) -> Result<(Attempt, Ended)> {
    let begin = Instant::now();
    let id = client.call(tool, args, Some(limit_s)).await?;
    let call = client.settled(id).await;
    let took_s = begin.elapsed().as_secs_f64();
    let ended = call.as_ref().map_or(Ended::Lost, ended);
    if let (Ended::SessionLost, Some(call)) = (&ended, &call) {
        // The client opens the new session itself; the next attempt belongs on it and not between the two.
        let opened = client.journal().wait(|s| {
            let newer = s.generation().is_some_and(|g| g.n > call.generation);
            (newer && s.is_ready()).then_some(())
        });
        tokio::time::timeout(NEW_SESSION, opened).await.ok();
    }
    let settled = call.as_ref().and_then(|c| c.settled.as_ref());
    let attempt = Attempt {
        rpc_id: call.as_ref().map(|c| c.rpc_id.to_json()).unwrap_or_default(),
        args: args.to_owned(),
        outcome: call.as_ref().map_or("unknown", |c| c.word()),
        why: settled.map(|s| s.why.to_string()).unwrap_or_default(),
        limit_s,
        took_s,
        waited_s: 0.0,
        answer: settled.and_then(|s| s.result.as_deref()).and_then(answer_object),
    };
    Ok((attempt, ended))
}

/// How a retrying client sees a call's end.
fn ended(call: &Call) -> Ended {
    let why =
        call.settled.as_ref().map(|s| s.why.to_string()).unwrap_or_default().to_ascii_lowercase();
    match call.outcome() {
        Some(Outcome::Ok | Outcome::ToolError | Outcome::RpcError) => Ended::Answered,
        _ if why.contains("no answer within") => Ended::TimedOut,
        _ if why.contains("http 429") || why.contains("http 503") => Ended::Busy,
        _ if why.contains("session") => Ended::SessionLost,
        _ => Ended::Lost,
    }
}

/// Plays `policy`: one logical call, with as many attempts as it makes. `limits` are the seconds each attempt may
/// take; the last one stands for all further ones.
///
/// # Errors
/// Exit 5 when the server can't be reached at all.
pub async fn play(
    policy: &Policy,
    line: &mut Line,
    tool: &str,
    mut args: impl FnMut(u32) -> String,
    limits: &[f64],
) -> Result<Vec<Attempt>> {
    let http = line.endpoint.is_http();
    let mut out = Vec::new();
    let mut dice = super::Dice(1);
    let mut waited_s = 0.0;
    for n in 1..=policy.tries_on(http) {
        let client = next_client(policy, line, n).await?;
        let limit = limits.get(n as usize - 1).or(limits.last()).copied().unwrap_or(60.0);
        let listed = client.tools().await?;
        let (mut a, end) = attempt(&client, tool, &args(n), limit).await?;
        a.waited_s = waited_s;
        out.push(a);
        if !policy.repeats(end, listed.find(tool), http) {
            break;
        }
        waited_s = policy.wait_s(n + 1, end, dice.part());
        if n < policy.tries_on(http) {
            tokio::time::sleep(Duration::from_secs_f64(waited_s)).await;
        }
    }
    Ok(out)
}

/// The connection for attempt `n`: the one there is while it lives, a fresh one after its server died or where the
/// policy wants one each time.
async fn next_client(policy: &Policy, line: &mut Line, n: u32) -> Result<Client> {
    let client = line.client().await?;
    let dead = client
        .journal()
        .read(|s| s.generation().is_some_and(|g| g.ended.is_some()) || s.link.is_none());
    if n > 1 && (policy.new_connection || dead) {
        return line.fresh().await;
    }
    if line.endpoint.is_http() && client.ready().await.is_err() {
        return line.fresh().await;
    }
    client.ready().await?;
    Ok(client)
}

/// The ticket an attempt's answer names.
pub fn ticket(a: &Attempt) -> Option<String> {
    a.answer.as_deref().and_then(|o| raw::get_str(o, "ticket_id"))
}

/// Whether an attempt's answer was the stored one.
pub fn replayed(a: &Attempt) -> Option<bool> {
    a.answer.as_deref().and_then(|o| raw::get(o, "replayed")).and_then(|r| r.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_limits_are_the_articles() {
        let batch = named("night-batch");
        let waits: Vec<f64> = (2..=6).map(|n| batch.wait_s(n, Ended::Lost, 0.0)).collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 15.0]);
        assert_eq!(batch.wait_s(2, Ended::Lost, 1.0), 1.5);
        assert_eq!(batch.wait_s(2, Ended::SessionLost, 1.0), 0.0);
        assert_eq!((batch.tries_on(false), batch.tries_on(true)), (5, 4));
        assert!(!batch.repeats(Ended::Answered, None, true), "an RPC error is an answer");
        assert_eq!(named("none").tries, 1);
        let framework = named("framework");
        assert_eq!(framework.tries, 3);
        assert!(framework.repeats(Ended::Lost, None, false));
        assert!(!framework.repeats(Ended::OtherError, None, false));
    }

    #[test]
    fn claude_code_repeats_only_hinted_tools_over_http() {
        let policy = named("claude-code");
        let hinted = Tool { idempotent: Hint::True, ..Tool::default() };
        assert!(policy.repeats(Ended::Lost, Some(&hinted), true));
        assert!(!policy.repeats(Ended::Lost, Some(&hinted), false));
        assert!(!policy.repeats(Ended::Lost, Some(&Tool::default()), true));
        assert!(!policy.repeats(Ended::TimedOut, Some(&hinted), true));
        assert_eq!(policy.tries_on(false), 1);
    }
}
