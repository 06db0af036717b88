//! Files that a person names, read whole and never without an end: a device, a pipe that nobody fills, or gigabytes by
//! mistake are an error in words, not a program that hangs or fills the memory.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// All of a file, where it has at most `longest` bytes. A pipe of the shell's own (`<(…)`) has a writer, and is read.
///
/// # Errors
/// The system's, or in words.
pub fn whole(path: &Path, longest: u64) -> Result<Vec<u8>> {
    let about = path.metadata()?;
    if about.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if is_unfilled(path, &about) {
        return Err(Error::other("it is a pipe, which may never have an end"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > longest {
        true => Err(Error::other(format!("it has more than {}", size(longest)))),
        false => Ok(bytes),
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

/// Whether this is a pipe with a name: opening it waits for somebody who may never come. One of the shell's own has a
/// writer.
pub fn is_unfilled(path: &Path, about: &Metadata) -> bool {
    let is_of_the_shell =
        path.starts_with("/dev/fd") || path.starts_with("/proc") || path == Path::new("/dev/stdin");
    about.file_type().is_fifo() && !is_of_the_shell
}

/// A limit as it is told to people.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 => format!("{} KiB", b >> 10),
        b => format!("{b} bytes"),
    }
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
            assert_eq!(e.to_string(), "it has more than 3 MiB");
        }
        assert_eq!(whole(dir.path(), 9).unwrap_err().kind(), ErrorKind::IsADirectory);
        let pipe = dir.path().join("p");
        let mode = rustix::fs::Mode::from(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert!(whole(&pipe, 9).unwrap_err().to_string().contains("pipe"));
        assert_eq!(not_ordinary(&pipe.metadata().unwrap()), Some("a pipe"));
        assert_eq!(not_ordinary(&Path::new("/dev/null").metadata().unwrap()), Some("a device"));
    }
}
