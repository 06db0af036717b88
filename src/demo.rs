//! The demo: a real incident made on the spot. The built-in ticket server runs as a child process on a fresh
//! ledger in a temporary folder, does some tickets, is killed with SIGKILL in the middle of one, and is
//! started again. Nothing is painted: everything shown afterwards was on the wire and in the file.

use crate::client::{Client, Endpoint, Settings};
use crate::error::{Error, Result};
use crate::journal::event::Transport;
use crate::journal::{Kind, Note, Outcome};
use crate::json::raw;
use crate::ledger::Ledger;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// How long the work of a ticket takes: long enough to be killed in, short enough not to wait for.
const WORK_S: f64 = 0.4;

/// The tickets of the night.
const TICKETS: [(&str, &str, &str); 4] = [
    ("night-001", "障害報告", "ログイン不可"),
    ("night-002", "請求修正", "金額誤り"),
    ("night-003", "Rotate the on-call key", "expires 2026-12-01"),
    ("night-004", "在庫差異 倉庫B", "数量が合わない"),
];

/// The ticket that the server dies in.
const LAST: (&str, &str) = ("Disk almost full on db-3", "93 % used, grows 2 % an hour");

/// The incident, ready to be looked at.
pub struct Demo {
    /// The server's ledger.
    pub ledger: Ledger,
    /// The endpoint, on its second life.
    pub client: Client,
    /// The request that was in flight.
    pub abandoned: String,
    /// Its tool arguments, as they were sent.
    pub args: String,
    folder: TempDir,
}

impl Demo {
    /// Where the ledger lies while the demo runs.
    pub fn ledger_path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }
}

/// Makes the incident. `program` is this very program.
///
/// # Errors
/// When the folder can't be made or the server can't be started, in words.
pub async fn stage(program: PathBuf) -> Result<Demo> {
    let folder = tempfile::Builder::new()
        .prefix("redial-demo-")
        .tempdir()
        .map_err(|e| Error::usage(format!("no temporary folder for the demo: {e}")))?;
    let path = folder.path().join("ledger.db");
    let words = |p: &std::path::Path| p.to_string_lossy().into_owned();
    let command = [
        words(&program),
        "serve".into(),
        "tickets".into(),
        "--ledger".into(),
        words(&path),
        "--work-seconds".into(),
        WORK_S.to_string(),
    ];
    let endpoint = Endpoint::Stdio { command: command.to_vec(), env: Vec::new(), cwd: None };
    let client = Client::start(endpoint, Settings::default());
    client.ready().await?;
    let ledger = Ledger::open(&path);

    let mut calls = Vec::new();
    for (id, title, body) in TICKETS {
        calls.push(client.call("create_ticket", &arguments(id, title, body), None).await?);
    }
    for call in calls {
        client.settled(call).await;
    }
    let (abandoned, args) = kill_in_the_middle(&client, &ledger).await?;
    client.reconnect();
    // The old generation's Dead must not be taken for the new one's.
    client.journal().wait(|s| (s.generations.len() > 1).then_some(())).await;
    client.ready().await?;
    Ok(Demo { ledger, client, abandoned, args, folder })
}

/// Sends one more ticket and kills the server between its claim and its end. A kill that came too late proves
/// nothing, so the next ticket is tried; what is shown is what happened.
async fn kill_in_the_middle(client: &Client, ledger: &Ledger) -> Result<(String, String)> {
    for n in 5..12 {
        let id = format!("night-{n:03}");
        let args = arguments(&id, LAST.0, LAST.1);
        let call = client.call("create_ticket", &args, None).await?;
        wait_for_claim(ledger, &id).await;
        let pid = client.journal().read(|s| match s.generation().map(|g| &g.transport) {
            Some(Transport::Stdio { pid, .. }) => {
                pid.and_then(|p| i32::try_from(p).ok()).and_then(Pid::from_raw)
            }
            _ => None,
        });
        let Some(pid) = pid else { break };
        client.journal().append(
            1,
            Kind::Note(Note::Text("demo: SIGKILL to the server, in the middle of a ticket".into())),
        );
        // A server that is already gone is what the journal then shows.
        kill_process(pid, Signal::KILL).ok();
        let outcome = client.settled(call).await.and_then(|c| c.outcome());
        if outcome == Some(Outcome::Unknown) {
            return Ok((id, args));
        }
        client.reconnect();
        client.ready().await?;
    }
    Err(Error::endpoint("the demo could not kill its server in the middle of a ticket")
        .hint("run it again on a calmer machine"))
}

/// Waits until the ledger has the claim, at most the time of the work.
async fn wait_for_claim(ledger: &Ledger, id: &str) {
    let claimed = async {
        loop {
            let wanted = id.to_owned();
            if let Ok(Some(_)) = ledger.read_async(move |r| r.row(&wanted)).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs_f64(WORK_S), claimed).await.ok();
}

fn arguments(id: &str, title: &str, body: &str) -> String {
    format!(
        r#"{{"request_id":{},"title":{},"body":{}}}"#,
        raw::quote(id),
        raw::quote(title),
        raw::quote(body)
    )
}
