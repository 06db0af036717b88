//! The first hundred bytes of a SQLite file, and its name as a URI.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The fields of a SQLite header that matter here (sqlite.org/fileformat2.html, section 1.3).
pub(super) struct Header {
    /// Byte 18 or 19 is 2.
    pub wal: bool,
    /// Grows with what is written: with everything in rollback mode, with some of it in WAL mode. It never goes back.
    pub counter: u64,
    page_size: u64,
    /// Pages the file should have, where the header vouches for it.
    pages: Option<u64>,
}

impl Header {
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        if bytes.len() < 100 || !bytes.starts_with(b"SQLite format 3\0") {
            return None;
        }
        let u16_at =
            |at: usize| bytes.get(at..at + 2).map(|b| (u64::from(b[0]) << 8) | u64::from(b[1]));
        let u32_at = |at: usize| Some(u16_at(at)? << 16 | u16_at(at + 2)?);
        let page_size = match u16_at(16)? {
            1 => 65536,
            n => n,
        };
        let vouched = u32_at(24) == u32_at(92);
        let wal = bytes.get(18) == Some(&2) || bytes.get(19) == Some(&2);
        let counter = u32_at(24)?;
        Some(Header { wal, counter, page_size, pages: u32_at(28).filter(|_| vouched) })
    }

    /// Bytes the file should have.
    pub fn should_have(&self) -> Option<u64> {
        self.pages.map(|n| n * self.page_size)
    }
}

/// SQLite's URI of a file; every unusual byte is escaped, so a name can't add parameters.
pub(super) fn uri(file: &Path, parameters: &str) -> String {
    let mut out = String::from("file:");
    for &b in file.as_os_str().as_bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(b));
            }
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out.push('?');
    out.push_str(parameters);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_add_parameters() {
        assert_eq!(
            uri(Path::new("/a b/x?mode=rw#%.db"), "mode=ro"),
            "file:/a%20b/x%3Fmode%3Drw%23%25.db?mode=ro"
        );
    }

    #[test]
    fn headers_say_the_mode_and_the_size() {
        let mut h = b"SQLite format 3\0".to_vec();
        h.resize(100, 0);
        h[16] = 0x10;
        h[18] = 2;
        h[19] = 2;
        h[31] = 6;
        let parsed = Header::parse(&h).unwrap();
        assert!(parsed.wal);
        assert_eq!(parsed.should_have(), Some(6 * 4096));
        h[27] = 1;
        assert_eq!(Header::parse(&h).unwrap().should_have(), None, "an old writer kept no size");
        assert!(Header::parse(&h[..99]).is_none());
    }
}
