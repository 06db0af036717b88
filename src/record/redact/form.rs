//! The form of a token: what tells it from the words and names that stand where one could.

use super::MASK;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::ops::Range;

/// Whether what the built-in pattern of this number found is a credential, not prose.
pub(super) fn fits(pattern: usize, value: &[u8]) -> bool {
    match pattern {
        0 => is_token(value) || has_run(value, 8) || has_digit_inside(value),
        1 => is_token(value) || is_pair(value),
        2 => is_key(value),
        _ => true,
    }
}

/// The pattern that finds URLs, whose paths are looked through run by run.
pub(super) const URLS: usize = 12;

/// A URL without the keys in its path; how many there were.
pub(super) fn without_keys(url: &[u8]) -> (Vec<u8>, u32) {
    let (path, rest) = url.split_at(path_of(url).end);
    let mut out = Vec::with_capacity(url.len());
    let mut n = 0;
    let mut from = 0;
    for at in keys(path) {
        n += 1;
        out.extend_from_slice(path.get(from..at.start).unwrap_or_default());
        out.extend_from_slice(MASK.as_bytes());
        from = at.end;
    }
    out.extend_from_slice(path.get(from..).unwrap_or_default());
    out.extend_from_slice(rest);
    (out, n)
}

/// Where the keys in the path of a URL stand.
pub(super) fn keys(url: &[u8]) -> Vec<Range<usize>> {
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

fn of_a_key(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

/// `Bearer …`, `Basic …`: a word has no digits, and no capitals inside.
fn is_token(v: &[u8]) -> bool {
    let padded =
        v.ends_with(b"=") && v.iter().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    padded || is_mixed(v) || has_run(v, 16) || (v.len() >= 12 && switches(v) >= 3)
}

/// `Basic …` says `user:password` in Base64 (RFC 7617, section 2).
fn is_pair(v: &[u8]) -> bool {
    let end = v.iter().rposition(|b| *b != b'=').map_or(0, |n| n + 1);
    let pair = STANDARD_NO_PAD.decode(v.get(..end).unwrap_or_default()).ok();
    pair.and_then(|p| String::from_utf8(p).ok())
        .is_some_and(|p| p.contains(':') && !p.contains(char::is_control))
}

/// `sk-…`, `pk_…`, `rk_…`: constraints and ids are spelled so, too.
fn is_key(v: &[u8]) -> bool {
    const MAKERS: [&[u8]; 6] =
        [b"sk-ant-", b"sk-proj-", b"sk-or-", b"sk-svcacct-", b"sk-admin-", b"sk-lf-"];
    let rest = v.get(3..).unwrap_or_default();
    let stripe = [&b"live_"[..], b"test_"].iter().find_map(|p| rest.strip_prefix(*p));
    MAKERS.iter().any(|p| v.starts_with(p))
        || stripe.is_some_and(|r| r.iter().all(u8::is_ascii_alphanumeric))
        || is_mixed(rest)
        || (v.starts_with(b"sk") && has_run(rest, 24))
}

/// What a key in a path looks like: long, with digits and letters of both cases. A UUID or a hash has one case, and is
/// an id that must stay findable.
fn is_long_and_mixed(v: &[u8]) -> bool {
    v.len() >= 32 && v.iter().all(of_a_key) && is_mixed(v)
}

/// A digit, a small letter and a capital.
fn is_mixed(v: &[u8]) -> bool {
    let any = |f: fn(&u8) -> bool| v.iter().any(f);
    any(u8::is_ascii_digit) && any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase)
}

/// So many letters and digits, with some of both, and no other sign between them.
fn has_run(v: &[u8], length: usize) -> bool {
    v.split(|b| !b.is_ascii_alphanumeric()).any(|run| {
        run.len() >= length
            && run.iter().any(u8::is_ascii_digit)
            && run.iter().any(u8::is_ascii_alphabetic)
    })
}

/// A digit between two letters: `s3cret`, and what is hexadecimal.
fn has_digit_inside(v: &[u8]) -> bool {
    v.windows(3)
        .any(|w| w[0].is_ascii_alphabetic() && w[1].is_ascii_digit() && w[2].is_ascii_alphabetic())
}

/// How often a capital follows a small letter.
fn switches(v: &[u8]) -> usize {
    v.windows(2).filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()).count()
}
