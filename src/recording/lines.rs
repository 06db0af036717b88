//! Reads a file line by line, from where it was left, in pieces of bounded size: what is not finished yet is
//! kept until its newline comes.

use super::BadLine;
use crate::size::size;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How much is read at once.
const PIECE: usize = 1 << 20;
/// The longest line that is kept: one of 16 MiB, every byte of it spelled as an escape of JSON.
const LONGEST: usize = 128 << 20;

/// One line.
#[derive(Debug, Clone, Copy)]
pub struct LineAt<'a> {
    /// Its number in the file, from 1.
    pub number: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its bytes, without the newline.
    pub bytes: &'a [u8],
}

enum From {
    File {
        path: PathBuf,
        file: File,
        inode: u64,
    },
    /// A foreign form, converted.
    Memory(Vec<u8>),
}

/// A place in a file.
pub struct Lines {
    from: From,
    /// How far it was read.
    read_to: u64,
    number: u64,
    /// The beginning of a line whose end hasn't come.
    carry: Vec<u8>,
    /// The line is longer than what is kept of it: so many bytes were passed over.
    over: u64,
    piece: Vec<u8>,
    bad: Vec<BadLine>,
}

impl Lines {
    /// At the beginning of a file.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> io::Result<Lines> {
        crate::files::ordinary(path)?;
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Lines::of(From::File { path: path.to_owned(), file, inode }))
    }

    /// Of a converted file; `bad` are the lines that could not be converted.
    pub fn memory(text: Vec<u8>, bad: Vec<BadLine>) -> Lines {
        Lines { bad, ..Lines::of(From::Memory(text)) }
    }

    fn of(from: From) -> Lines {
        Lines {
            from,
            read_to: 0,
            number: 0,
            carry: Vec::new(),
            over: 0,
            piece: Vec::new(),
            bad: Vec::new(),
        }
    }

    /// Lines that were lost since the last time: in a conversion, or because they are too long.
    pub fn take_bad(&mut self) -> Vec<BadLine> {
        std::mem::take(&mut self.bad)
    }

    /// No whole line was in it so far: it may only just begin.
    pub fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// How far it was read.
    pub fn read_to(&self) -> u64 {
        self.read_to
    }

    /// How long it is now.
    ///
    /// # Errors
    /// The system's.
    pub fn len(&self) -> io::Result<u64> {
        match &self.from {
            From::File { file, .. } => Ok(file.metadata()?.len()),
            From::Memory(m) => Ok(m.len() as u64),
        }
    }

    /// Another process has it locked, as a tap does while it writes.
    pub fn is_held(&self) -> bool {
        use rustix::fs::{FlockOperation, flock};
        let From::File { file, .. } = &self.from else { return false };
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                flock(file, FlockOperation::Unlock).ok();
                false
            }
            Err(_) => true,
        }
    }

    /// The line that has no end yet: its number and how much of it is there.
    pub fn unfinished(&self) -> Option<(u64, usize)> {
        (!self.carry.iter().all(u8::is_ascii_whitespace))
            .then(|| (self.number + 1, self.carry.len()))
    }

    /// When the file was replaced or cut, goes back to its beginning and says so.
    ///
    /// # Errors
    /// The system's.
    pub fn begins_anew(&mut self) -> io::Result<bool> {
        let From::File { path, file, inode } = &mut self.from else { return Ok(false) };
        let replaced = std::fs::metadata(&*path).is_ok_and(|m| m.ino() != *inode);
        if replaced {
            crate::files::ordinary(path)?;
            *file = File::open(&*path)?;
            *inode = file.metadata()?.ino();
        } else if file.metadata()?.len() >= self.read_to {
            return Ok(false);
        }
        (self.read_to, self.number, self.over) = (0, 0, 0);
        self.carry.clear();
        Ok(true)
    }

    /// Reads one piece and hands over the lines it completes; whether there is more to read.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&mut self, mut each: impl FnMut(LineAt<'_>)) -> io::Result<bool> {
        if self.piece.is_empty() {
            self.piece = vec![0; PIECE];
        }
        let n = read_at(&self.from, &mut self.piece, self.read_to)?;
        let mut rest = self.piece.get(..n).unwrap_or_default();
        while let Some(nl) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(nl);
            self.number += 1;
            let begin = self.read_to - self.carry.len() as u64;
            self.read_to += nl as u64 + 1;
            if std::mem::take(&mut self.over) > 0 {
                self.carry.clear();
                let why = format!("longer than {}", size(LONGEST as u64));
                self.bad.push(BadLine { line: self.number, why });
            } else if self.carry.is_empty() {
                hand(LineAt { number: self.number, offset: begin, bytes: line }, &mut each);
            } else {
                self.carry.extend_from_slice(line);
                hand(LineAt { number: self.number, offset: begin, bytes: &self.carry }, &mut each);
                self.carry.clear();
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.read_to += rest.len() as u64;
        if self.over > 0 || self.carry.len() + rest.len() > LONGEST {
            self.over += rest.len() as u64;
        } else {
            self.carry.extend_from_slice(rest);
        }
        Ok(n > 0)
    }

    /// Bytes anywhere in it.
    ///
    /// # Errors
    /// The system's.
    pub fn at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut buf = vec![0; len];
        let mut done = 0;
        while done < len {
            let Some(rest) = buf.get_mut(done..) else { break };
            match read_at(&self.from, rest, offset + done as u64)? {
                0 => break,
                n => done += n,
            }
        }
        buf.truncate(done);
        Ok(buf)
    }
}

/// Blank lines are no damage.
fn hand(line: LineAt<'_>, each: &mut impl FnMut(LineAt<'_>)) {
    if !line.bytes.iter().all(u8::is_ascii_whitespace) {
        each(line);
    }
}

fn read_at(from: &From, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    match from {
        From::File { file, .. } => loop {
            match file.read_at(buf, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        },
        From::Memory(m) => {
            let rest = usize::try_from(offset).ok().and_then(|o| m.get(o..)).unwrap_or_default();
            let n = rest.len().min(buf.len());
            if let (Some(to), Some(src)) = (buf.get_mut(..n), rest.get(..n)) {
                to.copy_from_slice(src);
            }
            Ok(n)
        }
    }
}
