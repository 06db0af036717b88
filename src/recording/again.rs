//! A recording read a second time, event by event, where the first reading said how everything came out. Keeps
//! nothing.

use super::import;
use super::lines::Lines;
use super::number::Numbers;
use crate::error::{Error, Result};
use crate::record::entry::{Entry, Line, decode};
use std::path::{Path, PathBuf};

/// See the module's head.
pub struct Again {
    path: PathBuf,
    lines: Lines,
    numbers: Numbers,
}

impl Again {
    /// At the beginning of a file.
    ///
    /// # Errors
    /// Exit 6 when it can't be opened.
    pub fn open(path: &Path) -> Result<Again> {
        let lines = import::open(path)?;
        Ok(Again { path: path.to_owned(), lines, numbers: Numbers::default() })
    }

    /// Hands the events of one more piece over, numbered as in [`super::Recording`]; whether there is more.
    ///
    /// # Errors
    /// Exit 6 when it can't be read any more.
    pub fn piece(&mut self, mut each: impl FnMut(Entry)) -> Result<bool> {
        let Again { path, lines, numbers } = self;
        let failed =
            |e: std::io::Error| Error::ledger(format!("{} can't be read: {e}", path.display()));
        if lines.begins_anew().map_err(failed)? {
            *numbers = Numbers::default();
        }
        lines
            .read(|line| match decode(line.bytes) {
                Line::Header(_) => numbers.new_run(),
                Line::Entry(e) => each(numbers.place(e)),
                Line::Other | Line::Bad(_) => {}
            })
            .map_err(failed)
    }
}
