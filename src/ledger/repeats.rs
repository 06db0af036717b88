//! Which values of a column occur more than once, in bounded memory: 16 bytes for each row, in memory for a
//! quarter of a million rows, then in temporary files that have no name. Knows no SQL.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};

/// Records kept in memory before the rest goes to files: 4 MiB.
const IN_MEMORY: usize = 1 << 18;
/// Files; each is sorted on its own, so a hundred million rows need 25 MB at a time.
const FILES: usize = 64;
const BUFFER: usize = 16 << 10;
/// Places kept of one group.
pub const PLACES: usize = 100;

/// A value's digest and where it stands.
type Record = (u64, i64);

/// Takes digests with their places; then says which came more than once.
#[derive(Default)]
pub(super) struct Repeats {
    records: Vec<Record>,
    files: Vec<BufWriter<File>>,
    /// Not a test of its own: fewer, so that files are tried without a million rows.
    in_memory: Option<usize>,
}

/// Values that came more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repeated {
    /// Places of equal values, highest first, at most [`PLACES`] of each; with how many there are. The
    /// group with the highest place comes first.
    pub groups: Vec<(Vec<i64>, u64)>,
    /// How many groups there are, kept or not.
    pub total: u64,
    /// Places in all groups.
    pub members: u64,
    /// Pairs of equal values.
    pub pairs: u64,
}

impl Repeats {
    /// Adds one.
    pub fn push(&mut self, digest: u64, place: i64) -> io::Result<()> {
        if self.files.is_empty() && self.records.len() < self.in_memory.unwrap_or(IN_MEMORY) {
            self.records.push((digest, place));
            return Ok(());
        }
        if self.files.is_empty() {
            self.files = (0..FILES)
                .map(|_| tempfile::tempfile().map(|f| BufWriter::with_capacity(BUFFER, f)))
                .collect::<io::Result<_>>()?;
            for record in std::mem::take(&mut self.records) {
                self.spill(record)?;
            }
        }
        self.spill((digest, place))
    }

    fn spill(&mut self, (digest, place): Record) -> io::Result<()> {
        let file = &mut self.files[(digest >> 58) as usize % FILES];
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&digest.to_le_bytes());
        bytes[8..].copy_from_slice(&place.to_le_bytes());
        file.write_all(&bytes)
    }

    /// The groups; the `limit` ones with the highest places are kept.
    pub fn finish(self, limit: usize) -> io::Result<Repeated> {
        let mut out = Repeated::default();
        let mut kept = BTreeMap::new();
        groups(self.records, limit, &mut kept, &mut out);
        for file in self.files {
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            groups(read(&mut file)?, limit, &mut kept, &mut out);
        }
        out.groups = kept.into_values().rev().collect();
        Ok(out)
    }
}

fn read(file: &mut File) -> io::Result<Vec<Record>> {
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    let mut records = Vec::with_capacity(len / 16);
    let mut chunk = vec![0; 64 << 10];
    let mut filled = 0;
    loop {
        let n = file.read(&mut chunk[filled..])?;
        if n == 0 {
            return Ok(records);
        }
        filled += n;
        let whole = filled - filled % 16;
        for record in chunk[..whole].chunks_exact(16) {
            let half = |at: usize| record[at..at + 8].try_into().unwrap_or_default();
            records.push((u64::from_le_bytes(half(0)), i64::from_le_bytes(half(8))));
        }
        chunk.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

/// Finds the runs of equal digests. Equal digests are taken for equal values; whoever needs to be sure looks
/// at the values of the places kept.
fn groups(
    mut records: Vec<Record>,
    limit: usize,
    kept: &mut BTreeMap<i64, (Vec<i64>, u64)>,
    out: &mut Repeated,
) {
    records.sort_unstable();
    for run in records.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
        let n = run.len() as u64;
        out.total += 1;
        out.members += n;
        out.pairs += n * (n - 1) / 2;
        let Some((_, newest)) = run.last() else { continue };
        if kept.len() == limit && kept.keys().next().is_none_or(|oldest| newest < oldest) {
            continue;
        }
        let places = run.iter().rev().take(PLACES).map(|(_, place)| *place).collect();
        kept.insert(*newest, (places, n));
        if kept.len() > limit {
            kept.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(in_memory: usize) -> Repeated {
        let mut r = Repeats { in_memory: Some(in_memory), ..Repeats::default() };
        for place in 0..1000i64 {
            // Every value once, but for 7 (ten times) and the pair at 500 and 501.
            let value = match place {
                p if p % 100 == 7 => u64::MAX / 2,
                501 => 500,
                p => p as u64,
            };
            r.push(value.wrapping_mul(0x9E37_79B9_7F4A_7C15), place).unwrap();
        }
        r.finish(9).unwrap()
    }

    #[test]
    fn files_and_memory_find_the_same_groups() {
        let memory = fill(usize::MAX);
        assert_eq!((memory.total, memory.members, memory.pairs), (2, 12, 46));
        assert_eq!(memory.groups[0].0[..2], [907, 807]);
        assert_eq!(memory.groups[1], (vec![501, 500], 2));
        assert_eq!(fill(10), memory);
    }

    #[test]
    fn the_groups_with_the_newest_places_are_kept_and_all_are_counted() {
        let mut r = Repeats::default();
        for place in 0..400 {
            r.push(place as u64 % 150, place).unwrap();
        }
        let found = r.finish(2).unwrap();
        assert_eq!((found.total, found.members), (150, 400));
        assert_eq!(found.groups, [(vec![399, 249, 99], 3), (vec![398, 248, 98], 3)]);
        let none = Repeats::default().finish(2).unwrap();
        assert_eq!(none, Repeated::default());
    }
}
