//! Files that a person names, read whole and never without an end: a device, a pipe that nobody fills, or gigabytes by
//! mistake are an error in words, not a program that hangs or fills the memory.

use crate::size::size;
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// How much is read of a pipe, whose end nobody knows.
pub const OF_A_PIPE: u64 = 64 << 20;

/// All of a file, where it has at most `longest` bytes. A pipe of the shell's own (`<(…)`) has a writer, and is read,
/// up to [`OF_A_PIPE`].
///
/// # Errors
/// The system's, or in words.
pub fn whole(path: &Path, longest: u64) -> Result<Vec<u8>> {
    let about = path.metadata()?;
    if about.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let what = not_ordinary(&about);
    if let Some(what) = what.filter(|_| !is_of_the_shell(path)) {
        return Err(Error::other(format!("it is {what}, which may never have an end")));
    }
    let longest = if what.is_some() { longest.min(OF_A_PIPE) } else { longest };
    let too_long = || Error::other(format!("it has more than {}", size(longest)));
    // Said before any of it is read.
    if what.is_none() && about.len() > longest {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest { Err(too_long()) } else { Ok(bytes) }
}

/// Fails where the path leads to what is no ordinary file; there may be none yet. To be asked before it is opened:
/// opening a pipe waits for its other end, and a device does with what is written whatever it likes.
///
/// # Errors
/// In words.
pub fn ordinary(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(about) => match not_ordinary(&about) {
            None => Ok(()),
            Some(what) => Err(Error::other(format!("it is {what}, and no ordinary file"))),
        },
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Why a file can't be read more than once, from the place that is wanted, up to an end.
pub fn not_ordinary(about: &Metadata) -> Option<&'static str> {
    let kind = about.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

/// What the shell has opened already: a pipe (`<(…)`), or its standard input.
pub fn is_of_the_shell(path: &Path) -> bool {
    path.starts_with("/dev/fd") || path.starts_with("/proc") || path == Path::new("/dev/stdin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(whole(&file, 5).unwrap(), b"12345");
        assert_eq!(whole(&file, 4).unwrap_err().to_string(), "it has more than 4 bytes");
        for endless in ["/dev/zero", "/dev/urandom"] {
            let e = whole(Path::new(endless), 3 << 20).unwrap_err();
            assert_eq!(e.to_string(), "it is a device, which may never have an end");
            let e = ordinary(Path::new(endless)).unwrap_err();
            assert_eq!(e.to_string(), "it is a device, and no ordinary file");
        }
        // Also where it is the standard input of somebody.
        let zero = File::open("/dev/zero").unwrap();
        let its = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&zero));
        assert_eq!(
            whole(Path::new(&its), 3 << 20).unwrap_err().to_string(),
            "it has more than 3 MiB"
        );
        // A file of a terabyte is not read to find out that it is too long.
        let sparse = File::create(dir.path().join("s")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let e = whole(&dir.path().join("s"), 1 << 30).unwrap_err();
        assert_eq!(e.to_string(), "it has more than 1 GiB");
        assert!(ordinary(&file).is_ok() && ordinary(&dir.path().join("none")).is_ok());
        assert!(ordinary(dir.path()).unwrap_err().to_string().contains("a folder"));
        assert_eq!(whole(dir.path(), 9).unwrap_err().kind(), ErrorKind::IsADirectory);
        let pipe = dir.path().join("p");
        let mode = rustix::fs::Mode::from(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert!(whole(&pipe, 9).unwrap_err().to_string().contains("it is a pipe"));
        assert!(ordinary(&pipe).unwrap_err().to_string().contains("it is a pipe"));
        assert_eq!(not_ordinary(&pipe.metadata().unwrap()), Some("a pipe"));
        assert_eq!(not_ordinary(&Path::new("/dev/null").metadata().unwrap()), Some("a device"));
    }
}
