//! The client against servers of others: npm `server-everything` and the Python SDK's two lines, on both
//! transports; killed and restarted under the client. Run by `.ci/run`, which installs them.

use crate::support::until;
use redial::client::{Answerer, Client, Endpoint, Settings};
use redial::journal::{Call, Outcome};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

const ONE: &str = r#"
import sys
from mcp.server.fastmcp import FastMCP
http = sys.argv[1:2] == ["http"]
s = FastMCP("one", host="127.0.0.1", port=int(sys.argv[2]) if http else 0)
@s.tool()
def add(a: int, b: int) -> int:
    "adds"
    return a + b
s.run(transport="streamable-http" if http else "stdio")
"#;

const TWO: &str = r#"
import sys
from mcp.server import MCPServer
s = MCPServer("two")
@s.tool()
def add(a: int, b: int) -> int:
    "adds"
    return a + b
if sys.argv[1:2] == ["http"]:
    s.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    s.run()
"#;

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by .ci/run"))
}

/// A server over HTTP; ended by pid when dropped.
struct Served(Child);

impl Served {
    fn start(command: &[String], port: u16) -> Served {
        let child = Command::new(&command[0])
            .args(&command[1..])
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Served(child)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn ready(endpoint: Endpoint, settings: Settings) -> Client {
    let client = Client::start(endpoint, Settings { start_limit_s: 60.0, ..settings });
    client.ready().await.unwrap();
    client
}

async fn call(client: &Client, tool: &str, args: &str) -> Call {
    let id = client.call(tool, args, None).await.unwrap();
    client.settled(id).await.unwrap()
}

fn protocol(client: &Client) -> String {
    client.journal().read(|s| s.protocol.clone()).unwrap()
}

/// The whole of a restart: the call that met the lost session is refused and not sent again, the next one is
/// answered on a new session (or without any, in 2026-07-28).
async fn restarted(command: Vec<String>, path: &str, port: u16, tool: &str, args: &str) -> String {
    let url = format!("http://127.0.0.1:{port}{path}");
    let server = Served::start(&command, port);
    let client = ready(Endpoint::Http { url, headers: vec![] }, Settings::default()).await;
    assert_eq!(call(&client, tool, args).await.outcome(), Some(Outcome::Ok));
    drop(server);
    let dead = call(&client, tool, args).await;
    assert_eq!((dead.outcome(), dead.sent), (Some(Outcome::NotSent), 0), "{:?}", dead.settled);
    let _server = Served::start(&command, port);
    if protocol(&client) == "2026-07-28" {
        assert_eq!(call(&client, tool, args).await.outcome(), Some(Outcome::Ok));
    } else {
        // The link was given up when the server died; asking for it again finds the old session gone or not.
        let met = call(&client, tool, args).await;
        let why = met.settled.as_ref().unwrap().why.clone();
        assert!(met.outcome() == Some(Outcome::Refused) && why.contains("session lost"), "{why}");
        client.journal().wait(|s| (s.is_ready() && s.generations.len() == 2).then_some(())).await;
        assert_eq!(call(&client, tool, args).await.outcome(), Some(Outcome::Ok));
    }
    client.close().await;
    protocol(&client)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node and server-everything: run by .ci/run"]
async fn everything_over_stdio_with_progress_and_a_task() {
    let command = vec!["node".into(), env("REDIAL_INTEROP_EVERYTHING"), "stdio".into()];
    let settings = Settings { answerer: Answerer::AcceptDefaults, ..Settings::default() };
    let client = ready(Endpoint::Stdio { command, env: vec![], cwd: None }, settings).await;
    let c = call(&client, "echo", r#"{"message":"hi"}"#).await;
    assert!(c.settled.unwrap().result.unwrap().contains("Echo: hi"));
    let c = call(&client, "trigger-long-running-operation", r#"{"duration":1,"steps":4}"#).await;
    assert_eq!(c.outcome(), Some(Outcome::Ok));
    assert!(c.live.progress.is_some_and(|p| p.total == Some(4.0) && p.count >= 3));
    let c = call(&client, "simulate-research-query", r#"{"topic":"tides"}"#).await;
    assert_eq!(c.outcome(), Some(Outcome::Ok), "{:?}", c.settled);
    assert_eq!(c.live.task.map(|t| t.status).as_deref(), Some("completed"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node and server-everything: run by .ci/run"]
async fn everything_over_http_loses_its_session_with_a_400() {
    let command = vec!["node".into(), env("REDIAL_INTEROP_EVERYTHING"), "streamableHttp".into()];
    let port = free_port();
    let version = restarted(command, "/mcp", port, "echo", r#"{"message":"hi"}"#).await;
    assert_eq!(version, "2025-11-25");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node and server-everything: run by .ci/run"]
async fn both_lines_of_the_python_sdk_on_both_transports() {
    let dir = tempfile::tempdir().unwrap();
    for (python, code, want) in [
        ("REDIAL_INTEROP_PYTHON", ONE, "2025-11-25"),
        ("REDIAL_INTEROP_PYTHON2", TWO, "2026-07-28"),
    ] {
        let file = dir.path().join(format!("{want}.py"));
        std::fs::write(&file, code).unwrap();
        let mut command = vec![env(python), file.to_str().unwrap().to_owned()];
        let stdio = Endpoint::Stdio { command: command.clone(), env: vec![], cwd: None };
        let client = ready(stdio, Settings::default()).await;
        assert_eq!(protocol(&client), want);
        assert_eq!(call(&client, "add", r#"{"a":1,"b":2}"#).await.outcome(), Some(Outcome::Ok));
        client.close().await;
        let port = free_port();
        command.extend(["http".into(), port.to_string()]);
        assert_eq!(restarted(command, "/mcp", port, "add", r#"{"a":1,"b":2}"#).await, want);
    }
}
