//! What stat says of a ledger and the files beside it: whether anything changed, without opening it.
//!
//! Must never open the file: closing a handle drops the POSIX locks that SQLite holds in this process.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How far apart two changes may lie and still get the same mtime: the kernel stamps files with the
/// time of its last timer tick (10 ms at 100 Hz; doubled to be sure).
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// One file as stat saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Device and inode: which file it is.
    pub file: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// Modification time: seconds and nanoseconds since the epoch.
    pub mtime: (i64, i64),
}

impl Seen {
    fn of(m: &Metadata) -> Seen {
        Seen { file: (m.dev(), m.ino()), size: m.size(), mtime: (m.mtime(), m.mtime_nsec()) }
    }

    fn at(path: &Path) -> Option<Seen> {
        std::fs::metadata(path).ok().map(|m| Seen::of(&m))
    }

    /// Changed so lately that a further change could keep the mtime.
    fn is_fresh(&self, now: SystemTime) -> bool {
        let Ok(now) = now.duration_since(SystemTime::UNIX_EPOCH) else { return true };
        let (s, ns) = self.mtime;
        let mtime_ns = i128::from(s) * 1_000_000_000 + i128::from(ns);
        (now.as_nanos() as i128 - mtime_ns).unsigned_abs() < TICK.as_nanos()
    }
}

/// A ledger and what lies beside it; `None` where there is no such file. Equal stamps mean that nothing
/// changed, unless one of them is [`Stamp::is_fresh`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    /// The database file (symbolic links followed).
    pub file: Option<Seen>,
    /// Its `-wal`.
    pub wal: Option<Seen>,
    /// Its `-journal`.
    pub journal: Option<Seen>,
    /// The folder.
    pub folder: Option<Seen>,
}

impl Stamp {
    /// Looks now.
    pub fn of(path: &Path) -> Stamp {
        // SQLite follows a symbolic link and keeps the -wal beside the file it leads to.
        let real = real(path);
        Stamp {
            file: Seen::at(&real),
            wal: Seen::at(&beside(&real, "-wal")),
            journal: Seen::at(&beside(&real, "-journal")),
            folder: real.parent().and_then(Seen::at),
        }
    }

    /// The same without the folder, which other files' coming and going changes too.
    pub(crate) fn files(mut self) -> Stamp {
        self.folder = None;
        self
    }

    /// Nothing was written between the two looks, as far as stat can tell.
    pub fn same_files(&self, later: &Stamp) -> bool {
        self.files() == later.files() && !later.is_fresh()
    }

    /// Something changed so lately that a further change may not show in the stamp: look again later.
    pub fn is_fresh(&self) -> bool {
        let now = SystemTime::now();
        [self.file, self.wal, self.journal].into_iter().flatten().any(|s| s.is_fresh(now))
    }
}

/// The file that `path` leads to; `path` itself while there is none.
pub(crate) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

/// `ledger.db` and `-wal` make `ledger.db-wal`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}
