//! Why a ledger can't be read, in words, with what to do.
//!
//! Owns the vocabulary and its sentences. Names of files and tables in it are foreign text: faces pass
//! the finished sentence through `text`.

use crate::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// A ledger that can't be read.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerError {
    /// The file that was asked for.
    pub path: PathBuf,
    /// What is wrong with it.
    pub trouble: Trouble,
}

/// What is wrong with a ledger.
#[derive(Debug, Clone, PartialEq)]
pub enum Trouble {
    /// No such file.
    Missing,
    /// A folder, socket, pipe or device.
    NotAFile(&'static str),
    /// The file, or a folder on the way to it, can't be read by this user.
    NotReadable,
    /// Zero bytes; the size of a `-wal` left beside it, if there is one.
    Empty {
        /// Bytes of the `-wal`.
        wal: Option<u64>,
    },
    /// Some other kind of file.
    NotSqlite {
        /// What its first bytes look like, e.g. `text`.
        looks: &'static str,
    },
    /// A part of a database whose name was given instead of the database's.
    SideFile {
        /// The name that was probably meant.
        main: PathBuf,
    },
    /// A SQLite database without any table.
    NoTables,
    /// No table has both a request id and a status.
    Foreign {
        /// Tables with their columns.
        tables: Vec<(String, Vec<String>)>,
    },
    /// A table that was named as the one with effects can't be it.
    NoSuchEffects {
        /// As named.
        table: String,
        /// There is such a table, without a request id or with the requests themselves.
        exists: bool,
        /// Those that could be meant.
        there: Vec<String>,
    },
    /// Another process holds it exclusively.
    Locked {
        /// Seconds since it was first found locked.
        for_s: f64,
    },
    /// It is rewritten faster than it can be copied or read.
    Restless,
    /// Shorter than its own header says.
    HalfCopied {
        /// Bytes there are.
        has: u64,
        /// Bytes there should be.
        needs: u64,
    },
    /// It is damaged, and this request is not among the rows that can be read; it may be among the others.
    RowLost {
        /// The request asked for.
        request_id: String,
        /// At least so many rows could not be read.
        rows: u64,
    },
    /// Its structure is broken and nothing could be read.
    Damaged(String),
    /// The read was given up.
    TooSlow {
        /// After so many seconds.
        limit_s: u64,
    },
    /// A private copy was needed and could not be made.
    NoCopy(String),
    /// The handle was closed while reading.
    Closed,
    /// Anything else that SQLite or the system says.
    Other(String),
}

impl LedgerError {
    /// A trouble with `path`.
    pub fn new(path: &Path, trouble: Trouble) -> LedgerError {
        LedgerError { path: path.to_owned(), trouble }
    }

    /// What went wrong, as SQLite says it.
    pub(crate) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> LedgerError {
        use rusqlite::ErrorCode as Code;
        let trouble = match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed) => {
                Trouble::Locked { for_s: 0.0 }
            }
            Some(Code::DatabaseCorrupt | Code::TooBig) => Trouble::Damaged(error.to_string()),
            Some(Code::NotADatabase) => {
                Trouble::NotSqlite { looks: "something encrypted or foreign" }
            }
            Some(Code::OperationInterrupted) => {
                Trouble::TooSlow { limit_s: super::open::READ_LIMIT.as_secs() }
            }
            Some(Code::PermissionDenied) => Trouble::NotReadable,
            Some(Code::SystemIoFailure) if is_short_read(error) => {
                Trouble::Damaged(error.to_string())
            }
            _ => Trouble::Other(error.to_string()),
        };
        LedgerError::new(path, trouble)
    }

    /// Whether other rows may still be readable.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.trouble, Trouble::Damaged(_))
    }

    /// Whether it comes from what the file holds.
    pub(crate) fn is_about_content(&self) -> bool {
        let t = &self.trouble;
        matches!(t, Trouble::Damaged(_) | Trouble::NoTables | Trouble::Foreign { .. })
    }

    /// What to do about it.
    fn hint(&self) -> String {
        let name = self.name();
        match &self.trouble {
            Trouble::Missing => {
                "check the path; a server started in another folder writes its ledger there".into()
            }
            Trouble::NotAFile(_) => "give the database file itself".into(),
            Trouble::NotReadable => {
                "read it as the user who runs the server, or ask for read permission on the file and search permission on its folders".into()
            }
            Trouble::Empty { wal: None } | Trouble::NoTables => {
                "a server makes its tables with its first call; look again after it, or check the path".into()
            }
            Trouble::Empty { wal: Some(_) } => {
                "a -wal can't be read without its database: look for the database it belongs to".into()
            }
            Trouble::NotSqlite { .. } => "give the SQLite file that the server writes".into(),
            Trouble::SideFile { main } => format!("give {}", main.display()),
            Trouble::Foreign { .. } => {
                "a ledger is a table with at least the columns request_id and status".into()
            }
            Trouble::NoSuchEffects { there, .. } if there.is_empty() => {
                "no table beside the requests has a request_id".into()
            }
            Trouble::NoSuchEffects { there, .. } => {
                format!("there are: {}", there.join(", "))
            }
            Trouble::Locked { .. } => {
                format!("wait for its writer, or find the process that holds {name} open")
            }
            Trouble::Restless => "try again, or read it as the user who runs the server".into(),
            Trouble::HalfCopied { .. } => {
                format!("copy it again, together with {name}-wal if there is one")
            }
            Trouble::Damaged(_) | Trouble::RowLost { .. } => {
                "keep this file as it is, and work on a copy (sqlite3 copy.db .recover)".into()
            }
            Trouble::TooSlow { .. } => "try again when the disk is quieter".into(),
            Trouble::NoCopy(_) => "free some space, or set TMPDIR to a folder that can be written".into(),
            Trouble::Closed | Trouble::Other(_) => "look again".into(),
        }
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let name = self.name();
        match &self.trouble {
            Trouble::Missing => write!(f, "there is no {path}"),
            Trouble::NotAFile(kind) => write!(f, "{path} is a {kind}, not a ledger"),
            Trouble::NotReadable => write!(f, "{path} can't be read by this user"),
            Trouble::Empty { wal: None } => write!(f, "{path} is empty (0 bytes)"),
            Trouble::Empty { wal: Some(bytes) } => {
                write!(
                    f,
                    "{path} is empty (0 bytes), and a {name}-wal of {bytes} bytes lies beside it"
                )
            }
            Trouble::NotSqlite { looks } => {
                write!(f, "{path} is not a SQLite database: its first bytes are {looks}")
            }
            Trouble::SideFile { main } => {
                write!(f, "{path} is only a part of {}", main.display())
            }
            Trouble::NoTables => write!(f, "{path} holds no table yet"),
            Trouble::Foreign { tables } => {
                write!(f, "no table of {path} has both a request_id and a status; found ")?;
                for (i, (table, columns)) in tables.iter().take(20).enumerate() {
                    let sep = if i == 0 { "" } else { ", " };
                    write!(f, "{sep}{table}({})", columns.join(", "))?;
                }
                match tables.len() {
                    0..=20 => Ok(()),
                    n => write!(f, " and {} more", n - 20),
                }
            }
            Trouble::NoSuchEffects { table, exists: true, .. } => {
                write!(
                    f,
                    "{table} of {path} can't be the effects: it has no request_id, or it is the requests"
                )
            }
            Trouble::NoSuchEffects { table, .. } => write!(f, "{path} has no table {table}"),
            Trouble::Locked { for_s } if *for_s < 1.0 => {
                write!(f, "{path} is locked by another process")
            }
            Trouble::Locked { for_s } => {
                let span = crate::time::span(*for_s);
                write!(f, "{path} has been locked by another process for {span}")
            }
            Trouble::Restless => write!(f, "{path} is rewritten faster than it can be read"),
            Trouble::HalfCopied { has, needs } => write!(
                f,
                "{path} has {has} bytes and should have {needs}: a copy that broke off; nothing in it could be read"
            ),
            Trouble::RowLost { request_id, rows } => write!(
                f,
                "{path} is damaged: {request_id} is not among the rows that can be read, and may be among those that could not (at least {rows})"
            ),
            Trouble::Damaged(why) => {
                write!(f, "{path} is damaged and nothing in it could be read ({why})")
            }
            Trouble::TooSlow { limit_s } => {
                write!(f, "reading {path} took more than {limit_s} s and was given up")
            }
            Trouble::NoCopy(why) => {
                write!(f, "{path} needs a private copy to be read, and none could be made: {why}")
            }
            Trouble::Closed => write!(f, "{path} was closed while it was read"),
            Trouble::Other(why) => write!(f, "{path} can't be read: {why}"),
        }
    }
}

impl std::error::Error for LedgerError {}

impl From<LedgerError> for Error {
    fn from(e: LedgerError) -> Error {
        let words = e.to_string();
        let error = match e.trouble {
            // The ledger is all right.
            Trouble::NoSuchEffects { .. } => Error::usage(words),
            _ => Error::ledger(words),
        };
        error.hint(e.hint())
    }
}

fn is_short_read(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}
