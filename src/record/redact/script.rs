//! A word of a command line that is a command line itself: what `sh -c` is given. Its words are told apart, each is
//! looked at alone, and all else stays where it stood.

use std::borrow::Cow;
use std::ops::Range;

/// One word: where it stands, and whether a new command begins behind it.
pub(super) struct Part {
    pub at: Range<usize>,
    pub ends: bool,
}

/// Whether the word behind these words, one that has spaces in it, is for a shell.
pub(super) fn is_script(before: &[String], word: &str) -> bool {
    let Some(last) = before.last() else { return false };
    let short = last.strip_prefix('-').filter(|o| o.bytes().all(|b| b.is_ascii_alphabetic()));
    word.contains(char::is_whitespace)
        && (short.is_some_and(|o| o.ends_with(['c', 'C', 'S']))
            || ["/c", "/k", "--command", "-Command", "--split-string", "--call", "eval"]
                .iter()
                .any(|o| last.eq_ignore_ascii_case(o))
            || before.iter().any(|w| w.rsplit('/').next() == Some("ssh")))
}

/// The words of a script, as a shell tells them apart.
pub(super) fn parts(script: &str) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    let mut begin = None;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in script.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => escaped = true,
            (Some(q), _) => quote = (c != q).then_some(q),
            (None, '"' | '\'') => quote = Some(c),
            _ if c.is_whitespace() || ";|&<>()".contains(c) => {
                if let Some(from) = begin.take() {
                    all.push(Part { at: from..at, ends: false });
                }
                if let Some(last) = all.last_mut().filter(|_| "\n;|&()".contains(c)) {
                    last.ends = true;
                }
                continue;
            }
            _ => {}
        }
        begin.get_or_insert(at);
    }
    if let Some(from) = begin {
        all.push(Part { at: from..script.len(), ends: true });
    }
    all
}

/// What the shell makes of a word: without its quotes.
pub(super) fn unquoted(word: &str) -> Cow<'_, str> {
    if !word.contains(['"', '\'', '\\']) {
        return Cow::Borrowed(word);
    }
    let mut out = String::with_capacity(word.len());
    let mut quote = None;
    let mut escaped = false;
    for c in word.chars() {
        match (std::mem::take(&mut escaped), quote, c) {
            (true, ..) => out.push(c),
            (_, None | Some('"'), '\\') => escaped = true,
            (_, Some(q), c) if c == q => quote = None,
            (_, None, '"' | '\'') => quote = Some(c),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_script_are_a_shells() {
        let s = "A='b c' exec \"d e\"/x --f=\\ g;h|i\nj";
        let got: Vec<(String, bool)> =
            parts(s).iter().map(|p| (unquoted(&s[p.at.clone()]).into_owned(), p.ends)).collect();
        let want = [
            ("A=b c", false),
            ("exec", false),
            ("d e/x", false),
            ("--f= g", true),
            ("h", true),
            ("i", true),
            ("j", true),
        ];
        assert_eq!(got, want.map(|(w, e)| (w.to_owned(), e)));
        // One that is broken ends where it ends.
        let s = "a 'b c";
        assert_eq!(parts(s).len(), 2);
        assert_eq!(unquoted("'b c"), "b c");
    }
}
