//! How one read gets at the file without leaving a trace (design: "Reading without a trace").
//!
//! Decides by the header and by what lies beside the file, opens one short connection, and can tell
//! afterwards whether what it gave was true. Writes to nothing but private copies in its own folders.

use super::copy::PrivateCopy;
use super::header::{Header, uri};
use super::stamp::{Seen, Stamp, TICK, beside, real};
use super::trouble::{LedgerError, Trouble};
use crate::magic;
use crate::time::Time;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// No read takes longer.
pub(super) const READ_LIMIT: Duration = Duration::from_secs(20);
/// How long a read waits for a lock before it says "locked".
const BUSY: Duration = Duration::from_millis(400);
/// The same for a long read, which is worth waiting for the pause of a writer that hardly makes any.
const BUSY_LONG: Duration = Duration::from_secs(5);
/// How long it tries to find a file that changes all the time at rest.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// No value of a row is larger (64 MiB): a row that holds one counts as unreadable.
const MAX_VALUE: i32 = 64 << 20;

/// What a read was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Read-only beside an existing `-wal`; one snapshot.
    ReadOnly,
    /// WAL mode at rest: no `-wal`, so the file alone is the whole truth; one snapshot.
    Immutable,
    /// Rollback journal: read-only in pieces of about 5 ms, since a reader's lock holds up the writer's commit.
    Pieces,
    /// A private copy of the file and what lies beside it; one snapshot.
    PrivateCopy,
}

/// An open connection in a read transaction.
pub(super) struct Opened {
    pub conn: Connection,
    pub mode: Mode,
    pub infos: Vec<String>,
    pub warnings: Vec<String>,
    /// WAL header and no `-wal`.
    pub wal_absent: bool,
    /// The file is shorter than its header says.
    pub half_copied: Option<(u64, u64)>,
    /// As it was before anything was read.
    pub stamp: Stamp,
    /// The header's file change counter.
    pub counter: u64,
    real: PathBuf,
    /// Holds a read lock on the whole file: must outlive `conn` (fields drop in order).
    _lock: Option<File>,
}

impl Opened {
    /// Whether what was read is true: nothing was written under an unlocked read. To be asked while
    /// the connection is still open.
    pub fn still_true(&self) -> bool {
        self.mode != Mode::Immutable || Stamp::of(&self.real).files() == self.stamp.files()
    }
}

/// What one reading thread keeps between reads.
pub(super) struct Opener {
    pub path: PathBuf,
    /// The tables that hold effects, where somebody has said so.
    pub effects: Arc<[String]>,
    pub closing: Arc<AtomicBool>,
    pub copy: Option<PrivateCopy>,
}

/// A -wal that nobody has open: SQLite reads it with the file whether it is of this ledger or not, and nobody can tell.
/// So both are named, with what a person can compare.
fn left_wal(real: &Path, file: &File, stamp: &Stamp) -> Option<String> {
    let wal = stamp.wal.filter(|w| w.size > 0)?;
    let base = stamp.file?;
    let whole = Flock::from(FlockType::WriteLock);
    if !matches!(fcntl_getlk(file, &whole), Ok(None)) {
        return None;
    }
    let seen = |s: Seen| {
        let at = Time(s.mtime.0.saturating_mul(1_000_000) + s.mtime.1 / 1_000);
        format!("{} bytes, changed {}", s.size, at.rfc3339())
    };
    Some(format!(
        "{} ({}) is read with {} ({}), which nobody has open: a writer that was ended left it there, or it is another ledger's",
        real.display(),
        seen(base),
        beside(real, "-wal").display(),
        seen(wal)
    ))
}

/// What stands in the way of a plain open.
enum Way {
    Go(Box<Opened>),
    /// Only a private copy will do; why, in words.
    Copy(String),
}

impl Opener {
    pub(super) fn error(&self, trouble: Trouble) -> LedgerError {
        LedgerError::new(&self.path, trouble)
    }

    pub(super) fn sqlite(&self, e: &rusqlite::Error) -> LedgerError {
        LedgerError::from_sqlite(&self.path, e)
    }

    pub(super) fn io(&self, e: &std::io::Error) -> LedgerError {
        self.error(match e.kind() {
            ErrorKind::NotFound => Trouble::Missing,
            ErrorKind::PermissionDenied => Trouble::NotReadable,
            _ => Trouble::Other(e.to_string()),
        })
    }

    /// Opens for one read. The caller must hold the file's guard (`thread`): opening and closing here
    /// would drop the locks of another connection of this process.
    pub fn open(&mut self, deadline: Instant) -> Result<Opened, LedgerError> {
        let real = real(&self.path);
        self.check_file(&real)?;
        let mut file = File::open(&real).map_err(|e| self.io(&e))?;
        let header = self.header(&real, &mut file)?;
        let wal = beside(&real, "-wal");
        let (wal_header, needs) = (header.wal, header.should_have());
        let counter = header.counter;
        let mut left = None;
        let way = if wal_header || wal.exists() {
            // With this lock no closing writer can fold the -wal in and delete it: the -wal that is
            // seen now stays, and if there is none, one that a writer makes now stays to be seen.
            let locked = self.lock(&file, deadline)?;
            let stamp = Stamp::of(&real);
            match (stamp.wal, stamp.journal) {
                (Some(_), _) => {
                    left = left_wal(&real, &file, &stamp);
                    self.beside_wal(&real, file, stamp, needs, deadline)?
                }
                (None, None) => {
                    if !locked && stamp.is_fresh() {
                        sleep(TICK);
                    }
                    self.at_rest(&real, file, needs, deadline)?
                }
                (None, Some(_)) => Way::Copy(left_journal(&self.path)),
            }
        } else {
            drop(file);
            self.rollback(&real, needs, deadline)?
        };
        let mut opened = match way {
            Way::Go(opened) => *opened,
            Way::Copy(why) => self.private_copy(&real, why, needs, deadline)?,
        };
        opened.counter = counter;
        opened.infos.extend(left);
        if wal_header && opened.stamp.wal.is_none() {
            opened.wal_absent = true;
            let name = name(&self.path);
            opened.infos.push(format!(
                "WAL mode and no {name}-wal beside it: at rest that is as it should be, but a copy made without the {name}-wal lacks the newest rows"
            ));
        }
        if let Some((has, needs)) = opened.half_copied {
            opened.warnings.push(format!(
                "the file has {has} bytes and should have {needs}: a copy that broke off"
            ));
        }
        Ok(opened)
    }

    fn check_file(&self, real: &Path) -> Result<(), LedgerError> {
        let meta = fs::metadata(real).map_err(|e| self.io(&e))?;
        let kind = meta.file_type();
        if !kind.is_file() {
            return Err(self.error(Trouble::NotAFile(match () {
                () if kind.is_dir() => "folder",
                () if kind.is_fifo() => "pipe",
                () if kind.is_socket() => "socket",
                () => "device",
            })));
        }
        // SQLite opens what lies beside a ledger without a look, and would wait for a pipe.
        for suffix in ["-wal", "-shm", "-journal"] {
            if let Err(e) = crate::files::ordinary(&beside(real, suffix)) {
                return Err(self.error(Trouble::Other(format!("of its {suffix}: {e}"))));
            }
        }
        if meta.len() == 0 {
            // Never opened: SQLite deletes a -wal beside an empty database, even when it only reads.
            let wal = fs::metadata(beside(real, "-wal")).ok().map(|m| m.len());
            return Err(self.error(Trouble::Empty { wal }));
        }
        Ok(())
    }

    fn header(&self, real: &Path, file: &mut File) -> Result<Header, LedgerError> {
        let mut bytes = Vec::with_capacity(512);
        file.take(512).read_to_end(&mut bytes).map_err(|e| self.io(&e))?;
        if let Some(header) = Header::parse(&bytes) {
            return Ok(header);
        }
        let full = real.as_os_str().as_bytes();
        for suffix in ["-wal", "-journal", "-shm"] {
            if let Some(main) = full.strip_suffix(suffix.as_bytes()) {
                let main = PathBuf::from(std::ffi::OsStr::from_bytes(main));
                if main.exists() {
                    return Err(self.error(Trouble::SideFile { main }));
                }
            }
        }
        let looks = match magic::name(&bytes) {
            _ if bytes.starts_with(b"SQLite format 3\0") => "a SQLite header that breaks off",
            // What would make a recording of it makes no ledger.
            Some(name) => name.split_once(':').map_or(name, |(what, _)| what),
            None if bytes.starts_with(b"{\"redial\":\"recording\"") => {
                "a recording (it goes to --recording)"
            }
            None if magic::is_text(&bytes) => "text",
            None if bytes.iter().all(|b| *b == 0) => "zeros",
            None => "something else (or it is encrypted)",
        };
        Err(self.error(Trouble::NotSqlite { looks }))
    }

    /// A read lock on the whole file, `false` where the file system has none.
    pub(super) fn lock(&self, file: &File, deadline: Instant) -> Result<bool, LedgerError> {
        let until = deadline.min(Instant::now() + busy(deadline));
        loop {
            if self.closing.load(Ordering::Relaxed) {
                return Err(self.error(Trouble::Closed));
            }
            match fcntl_lock(file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(true),
                // A writer folds its -wal in, or holds the file exclusively.
                Err(Errno::AGAIN | Errno::ACCESS) if Instant::now() < until => {
                    sleep(Duration::from_millis(1));
                }
                Err(Errno::AGAIN | Errno::ACCESS) => {
                    return Err(self.error(Trouble::Locked { for_s: 0.0 }));
                }
                Err(_) => return Ok(false),
            }
        }
    }

    fn beside_wal(
        &self,
        real: &Path,
        lock: File,
        stamp: Stamp,
        needs: Option<u64>,
        deadline: Instant,
    ) -> Result<Way, LedgerError> {
        let me = rustix::process::geteuid();
        let owner = fs::metadata(real).map_err(|e| self.io(&e))?.uid();
        // SQLite gives a -shm made by root to the ledger's owner; one made by anybody else would lock
        // the owner's server out of its own ledger.
        let may_make_shm = me.is_root() || me.as_raw() == owner;
        if !may_make_shm && !beside(real, "-shm").exists() {
            return Ok(Way::Copy(no_shm(&self.path)));
        }
        match self.begin(real, "mode=ro", needs, deadline) {
            Ok(begun) => Ok(go(begun, Mode::ReadOnly, real, stamp, Some(lock))),
            Err(e) => match e.sqlite_error_code() {
                Some(ErrorCode::ReadOnly) if is_hot(&e) => Ok(Way::Copy(left_journal(&self.path))),
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => {
                    Ok(Way::Copy(no_shm(&self.path)))
                }
                _ => Err(self.sqlite(&e)),
            },
        }
    }

    fn at_rest(
        &self,
        real: &Path,
        lock: File,
        needs: Option<u64>,
        deadline: Instant,
    ) -> Result<Way, LedgerError> {
        let stamp = Stamp::of(real);
        let begun = self.begin(real, "mode=ro&immutable=1", needs, deadline);
        let begun = begun.map_err(|e| self.sqlite(&e))?;
        Ok(go(begun, Mode::Immutable, real, stamp, Some(lock)))
    }

    fn rollback(
        &self,
        real: &Path,
        needs: Option<u64>,
        deadline: Instant,
    ) -> Result<Way, LedgerError> {
        let stamp = Stamp::of(real);
        match self.begin(real, "mode=ro", needs, deadline) {
            Ok(begun) => Ok(go(begun, Mode::Pieces, real, stamp, None)),
            Err(e) if is_hot(&e) => Ok(Way::Copy(left_journal(&self.path))),
            Err(e) => Err(self.sqlite(&e)),
        }
    }

    /// Opens and starts the read transaction. A file shorter than its header says is refused by SQLite
    /// as a whole; with a writable schema (of a read-only connection) it gives what there is.
    pub(super) fn begin(
        &self,
        file: &Path,
        how: &str,
        needs: Option<u64>,
        deadline: Instant,
    ) -> rusqlite::Result<Begun> {
        let conn = self.connect(&uri(file, how), deadline)?;
        let snapshot = || conn.execute_batch("BEGIN; PRAGMA schema_version;");
        match snapshot() {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                let Some(half) = len(file).zip(needs).filter(|(has, needs)| has < needs) else {
                    return Err(e);
                };
                conn.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
                if !conn.is_autocommit() {
                    conn.execute_batch("ROLLBACK")?;
                }
                snapshot()?;
                Ok(Begun { conn, half_copied: Some(half) })
            }
            done => done.map(|()| Begun { conn, half_copied: None }),
        }
    }

    fn connect(&self, uri: &str, deadline: Instant) -> rusqlite::Result<Connection> {
        // The URI's mode can only lessen what the flags allow.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Connection::open_with_flags(uri, flags)?;
        WAITING.set(Some((Arc::clone(&self.closing), busy(deadline), Instant::now())));
        conn.busy_handler(Some(every_millisecond))?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
        conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;")?;
        // A collation that only the server knows: nothing here compares by it, and its tables can be read.
        conn.collation_needed(|c, name| c.create_collation(name, |a, b| a.cmp(b)))?;
        let closing = Arc::clone(&self.closing);
        let stop = move || closing.load(Ordering::Relaxed) || Instant::now() > deadline;
        conn.progress_handler(1000, Some(stop))?;
        Ok(conn)
    }
}

/// A connection in its read transaction.
pub(super) struct Begun {
    conn: Connection,
    half_copied: Option<(u64, u64)>,
}

fn go(begun: Begun, mode: Mode, real: &Path, stamp: Stamp, lock: Option<File>) -> Way {
    Way::Go(Box::new(opened(begun, mode, real, stamp, lock)))
}

pub(super) fn opened(
    begun: Begun,
    mode: Mode,
    real: &Path,
    stamp: Stamp,
    lock: Option<File>,
) -> Opened {
    Opened {
        counter: 0,
        conn: begun.conn,
        mode,
        infos: Vec::new(),
        warnings: Vec::new(),
        wal_absent: false,
        half_copied: begun.half_copied,
        stamp,
        real: real.to_owned(),
        _lock: lock,
    }
}

/// How long to wait for a lock, for a read that must end at `deadline`.
fn busy(deadline: Instant) -> Duration {
    let long = deadline.saturating_duration_since(Instant::now()) > READ_LIMIT;
    if long { BUSY_LONG } else { BUSY }
}

thread_local! {
    /// The flag of the ledger whose thread this is: SQLite's handler is a plain function. And how long a wait may
    /// take that begins with its next try.
    static WAITING: RefCell<Option<(Arc<AtomicBool>, Duration, Instant)>> = const { RefCell::new(None) };
}

/// SQLite's own handler soon looks only every 100 ms, and a writer of a rollback-journal ledger that commits
/// all the time leaves gaps of a millisecond.
fn every_millisecond(tries: i32) -> bool {
    WAITING.with_borrow_mut(|waiting| {
        let Some((closing, limit, since)) = waiting else { return false };
        if tries == 0 {
            *since = Instant::now();
        }
        sleep(Duration::from_millis(1));
        !closing.load(Ordering::Relaxed) && since.elapsed() < *limit
    })
}

fn len(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|m| m.len())
}

fn is_hot(e: &rusqlite::Error) -> bool {
    e.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn left_journal(path: &Path) -> String {
    let name = name(path);
    format!(
        "{name}-journal was left by a writer that died in the middle of a transaction: read from a private copy in which that transaction is rolled back, as the next writer will do"
    )
}

fn no_shm(path: &Path) -> String {
    let name = name(path);
    format!(
        "reading beside {name}-wal needs a {name}-shm that this user can't make here: read from a private copy"
    )
}
