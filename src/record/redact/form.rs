//! The form of a token: what tells it from the words and names that stand where one could.

use crate::urls::is_mixed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

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
