//! Private keys that are printed line by line: no line but the first says what it is.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// Lines of the longest key that is waited for; RSA with 16384 bits has about 200.
const LINES: u16 = 400;

static BEGIN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----").ok());
const END: &[u8] = b"-----END ";

/// Follows the lines of one stream.
#[derive(Debug, Clone, Default)]
pub struct KeyBlock {
    left: u16,
}

impl KeyBlock {
    /// Whether a key that began in an earlier line goes on in the next one.
    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Takes the next line; whether it belongs to a key that began in an earlier one.
    pub fn takes(&mut self, line: &[u8]) -> bool {
        let inside = self.is_open();
        let ends = memchr::memmem::rfind(line, END);
        let begins = BEGIN.as_ref().and_then(|b| b.find_iter(line).last()).map(|m| m.start());
        self.left = match (begins, ends) {
            (Some(b), Some(e)) if b < e => 0,
            (Some(_), _) => LINES,
            (None, Some(_)) => 0,
            (None, None) => self.left.saturating_sub(1),
        };
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_where_it_says_so_or_never_gets_longer_than_a_key() {
        let mut k = KeyBlock::default();
        let hidden: Vec<bool> = [
            &b"log: -----BEGIN RSA PRIVATE KEY-----"[..],
            b"Proc-Type: 4,ENCRYPTED",
            b"",
            b"MIIEow",
            b"log: -----END RSA PRIVATE KEY-----",
            b"ready",
            b"-----BEGIN PRIVATE KEY-----MIIE-----END PRIVATE KEY-----",
            b"ready",
            b"-----BEGIN CERTIFICATE-----",
            b"MIIE",
        ]
        .iter()
        .map(|l| k.takes(l))
        .collect();
        assert_eq!(hidden, [false, true, true, true, true, false, false, false, false, false]);
        k.takes(b"-----BEGIN PRIVATE KEY-----");
        assert_eq!((0..1000).filter(|_| k.takes(b"x")).count(), usize::from(LINES));
    }
}
