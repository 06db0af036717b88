//! Keys in the paths of URLs: many servers are reached by an address that is the credential.
//!
//! Pure. What is told apart by its form can be told wrong; hiding a name too many costs little.

use std::ops::Range;

/// What a person is shown in place of a key.
const SHOWN: &str = "…";

/// A text with the keys in the paths of its URLs replaced by `mask`; how many there were.
pub(crate) fn without_keys(url: &[u8], mask: &str) -> (Vec<u8>, u32) {
    let mut out = Vec::with_capacity(url.len());
    let mut n = 0;
    let mut from = 0;
    for at in keys(url) {
        n += 1;
        out.extend_from_slice(url.get(from..at.start).unwrap_or_default());
        out.extend_from_slice(mask.as_bytes());
        from = at.end;
    }
    out.extend_from_slice(url.get(from..).unwrap_or_default());
    (out, n)
}

/// A URL as it is shown, its path's keys left out.
pub(crate) fn shown(url: &str) -> String {
    String::from_utf8_lossy(&without_keys(url.as_bytes(), SHOWN).0).into_owned()
}

/// Where the keys in the path of a URL stand.
pub(crate) fn keys(url: &[u8]) -> Vec<Range<usize>> {
    let path = path_of(url);
    let mut found = Vec::new();
    let mut at = path.start;
    for run in url.get(path).unwrap_or_default().split(|b| !of_a_key(b)) {
        if is_long_and_mixed(run) {
            found.push(at..at + run.len());
        }
        at += run.len() + 1;
    }
    found
}

/// The path of a URL: behind the host, before what is asked of it.
fn path_of(url: &[u8]) -> Range<usize> {
    let host = memchr::memmem::find(url, b"://").map_or(0, |n| n + 3);
    let all = url.get(host..).unwrap_or_default();
    let end = host + all.iter().position(|b| b"?#".contains(b)).unwrap_or(all.len());
    let path = url.get(host..end).unwrap_or_default();
    let begin = path.iter().position(|b| *b == b'/').map_or(end, |n| host + n);
    begin..end
}

/// What a key in a path looks like: long, with digits and letters of both cases. A UUID or a hash has one case, and is
/// an id that must stay findable.
fn is_long_and_mixed(v: &[u8]) -> bool {
    v.len() >= 32 && v.iter().all(of_a_key) && is_mixed(v)
}

fn of_a_key(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

/// A digit, a small letter and a capital.
pub(crate) fn is_mixed(v: &[u8]) -> bool {
    let any = |f: fn(&u8) -> bool| v.iter().any(f);
    any(u8::is_ascii_digit) && any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase)
}
