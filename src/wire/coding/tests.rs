//! Bodies as other programs made them, whole, in pieces, cut short and as bombs.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

const TEXT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"lorem lorem lorem lorem lorem lorem lorem lorem"}]}}"#;
const BR: &str = "G3cAwI3TFfOihHWPoG2mKpdFxGILRjUIGxvWb52+LpbgkBPwFuXJQSChwENWXpSMYhTe9Nx/opVqzqJngRJsGGGaoGzTDM9395tALw==";
const ZSTD: &str = "KLUv/QRoPQIAkgQPEpDPAezm6OECsK+qQ8I41mZ2TDmffOCUhO0dTq2i76t46bHp06fog+i4T1udSj6UfloPH4K8j6J8cLLjAgBSIGcNBQr2DLDV";
const ZSTD_UNCHECKED: &str = "KLUv/QBYTQIAkoQPFpA7Y1y5ybXlrg3I5uofCN0/mcnd2APvGW9AUabQiS+je66r2V2Rb9JN6uzyRUtTNhL5gYwLwXB+FkuqJbsCAFIgZw0FCg==";
/// 8 MiB of zeros.
const BR_BOMB: &str = "m///f/gnAOKxQCD3/g8=";
const ZSTD_BOMB: &str = "KLUv/QRoTAAACAABAPz/ORACAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAADABAAD9/2YQ==";
const LIMIT: usize = 1 << 20;

fn b64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut e = ZlibEncoder::new(Vec::new(), Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

fn raw_deflate(text: &[u8]) -> Vec<u8> {
    let mut e = DeflateEncoder::new(Vec::new(), Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

/// What comes of a body that arrives in pieces of `step` bytes.
fn undone(header: &str, body: &[u8], step: usize) -> Result<String, Fault> {
    let mut d = Decoder::new(header, LIMIT)?.unwrap();
    let mut out = Vec::new();
    for piece in body.chunks(step) {
        out.extend(d.feed(piece)?);
    }
    out.extend(d.finish()?);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn every_coding_is_undone_however_it_arrives_and_told_when_it_is_cut() {
    let text = TEXT.as_bytes();
    let twice = [gzip(&text[..20]), gzip(&text[20..])].concat();
    let skippable = [&b"\x50\x2a\x4d\x18\x03\0\0\0abc"[..], &b64(ZSTD)].concat();
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("gzip", gzip(text)),
        ("X-GZip", gzip(text)),
        ("gzip", twice),
        ("deflate", zlib(text)),
        ("deflate", raw_deflate(text)),
        ("br", b64(BR)),
        ("zstd", b64(ZSTD)),
        ("zstd", b64(ZSTD_UNCHECKED)),
        ("zstd", skippable),
        ("identity, gzip", gzip(text)),
        ("br, gzip", gzip(&b64(BR))),
        ("gzip,deflate , identity", zlib(&gzip(text))),
    ];
    for (header, body) in rows {
        for step in [1, 2, 7, body.len()] {
            assert_eq!(undone(header, &body, step).as_deref(), Ok(TEXT), "{header} by {step}");
        }
        for cut in [1, 3, body.len() / 2, body.len() - 1] {
            let fault = undone(header, &body[..cut], 5);
            assert!(matches!(fault, Err(Fault::Short(_))), "{header} cut at {cut}: {fault:?}");
        }
        assert_eq!(undone(header, b"", 1).as_deref(), Ok(""), "{header} of nothing");
        let fault = undone(header, b"this was never compressed at all", 9);
        assert!(fault.is_err(), "{header}: {fault:?}");
    }
}

#[test]
fn what_is_not_known_is_named_and_what_is_not_coded_is_left_alone() {
    for none in ["", "identity", " , "] {
        assert!(matches!(Decoder::new(none, LIMIT), Ok(None)), "{none}");
    }
    let fault = |h: &str| Decoder::new(h, LIMIT).err().map(|f| f.to_string());
    assert_eq!(
        fault("compress").as_deref(),
        Some("Content-Encoding: compress, which redial can't read")
    );
    assert!(fault("gzip, dcb").is_some_and(|f| f.contains("gzip, dcb")));
    assert!(fault("gzip,gzip,gzip,gzip,gzip").is_some());
    assert!(fault(&"x".repeat(10_000)).is_some_and(|f| f.len() < 300));
}

#[test]
fn a_bomb_is_bounded_and_named() {
    let zeros = vec![0; 8 << 20];
    for (header, body) in [
        ("gzip", gzip(&zeros)),
        ("deflate", zlib(&zeros)),
        ("br", b64(BR_BOMB)),
        ("zstd", b64(ZSTD_BOMB)),
    ] {
        let fault = undone(header, &body, body.len());
        assert!(matches!(&fault, Err(Fault::TooMuch(..))), "{header}: {fault:?}");
        assert!(fault.unwrap_err().to_string().contains("1 MiB"), "{header}");
    }
}

#[test]
fn a_stream_gives_each_event_as_it_comes() {
    let mut e = GzEncoder::new(Vec::new(), Compression::default());
    let mut d = Decoder::new("gzip", LIMIT).unwrap().unwrap();
    let mut sent = 0;
    for n in 0..3 {
        let event = format!("data: {n}\n\n");
        e.write_all(event.as_bytes()).unwrap();
        e.flush().unwrap();
        let got = d.feed(&e.get_ref()[sent..]).unwrap();
        sent = e.get_ref().len();
        assert_eq!(String::from_utf8(got).unwrap(), event);
    }
}

#[test]
fn a_wrong_checksum_and_bytes_behind_the_end_are_told_as_what_they_are() {
    let text = TEXT.as_bytes();
    let altered = |mut body: Vec<u8>, from_end: usize| {
        let at = body.len() - from_end;
        body[at] ^= 1;
        body
    };
    let with = |body: Vec<u8>, more: &[u8]| [&body[..], more].concat();
    // Of gzip's trailer: the checksum, then the length.
    for from_end in [8, 5, 4, 1] {
        let body = altered(gzip(text), from_end);
        for step in [1, 3, body.len()] {
            assert_eq!(undone("gzip", &body, step), Err(Fault::Checksum("gzip")), "{from_end}");
        }
    }
    for more in [&b"x"[..], b"\0\0\0\0", b"\r\n", b"\x1f", b"\x1f\x8b", b"<html>no</html>"] {
        for (coding, body) in [
            ("gzip", gzip(text)),
            ("deflate", zlib(text)),
            ("deflate", raw_deflate(text)),
            ("br", b64(BR)),
            ("zstd", b64(ZSTD)),
        ] {
            let body = with(body, more);
            for step in [1, body.len()] {
                let fault = undone(coding, &body, step).unwrap_err();
                assert!(matches!(fault, Fault::Behind(_)), "{coding} {more:?} {step}: {fault:?}");
            }
        }
    }
    // A further member that is cut is one.
    let fault = undone("gzip", &with(gzip(text), &gzip(text)[..9]), 4);
    assert_eq!(fault, Err(Fault::Short("gzip")));
    // A header with all that it may hold.
    let mut full = vec![0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 3, 2, 0, b'e', b'x'];
    full.extend(b"name\0comment\0hc");
    full.extend(&gzip(text)[10..]);
    assert_eq!(undone("gzip", &full, 1).as_deref(), Ok(TEXT));
}
