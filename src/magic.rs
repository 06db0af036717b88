//! Files of other programs by their first bytes, so that what was given in place of another file can be named. Pure; knows
//! what is no text, and nothing of what stands inside.

/// First bytes, and what begins with them.
const FIRST: [(&[u8], &str); 29] = [
    (b"SQLite format 3\0", "a SQLite database (a ledger goes to --ledger)"),
    (b"\x37\x7f\x06\x82", "the -wal file of a SQLite database"),
    (b"\x37\x7f\x06\x83", "the -wal file of a SQLite database"),
    (b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", "the -journal file of a SQLite database"),
    (b"\x1f\x8b", "a file packed with gzip: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a file packed with zstd: unpack it first"),
    (b"BZh", "a file packed with bzip2: unpack it first"),
    (b"\xfd7zXZ\0", "a file packed with xz: unpack it first"),
    (b"\x04\x22\x4d\x18", "a file packed with lz4: unpack it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"PK\x05\x06", "a zip archive with nothing in it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (b"Rar!\x1a\x07", "a rar archive: unpack it first"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\0asm", "a program in WebAssembly"),
    (b"PAR1", "a Parquet file"),
    (b"\xd4\xc3\xb2\xa1", "a capture of network packets"),
    (b"\x0a\x0d\x0d\x0a", "a capture of network packets"),
    (b"\xff\xfe\0\0", "text in UTF-32: save it as UTF-8 first"),
    (b"\0\0\xfe\xff", "text in UTF-32: save it as UTF-8 first"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8 first"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8 first"),
];

/// What this is the beginning of, where the bytes say it. `None`: text of some kind, or nothing that is known.
pub(crate) fn name(head: &[u8]) -> Option<&'static str> {
    if let Some((_, name)) = FIRST.iter().find(|(first, _)| head.starts_with(first)) {
        return Some(name);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("a tar archive: unpack it first");
    }
    // Wide letters without a mark: every second byte of what is said in English is zero.
    let pairs = head.chunks_exact(2).take(32);
    let wide = |at: usize, other: usize| {
        pairs.len() >= 4
            && pairs.clone().all(|p| {
                p.get(at) == Some(&0) && p.get(other).is_some_and(|b| b.is_ascii() && *b != 0)
            })
    };
    (wide(1, 0) || wide(0, 1)).then_some("text in UTF-16: save it as UTF-8 first")
}

/// Whether this is the beginning of a text in UTF-8, perhaps cut inside of a letter.
pub(crate) fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(head.get(..e.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.chars().any(|c| c.is_control() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_has_a_name_and_text_has_none() {
        let utf16: Vec<u8> =
            r#"{"redial":"recording"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "2026-01-01 é".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let tar = [vec![b'a'; 257], b"ustar\0".to_vec()].concat();
        for (head, want) in [
            (&b"\x89PNG\r\n\x1a\n\0"[..], "PNG"),
            (b"\xff\xd8\xff\xe0", "JPEG"),
            (b"SQLite format 3\0", "SQLite"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"\xff\xfea\0", "UTF-16"),
            (b"\xff\xfe\0\0a\0\0\0", "UTF-32"),
            (&utf16, "UTF-16"),
            (&big[..20], "UTF-16"),
            (&tar, "tar"),
            (b"MZ\x90", "program"),
        ] {
            assert!(name(head).is_some_and(|n| n.contains(want)), "{want}: {:?}", name(head));
        }
        for head in [&b"{\"a\":1}"[..], b"", b"\0\0\0\0\0\0\0\0", b"hello", b"caf\xe9"] {
            assert_eq!(name(head), None, "{head:?}");
        }
        assert!(is_text("é".as_bytes()) && is_text(b"a\xc3") && is_text(b"a\n\tb"));
        assert!(!is_text(b"a\xe9b") && !is_text(b"a\0"));
    }
}
