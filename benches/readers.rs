//! Frames a second through the stdio reader and the SSE reader, against a bare copy of lines:
//! `cargo bench --bench readers`. Prints what it reads.
#![allow(clippy::print_stdout)]

use redial::wire::frame::Frame;
use redial::wire::lines::Lines;
use redial::wire::sse::{Parser, Sse};

const FRAMES: u64 = 20_000;
/// What a pipe gives in one read.
const CHUNK: usize = 64 << 10;

fn main() {
    println!(
        "{FRAMES} answers of {} bytes, {:.1} MB as lines and {:.1} MB as events, in pieces of {} KiB",
        frame(0).len(),
        lines().len() as f64 / 1e6,
        events().len() as f64 / 1e6,
        CHUNK >> 10
    );
    divan::main();
}

fn frame(i: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{i},"result":{{"content":[{{"type":"text","text":"ticket T-{i} was made for you, at last"}}],"isError":false}}}}"#
    )
}

fn lines() -> Vec<u8> {
    (0..FRAMES).map(|i| frame(i) + "\n").collect::<String>().into_bytes()
}

fn events() -> Vec<u8> {
    (0..FRAMES)
        .map(|i| format!("id: {i}\r\ndata: {}\r\n\r\n", frame(i)))
        .collect::<String>()
        .into_bytes()
}

fn is_frame(raw: &[u8]) -> bool {
    Frame::parse(&String::from_utf8_lossy(raw)) != Frame::NotRpc
}

#[divan::bench]
fn bare_copy_of_lines(bencher: divan::Bencher<'_, '_>) {
    let data = lines();
    bencher.counter(FRAMES).bench(|| {
        let copies: Vec<Vec<u8>> = data.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        copies.len()
    });
}

#[divan::bench]
fn stdio_lines_only(bencher: divan::Bencher<'_, '_>) {
    let data = lines();
    bencher.counter(FRAMES).bench(|| {
        let (mut reader, mut n) = (Lines::new(1 << 20), 0);
        for chunk in data.chunks(CHUNK) {
            reader.feed(chunk, |l| n += l.raw.len());
        }
        n
    });
}

#[divan::bench]
fn stdio_frames(bencher: divan::Bencher<'_, '_>) {
    let data = lines();
    bencher.counter(FRAMES).bench(|| {
        let (mut reader, mut n) = (Lines::new(1 << 20), 0);
        for chunk in data.chunks(CHUNK) {
            reader.feed(chunk, |l| n += u64::from(is_frame(&l.raw)));
        }
        n
    });
}

#[divan::bench]
fn sse_frames(bencher: divan::Bencher<'_, '_>) {
    let data = events();
    bencher.counter(FRAMES).bench(|| {
        let (mut reader, mut n) = (Parser::new(1 << 20), 0);
        for chunk in data.chunks(CHUNK) {
            reader.feed(chunk, |e| {
                if let Sse::Event { data, .. } = e {
                    n += u64::from(is_frame(&data));
                }
            });
        }
        n
    });
}
