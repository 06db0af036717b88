//! Passes over a large ledger in pieces from separate reads, so that no question waits for a whole one.
//!
//! A piece brings plain values; folding them is done outside of the ledger's thread. What a writer changes
//! between two pieces may be counted as it was or as it is: the next pass puts it right.

use super::checks::{HashGroup, Named};
use super::reader::{Reader, sql_limit};
use super::repeats::Repeats;
use super::schema::quoted;
use super::survey::Survey;
use super::trouble::LedgerError;
use super::value;
use rusqlite::types::ValueRef;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Survey {
    /// An empty survey that goes on where this one is.
    pub fn next_piece(&self) -> Survey {
        let room = self.keep.saturating_sub(self.unfinished.len());
        self.going_on(room)
    }

    /// Adds a piece that [`Survey::next_piece`] began and [`Reader::survey`] filled.
    pub fn absorb(&mut self, piece: Survey) {
        self.rows += piece.rows;
        for (status, n) in &piece.by_status {
            *self.by_status.entry(status.clone()).or_default() += n;
        }
        self.complete = piece.complete;
        self.absorb_owners(&piece);
        self.unfinished.extend(piece.unfinished);
    }
}

/// Argument hashes of one piece of the requests table, as digests, newest first.
#[derive(Debug, Clone, Default)]
pub struct Digests {
    /// One for each row that has a hash.
    pub digests: Vec<u64>,
    /// Where the next piece begins; `None` at the end.
    pub next: Option<i64>,
}

/// Rows of one piece whose hash is among those wanted.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Hash and rowid, newest first.
    pub places: Vec<(String, i64)>,
    /// Where the next piece begins; `None` at the end.
    pub next: Option<i64>,
}

/// Finds the digests that occur more than once, in bounded memory.
#[derive(Default)]
pub struct Repeating(Repeats);

impl Repeating {
    /// Takes the digests of one piece.
    ///
    /// # Errors
    /// When there are many, and no room for a temporary file.
    pub fn push(&mut self, digests: &[u64]) -> std::io::Result<()> {
        digests.iter().try_for_each(|d| self.0.push(*d, i64::from_ne_bytes(d.to_ne_bytes())))
    }

    /// Those that came more than once.
    ///
    /// # Errors
    /// When the temporary file can't be read.
    pub fn finish(self) -> std::io::Result<HashSet<u64>> {
        let groups = self.0.finish(usize::MAX)?.groups;
        let first = groups.iter().filter_map(|(same, _)| same.first());
        Ok(first.map(|d| u64::from_ne_bytes(d.to_ne_bytes())).collect())
    }
}

impl Reader<'_> {
    /// The digests of at most `budget` rows older than `before` (from the newest when `None`).
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub fn hash_digests(&self, before: Option<i64>, budget: usize) -> Result<Digests, LedgerError> {
        let mut out = Digests::default();
        out.next = self.hash_piece(before, budget, |_, value| {
            if let Some(d) = digest(value) {
                out.digests.push(d);
            }
        })?;
        Ok(out)
    }

    /// The rows among at most `budget` older than `before` whose hash's digest is in `wanted`.
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub fn hash_places(
        &self,
        before: Option<i64>,
        budget: usize,
        wanted: &HashSet<u64>,
    ) -> Result<Places, LedgerError> {
        let mut out = Places::default();
        out.next = self.hash_piece(before, budget, |place, value| {
            if digest(value).is_some_and(|d| wanted.contains(&d)) {
                out.places.push((value::text(value).unwrap_or_default(), place));
            }
        })?;
        Ok(out)
    }

    /// The groups that places form, those with the newest rows first, and how many there are; at most `limit` groups
    /// and 100 rows of each, oldest first, with effects.
    ///
    /// # Errors
    /// When the ledger can't be read.
    pub fn hash_groups(
        &self,
        places: &[(String, i64)],
        limit: usize,
    ) -> Result<Named<HashGroup>, LedgerError> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_hash: HashMap<&str, Vec<i64>> = HashMap::new();
        for (hash, place) in places {
            by_hash.entry(hash).or_insert_with(|| {
                order.push(hash);
                Vec::new()
            });
            if let Some(rows) = by_hash.get_mut(hash.as_str()) {
                rows.push(*place);
            }
        }
        let groups: Vec<_> = order
            .into_iter()
            .filter_map(|h| Some((h, by_hash.remove(h)?)))
            .filter(|(_, p)| p.len() > 1)
            .collect();
        let total = groups.len() as u64;
        let list = groups.into_iter().take(limit).map(|(hash, mut places)| {
            places.truncate(100);
            places.reverse();
            (hash, places)
        });
        let (hashes, places): (Vec<&str>, Vec<Vec<i64>>) = list.unzip();
        let groups = hashes.into_iter().zip(self.rows_of_groups(&places)?);
        let list = groups.map(|(hash, rows)| HashGroup { args_hash: hash.to_owned(), rows });
        Ok(Named { list: list.collect(), total })
    }

    fn hash_piece(
        &self,
        before: Option<i64>,
        budget: usize,
        mut look: impl FnMut(i64, ValueRef<'_>),
    ) -> Result<Option<i64>, LedgerError> {
        let r = &self.schema().requests;
        let Some(hash) = &r.args_hash else { return Ok(None) };
        self.breathe()?;
        let (pos, from, hash) = (&r.source.pos, &r.source.from, quoted(hash));
        let budget = if r.source.rowid { budget.max(1) } else { usize::MAX };
        let sql = format!(
            "SELECT {pos}, {hash} FROM {from} WHERE {pos} <= ?1 ORDER BY {pos} DESC LIMIT ?2"
        );
        let high = match before {
            None => i64::MAX,
            Some(i64::MIN) => return Ok(None),
            Some(b) => b - 1,
        };
        let (mut seen, mut last) = (0, None);
        let mut pass = || -> rusqlite::Result<()> {
            let mut statement = self.conn().prepare(&sql)?;
            let mut rows = statement.query((high, sql_limit(budget)))?;
            while let Some(row) = rows.next()? {
                let place = row.get(0)?;
                seen += 1;
                last = Some(place);
                look(place, row.get_ref(1)?);
            }
            Ok(())
        };
        pass().map_err(|e| self.error(&e))?;
        Ok(if seen < budget { None } else { last })
    }
}

/// `None` for what is no hash: NULL and the empty text.
fn digest(value: ValueRef<'_>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match value {
        ValueRef::Null => return None,
        ValueRef::Text(b"") | ValueRef::Blob(b"") => return None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(&mut hasher),
        other => value::text(other).hash(&mut hasher),
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_found_whatever_the_order() {
        let repeated = |pieces: &[&[u64]]| {
            let mut r = Repeating::default();
            pieces.iter().for_each(|p| r.push(p).unwrap());
            r.finish().unwrap()
        };
        assert_eq!(repeated(&[&[3, 1, 2], &[3, u64::MAX, 1, u64::MAX]]), [1, 3, u64::MAX].into());
        assert!(repeated(&[&[1, 2, 3]]).is_empty());
        assert!(repeated(&[]).is_empty());
    }
}
