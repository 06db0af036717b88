//! A stage for one scenario: a temporary folder, the built-in server to be started on it, and what it left there.

use super::effects::Effects;
use super::policy::Line;
use super::process::Server;
use crate::client::{Endpoint, Era};
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// How the server is to behave.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Seconds of work.
    pub work_s: f64,
    /// Seconds a repeat waits for the running call (`create_ticket`); the reference's 20 s if `None`.
    pub wait_s: Option<f64>,
    /// Words of `--fault`.
    pub faults: Vec<String>,
}

impl Wish {
    /// Work of so many seconds.
    pub fn work(work_s: f64) -> Wish {
        Wish { work_s, ..Wish::default() }
    }
    /// With a fault.
    pub fn fault(mut self, word: impl Into<String>) -> Wish {
        self.faults.push(word.into());
        self
    }
}

/// The folder and what is served from it.
pub struct Stage {
    folder: TempDir,
    program: String,
    /// The protocol that clients speak.
    pub era: Era,
    /// `charge`, else `create_ticket`.
    pub is_charge: bool,
    /// What the work leaves behind.
    pub effects: Effects,
}

impl Stage {
    /// A fresh folder for calls of `tool`.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn new(tool: &str, era: Era) -> Result<Stage> {
        let folder = tempfile::Builder::new()
            .prefix("redial-lab-")
            .tempdir()
            .map_err(|e| Error::usage(format!("no temporary folder: {e}")))?;
        let program = std::env::current_exe()
            .map_err(|e| Error::usage(format!("this program can't find itself: {e}")))?;
        let is_charge = tool == "charge";
        let effects = match is_charge {
            true => Effects::Lines(folder.path().join("charges.jsonl")),
            false => Effects::Ledger(Ledger::open(folder.path().join("ledger.db"))),
        };
        let program = program.to_string_lossy().into_owned();
        Ok(Stage { folder, program, era, is_charge, effects })
    }

    /// The ledger, for `create_ticket`.
    pub fn ledger(&self) -> Option<&Ledger> {
        match &self.effects {
            Effects::Ledger(ledger) => Some(ledger),
            Effects::Lines(_) => None,
        }
    }

    /// A fault that happens once over all lives: its marker file.
    pub fn once(&self) -> String {
        format!("once:{}", self.folder.path().join("killed").display())
    }

    fn command(&self, wish: &Wish, http: bool) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).to_string_lossy().into_owned();
        let mut words = vec![self.program.clone(), "serve".into(), "--die-with-parent".into()];
        words.extend(match self.is_charge {
            true => ["charge".into(), "--effects".into(), path("charges.jsonl")],
            false => ["tickets".into(), "--ledger".into(), path("ledger.db")],
        });
        words.extend(["--work-seconds".into(), wish.work_s.to_string()]);
        if let Some(wait) = wish.wait_s.filter(|_| !self.is_charge) {
            words.extend(["--wait-seconds".into(), wait.to_string()]);
        }
        for fault in &wish.faults {
            words.extend(["--fault".into(), fault.clone()]);
        }
        if http {
            words.extend(["--http".into(), "127.0.0.1:0".into()]);
        }
        words
    }

    /// The server as a child on stdio; started when the first connection is made.
    pub fn stdio(&self, wish: &Wish) -> Line {
        let command = self.command(wish, false);
        Line::new(Endpoint::Stdio { command, env: Vec::new(), cwd: None }, self.era)
    }

    /// The server over HTTP, started now.
    ///
    /// # Errors
    /// Exit 5 when it can't be started.
    pub async fn http(&self, wish: &Wish) -> Result<(Server, Line)> {
        let (server, url) = Server::listening(&self.command(wish, true)).await?;
        Ok((server, self.line(url)))
    }

    /// One more line to a server that listens.
    pub fn line(&self, url: String) -> Line {
        Line::new(Endpoint::Http { url, headers: Vec::new() }, self.era)
    }

    /// Another built-in server of this program on stdio, e.g. `baskets`.
    pub fn other(&self, name: &str) -> Line {
        let command =
            vec![self.program.clone(), "serve".into(), "--die-with-parent".into(), name.into()];
        Line::new(Endpoint::Stdio { command, env: Vec::new(), cwd: None }, self.era)
    }

    /// Where a file of this stage lies.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the work has begun: a claim in the ledger, a line among the charges.
    pub(super) async fn wait_for_work(&self, request_id: &str) {
        for _ in 0..2000 {
            let begun = match self.is_charge {
                true => self.effects.total().await.unwrap_or(0) > 0,
                false => self.effects.stored(request_id).await.is_some(),
            };
            if begun {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
