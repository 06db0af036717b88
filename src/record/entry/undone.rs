//! Bodies of answers that a tap wrote down as they passed, compressed, before it could read them: read as what they say.
//!
//! Such a recording doesn't hold the name of the coding. gzip and zstd begin with a mark and check themselves; of the
//! others it is proof enough that a whole JSON-RPC message comes out. What can't be undone stays as it was.

use super::What;
use crate::journal::Kind;
use crate::journal::event::Http;
use crate::record::summary;
use crate::wire::coding::Decoder;
use crate::wire::sse::{Parser, Sse};
use bytes::Bytes;

/// The most that one body is undone to.
const LIMIT: usize = 16 << 20;

/// The same, with a compressed body undone. One that was cut is none: its end is what would prove it.
pub(super) fn undone(what: What) -> What {
    match what {
        What::Event(Kind::Http { exchange, what: Http::Body { raw, cut: 0 } }) => {
            What::Event(match said(&raw) {
                Some(Said::Message(raw)) => Kind::Received { raw, exchange: Some(exchange) },
                Some(Said::Other(raw)) => Kind::Http { exchange, what: Http::Body { raw, cut: 0 } },
                None => Kind::Http { exchange, what: Http::Body { raw, cut: 0 } },
            })
        }
        What::Event(Kind::Received { raw, exchange: exchange @ Some(_) }) => {
            let raw = match said(&raw) {
                Some(Said::Message(message)) => message,
                _ => raw,
            };
            What::Event(Kind::Received { raw, exchange })
        }
        what => what,
    }
}

/// What a compressed body says.
enum Said {
    Message(Bytes),
    /// A page.
    Other(Bytes),
}

fn said(raw: &Bytes) -> Option<Said> {
    if std::str::from_utf8(raw).is_ok() {
        return None;
    }
    let (codings, has_mark): (&[&str], bool) = match raw.as_ref() {
        [0x1f, 0x8b, 8, ..] => (&["gzip"], true),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => (&["zstd"], true),
        _ => (&["deflate", "br"], false),
    };
    codings.iter().find_map(|coding| {
        let undone = Bytes::from(whole(coding, raw)?);
        std::str::from_utf8(&undone).ok()?;
        match message(&undone) {
            Some(message) => Some(Said::Message(message)),
            None => has_mark.then_some(Said::Other(undone)),
        }
    })
}

/// The message that a body is, or that the only event of a stream holds.
fn message(body: &Bytes) -> Option<Bytes> {
    let is_rpc = |b: &[u8]| std::str::from_utf8(b).is_ok_and(|t| summary::of(t).is_some());
    if is_rpc(body) {
        return Some(body.clone());
    }
    let mut found = Vec::new();
    Parser::new(LIMIT).feed(body, |e| {
        if let Sse::Event { data, cut: 0, .. } = e {
            found.push(Bytes::from(data));
        }
    });
    found.retain(|data| is_rpc(data));
    match found.len() {
        1 => found.pop(),
        _ => None,
    }
}

fn whole(coding: &str, raw: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(coding, LIMIT).ok()??;
    let mut out = decoder.feed(raw).ok()?;
    out.extend(decoder.finish().ok()?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"lorem lorem lorem lorem lorem lorem lorem lorem"}]}}"#;
    const BR: &str = "G3cAwI3TFfOihHWPoG2mKpdFxGILRjUIGxvWb52+LpbgkBPwFuXJQSChwENWXpSMYhTe9Nx/opVqzqJngRJsGGGaoGzTDM9395tALw==";
    const ZSTD: &str = "KLUv/QRoPQIAkgQPEpDPAezm6OECsK+qQ8I41mZ2TDmffOCUhO0dTq2i76t46bHp06fog+i4T1udSj6UfloPH4K8j6J8cLLjAgBSIGcNBQr2DLDV";

    fn gzip(text: &str) -> Vec<u8> {
        let mut e = GzEncoder::new(Vec::new(), Compression::default());
        e.write_all(text.as_bytes()).unwrap();
        e.finish().unwrap()
    }

    fn body(raw: Vec<u8>, cut: u64) -> What {
        let what = Http::Body { raw: raw.into(), cut };
        What::Event(Kind::Http { exchange: 3, what })
    }

    #[test]
    fn an_answer_that_was_written_down_compressed_is_an_answer() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(ANSWER.as_bytes()).unwrap();
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(ANSWER.as_bytes()).unwrap();
        let all = [
            gzip(ANSWER),
            zlib.finish().unwrap(),
            deflate.finish().unwrap(),
            STANDARD.decode(BR).unwrap(),
            STANDARD.decode(ZSTD).unwrap(),
        ];
        for raw in all {
            let answer = Kind::Received { raw: ANSWER.into(), exchange: Some(3) };
            assert_eq!(undone(body(raw.clone(), 0)), What::Event(answer.clone()));
            let received = Kind::Received { raw: raw.clone().into(), exchange: Some(3) };
            assert_eq!(undone(What::Event(received)), What::Event(answer));
            let cut = body(raw[..raw.len() - 9].to_vec(), 9);
            assert_eq!(undone(cut.clone()), cut);
            let short = body(raw[..raw.len() - 9].to_vec(), 0);
            assert_eq!(undone(short.clone()), short);
        }
    }

    #[test]
    fn a_stream_with_one_message_is_that_message() {
        let one = format!(": hello\n\nevent: message\ndata: {ANSWER}\n\n");
        let answer = Kind::Received { raw: ANSWER.into(), exchange: Some(3) };
        assert_eq!(undone(body(gzip(&one), 0)), What::Event(answer));
        let two = format!("{one}{one}");
        assert_eq!(undone(body(gzip(&two), 0)), body(two.into(), 0));
    }

    #[test]
    fn a_page_is_read_and_stays_a_page_and_other_bytes_stay_bytes() {
        let page = "<html>502 Bad Gateway</html>";
        assert_eq!(undone(body(gzip(page), 0)), body(page.into(), 0));
        for other in [&b"\x1f\x8b\x08 no gzip"[..], b"\xff\xfe{", b"\x0b\x02\x80\xff"] {
            assert_eq!(undone(body(other.to_vec(), 0)), body(other.to_vec(), 0));
        }
        let mut wrong = gzip(ANSWER);
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        assert_eq!(undone(body(wrong.clone(), 0)), body(wrong, 0));
    }
}
