//! What the work left behind: tickets in a ledger, lines in a file of charges.

use crate::error::{Error, Result};
use crate::inspect::totals::decided;
use crate::ledger::{Effect, Ledger, Trouble, is_repeated};
use std::path::PathBuf;

/// Where effects are counted.
#[derive(Clone)]
pub enum Effects {
    /// The effects tables beside the requests.
    Ledger(Ledger),
    /// One line each (`serve charge`).
    Lines(PathBuf),
}

/// What one request left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// How often its work was done, as far as that shows: of several tables each must have one for it to be once.
    pub effects: u64,
    /// Rows in all tables.
    pub rows: u64,
}

/// A whole ledger's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// In all.
    pub effects: u64,
    /// Those that name no request.
    pub nameless: u64,
}

impl Effects {
    /// How many effects there are: of this request, or all where effects carry no request_id.
    ///
    /// # Errors
    /// Exit 6 when they can't be counted, exit 2 when nobody has said where they are.
    pub async fn of(&self, request_id: &str) -> Result<u64> {
        Ok(self.left(request_id).await?.effects)
    }

    /// The same, and in how many rows.
    ///
    /// # Errors
    /// The same.
    pub async fn left(&self, request_id: &str) -> Result<Left> {
        match self {
            Effects::Ledger(ledger) => {
                let id = request_id.to_owned();
                let read = ledger.read_async(move |r| {
                    let schema = r.schema();
                    Ok((r.effects_of(&id)?, schema.effects.len(), schema.undecided.is_empty()))
                });
                let (found, tables, is_decided) = read.await?;
                if !is_decided {
                    decided(ledger).await?;
                }
                Ok(Left { effects: times(&found, tables), rows: found.len() as u64 })
            }
            Effects::Lines(_) => {
                let rows = self.total().await?;
                Ok(Left { effects: rows, rows })
            }
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

    /// All of them; none in a ledger that a server has yet to make.
    ///
    /// # Errors
    /// Exit 6 when they can't be counted.
    pub async fn counted_or_none(&self) -> Result<Counted> {
        let Effects::Ledger(ledger) = self else {
            return Ok(Counted { effects: self.total().await?, nameless: 0 });
        };
        let read = ledger.read_async(|r| {
            Ok(Counted { effects: r.effects_total()?, nameless: r.nameless_effects()? })
        });
        match read.await {
            Err(e) if is_yet_to_come(&e.trouble) => Ok(Counted::default()),
            read => Ok(read?),
        }
    }

    /// The state that the ledger stores for a request; `None` without a ledger or a row.
    pub async fn stored(&self, request_id: &str) -> Option<String> {
        let Effects::Ledger(ledger) = self else { return None };
        let id = request_id.to_owned();
        ledger.read_async(move |r| r.row(&id)).await.ok().flatten().map(|r| r.status)
    }
}

/// A server makes its ledger with its first call.
fn is_yet_to_come(t: &Trouble) -> bool {
    matches!(
        t,
        Trouble::Missing | Trouble::Empty { .. } | Trouble::NoTables | Trouble::Foreign { .. }
    )
}

/// How often the work was done that left these, in so many tables.
fn times(effects: &[Effect], tables: usize) -> u64 {
    let all = effects.len();
    match tables {
        0 | 1 => all as u64,
        _ if is_repeated(effects) => all as u64,
        _ => u64::from(all == tables),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_tables_each_must_have_one() {
        let of = |tables: &[&str]| -> Vec<Effect> {
            let effect = |t: &&str| Effect { table: (*t).into(), ..Effect::default() };
            tables.iter().map(effect).collect()
        };
        for (found, tables, want) in [
            (&[][..], 1, 0),
            (&["t"], 1, 1),
            (&["t", "t"], 1, 2),
            (&["t", "e"], 2, 1),
            (&["t"], 2, 0),
            (&["t", "e", "e"], 2, 3),
            (&["t", "t"], 2, 2),
        ] {
            assert_eq!(times(&of(found), tables), want, "{found:?}");
        }
    }
}
