//! Words of commands that are printed or copied: what is pasted into a POSIX shell means what was shown.
//!
//! Pure. Characters that a terminal would act on, or not show, never stand in a command as they are.

use crate::json::raw;
use crate::text::visible;
use std::borrow::Cow;
use std::fmt::Write;

/// More of an id no command line takes well: Linux allows 128 KiB for one word.
pub const LONG: usize = 4096;

/// One word.
pub fn word(text: &str) -> String {
    // Only the first word of a command can be an assignment, and none of these is.
    let without = text.replace('=', "-");
    if !text.starts_with('=') && shlex::try_quote(&without).is_ok_and(|q| q == without) {
        return text.to_owned();
    }
    let shown = text.split('\n').all(is_shown);
    match shlex::try_quote(text) {
        Ok(quoted) if shown => quoted.into_owned(),
        // A NUL stands in no word at all.
        _ => ansi_c(text),
    }
}

/// The words by which a command takes a request_id where its own name stands first: the id, or `--id=…` for one that
/// looks like a flag, or its JSON for one that can't be shown.
pub fn id(id: &str) -> String {
    if !is_shown(id) {
        return format!("--id-json {}", word(&json(id)));
    }
    match id.starts_with('-') {
        true => format!("--id={}", word(id)),
        false => word(id),
    }
}

/// What `--confirm` takes for this id, as one word.
pub fn confirm(id: &str) -> String {
    word(&spoken(id))
}

/// What a person types, or reads, for this id: one line that shows all of it. See [`names`].
pub fn spoken(id: &str) -> String {
    match () {
        () if id.len() > LONG => digest(id),
        () if is_shown(id) => id.to_owned(),
        () => json(id),
    }
}

/// Whether what was typed or given means exactly this id: the id, its JSON string, or, of a long one, its digest.
pub fn names(said: &str, id: &str) -> bool {
    said == id
        || raw::as_str(said).is_some_and(|s| s == id)
        || (id.len() > LONG && said == digest(id))
}

fn digest(id: &str) -> String {
    use sha2::{Digest, Sha256};
    let mut out = String::from("sha256:");
    for b in Sha256::digest(id.as_bytes()) {
        let _ = write!(out, "{b:02x}");
    }
    out
}

fn is_shown(text: &str) -> bool {
    matches!(visible(text), Cow::Borrowed(_))
}

/// A JSON string in which everything that isn't shown is escaped.
fn json(text: &str) -> String {
    let mut out = String::new();
    for c in raw::quote(text).chars() {
        let mut one = [0; 4];
        if is_shown(c.encode_utf8(&mut one)) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// `$'…'`, as bash, zsh, ksh and POSIX 2024 read it.
fn ansi_c(text: &str) -> String {
    let mut out = String::from("$'");
    for c in text.chars() {
        let mut one = [0; 4];
        let piece = c.encode_utf8(&mut one);
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ if is_shown(piece) => out.push(c),
            _ => piece.bytes().for_each(|b| {
                let _ = write!(out, "\\{b:03o}");
            }),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(shell: &str, words: &str) -> String {
        let line = format!("printf %s {words}");
        let out = std::process::Command::new(shell).args(["-c", &line]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }

    #[test]
    fn words_survive_a_shell() {
        for text in [
            "night-005",
            "",
            "it's",
            "$(x) `y` \"z\"",
            "a b\nc",
            "{\"a\":1}",
            "~",
            "#x",
            "a!b",
            "é\\n",
        ] {
            assert_eq!(through("sh", &word(text)), text);
        }
        assert_eq!(word("night-005"), "night-005");
        assert_eq!(word("a\u{1b}[2J'\\"), r"$'a\033[2J\'\\'");
    }

    #[test]
    fn an_id_is_never_taken_for_a_flag_nor_shown_as_another() {
        assert_eq!(id("night-005"), "night-005");
        assert_eq!(id("-x9"), "--id=-x9");
        assert_eq!(id("--json"), "--id=--json");
        assert_eq!(id("a b"), "'a b'");
        assert_eq!(through("sh", &id("-a 'b'")), "--id=-a 'b'");
        for (hidden, json) in [
            ("a\nb", r#""a\nb""#),
            ("\u{1b}[2J", r#""\u001b[2J""#),
            ("a\0", r#""a\u0000""#),
            ("\u{202e}x", r#""\u202ex""#),
            ("\u{e0001}", r#""\udb40\udc01""#),
        ] {
            assert_eq!(through("sh", id(hidden).strip_prefix("--id-json ").unwrap()), json);
            assert!(names(&through("sh", &confirm(hidden)), hidden));
            assert_eq!(raw::as_str(json).as_deref(), Some(hidden));
        }
    }

    #[test]
    fn a_confirmation_means_one_id() {
        assert!(names("r-1", "r-1") && names(r#""r-1""#, "r-1") && !names("r-2", "r-1"));
        assert!(!names("", "r-1") && names("", "") && names("\"\"", ""));
        let long = "x".repeat(1 << 20);
        assert!(confirm(&long).len() < 80 && names(&confirm(&long), &long));
        assert!(!names(&confirm(&long), &format!("{long}y")));
        // No digest confirms a short id: nobody has read it then.
        assert!(!names(&digest("r-1"), "r-1"));
    }
}
