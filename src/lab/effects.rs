//! What the work left behind: tickets in a ledger, lines in a file of charges.

use crate::error::{Error, Result};
use crate::ledger::Ledger;
use std::path::PathBuf;

/// Where effects are counted.
#[derive(Clone)]
pub enum Effects {
    /// The effects table beside the requests.
    Ledger(Ledger),
    /// One line each (`serve charge`).
    Lines(PathBuf),
}

impl Effects {
    /// How many effects there are: of this request, or all where effects carry no request_id.
    ///
    /// # Errors
    /// Exit 6 when they can't be counted.
    pub async fn of(&self, request_id: &str) -> Result<u64> {
        match self {
            Effects::Ledger(ledger) => {
                let id = request_id.to_owned();
                let found = ledger.read_async(move |r| Ok(r.effects_of(&id)?.len() as u64)).await?;
                Ok(found)
            }
            Effects::Lines(_) => self.total().await,
        }
    }

    /// How many there are in all. A file that isn't there has none.
    ///
    /// # Errors
    /// Exit 6 when they can't be counted.
    pub async fn total(&self) -> Result<u64> {
        match self {
            Effects::Ledger(ledger) => Ok(ledger.read_async(|r| r.effects_total()).await?),
            Effects::Lines(path) => match tokio::fs::read_to_string(path).await {
                Ok(text) => Ok(text.lines().count() as u64),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(0),
                Err(e) => Err(Error::ledger(format!("{} can't be read: {e}", path.display()))),
            },
        }
    }

    /// The state that the ledger stores for a request; `None` without a ledger or a row.
    pub async fn stored(&self, request_id: &str) -> Option<String> {
        let Effects::Ledger(ledger) = self else { return None };
        let id = request_id.to_owned();
        ledger.read_async(move |r| r.row(&id)).await.ok().flatten().map(|r| r.status)
    }
}
