//! Private copies: for a ledger that can't be opened where it lies without leaving a trace.

use super::open::{Mode, Opened, Opener, PATIENCE, opened};
use super::stamp::{Stamp, TICK, beside};
use super::trouble::{LedgerError, Trouble};
use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Instant;

/// A copy of ledger, `-wal` and `-journal` in a folder of mode 0700 that goes with it.
pub(super) struct PrivateCopy {
    of: Stamp,
    folder: Folder,
}

/// Folders that hold a copy now.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every private copy of this process, whoever still holds one: for a process that ends now, where a thread
/// that is stuck (in a write to a pipe that nobody reads) would leave it behind. A ledger read later copies anew.
pub fn remove_private_copies() {
    for folder in folders().drain(..) {
        // Gone already, or the system's own trouble: there is nobody left to tell.
        fs::remove_dir_all(folder).ok();
    }
}

/// A temporary folder that is known to [`remove_private_copies`].
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let mut known = folders();
        let dir = tempfile::Builder::new()
            .prefix("redial-ledger-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        known.push(dir.path().to_owned());
        Ok(Folder(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        folders().retain(|f| f != self.0.path());
    }
}

impl Opener {
    /// Opens a copy, the last one if nothing changed since it was made; `why` is told.
    pub(super) fn private_copy(
        &mut self,
        real: &Path,
        why: String,
        needs: Option<u64>,
        deadline: Instant,
    ) -> Result<Opened, LedgerError> {
        let now = Stamp::of(real);
        let copy = match self.copy.take() {
            Some(copy) if copy.of == now.files() && !now.is_fresh() => copy,
            _ => self.make_copy(real, deadline)?,
        };
        let file = copy.folder.path().join("ledger.db");
        let stamp = Stamp { folder: now.folder, ..copy.of };
        self.copy = Some(copy);
        let begun = self.begin(&file, "mode=rw", needs, deadline).map_err(|e| self.sqlite(&e))?;
        let mut opened = opened(begun, Mode::PrivateCopy, real, stamp, None);
        opened.infos.push(why);
        Ok(opened)
    }

    fn make_copy(&self, real: &Path, deadline: Instant) -> Result<PrivateCopy, LedgerError> {
        let no_copy = |e: std::io::Error| self.error(Trouble::NoCopy(e.to_string()));
        let until = deadline.min(Instant::now() + PATIENCE);
        while Instant::now() < until {
            // Taken anew each time: closing a connection of ours has dropped it.
            let file = File::open(real).map_err(|e| self.io(&e))?;
            self.lock(&file, deadline)?;
            let before = Stamp::of(real).files();
            if before.is_fresh() {
                drop(file);
                sleep(TICK);
                continue;
            }
            let folder = Folder::new().map_err(no_copy)?;
            for suffix in ["", "-wal", "-journal"] {
                let to = folder.path().join(format!("ledger.db{suffix}"));
                let copied = if suffix.is_empty() {
                    // Not by name: closing a second handle would drop the lock.
                    File::create(&to).and_then(|mut to| std::io::copy(&mut &file, &mut to))
                } else {
                    fs::copy(beside(real, suffix), &to)
                };
                match copied {
                    // The copy of a read-only file would be read-only too.
                    Ok(_) => {
                        fs::set_permissions(&to, Permissions::from_mode(0o600)).map_err(no_copy)?
                    }
                    Err(e) if e.kind() == ErrorKind::NotFound && !suffix.is_empty() => {}
                    Err(e) => {
                        let what = format!("{}: {e}", beside(&self.path, suffix).display());
                        return Err(self.error(Trouble::NoCopy(what)));
                    }
                }
            }
            if Stamp::of(real).files() == before {
                return Ok(PrivateCopy { of: before, folder });
            }
        }
        Err(self.error(Trouble::Restless))
    }
}
