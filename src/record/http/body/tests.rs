use super::*;
use crate::record::entry::{Entry, Header, Line as Read, decode};
use crate::record::redact::Rules;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Default)]
struct Out(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Out {
    fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(b);
        Ok(b.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is written down of an answer that comes in these chunks; `None` breaks it, no end drops it.
fn written(reader: Reader, chunks: &[Option<&[u8]>], end: bool, stopping: bool) -> Vec<Entry> {
    coded("", None, reader, chunks, end, stopping)
}

/// The same of an answer with this coding and announced length.
fn coded(
    coding: &str,
    length: Option<u64>,
    reader: Reader,
    chunks: &[Option<&[u8]>],
    end: bool,
    stopping: bool,
) -> Vec<Entry> {
    let out = Out::default();
    let rules = Rules::new(Default::default()).unwrap();
    let recorder = Recorder::start(out.clone(), rules, Header::default()).unwrap();
    let mut x = Exchange::new(recorder.clone(), 1, 7, Arc::new(AtomicBool::new(stopping)));
    (x.reader, x.length) = (reader, length);
    match Decoder::new(coding, LIMIT) {
        Ok(decoder) => x.decoder = decoder,
        Err(fault) => x.unreadable(&fault),
    }
    for chunk in chunks {
        match chunk {
            Some(c) => x.take(&Bytes::copy_from_slice(c)),
            None => x.finish(Some("reset".into())),
        }
    }
    if end && !x.over {
        x.finish(None);
    }
    drop(x);
    assert!(recorder.close(Duration::from_secs(20)));
    let bytes = out.0.lock().unwrap().clone();
    let lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    lines
        .filter_map(|l| match decode(l) {
            Read::Entry(e) => Some(e),
            _ => None,
        })
        .collect()
}

/// `body 5+3`: kind, kept and cut bytes; `failed WHY`.
fn told(entries: &[Entry]) -> Vec<String> {
    let size = |e: &Entry| format!("{}+{}", e.raw().map_or(0, Bytes::len), e.wire.cut);
    let word = |e: &Entry| match &e.what {
        What::Event(Kind::Http { what: Http::Body { raw, cut }, .. }) => {
            format!("body {}+{cut}", raw.len())
        }
        What::Event(Kind::Http { what: Http::Partial { .. }, .. }) => {
            format!("partial {}", size(e))
        }
        What::Event(Kind::Http { what: Http::Unreadable { why }, .. }) => {
            format!("unreadable {why}")
        }
        What::Event(Kind::Http { what: Http::End, .. }) => "end".into(),
        What::Event(Kind::Http { what: Http::Failed { why, .. }, .. }) => {
            format!("failed {why}")
        }
        What::Event(Kind::Received { .. }) => format!("received {}", size(e)),
        other => other.word().to_owned(),
    };
    entries.iter().map(word).collect()
}

/// So that no test has to pass megabytes.
const FEW: usize = 1000;

fn whole() -> Reader {
    Reader::whole(FEW)
}

fn events() -> Reader {
    Reader::events(FEW)
}

#[test]
fn an_answer_over_the_limit_is_told_as_cut_and_came_to_its_end() {
    let mut long = br#"{"jsonrpc":"2.0","id":1,"result":{"x":""#.to_vec();
    long.resize(FEW + 1000, b'x');
    long.extend_from_slice(b"\"}}");
    let want = [format!("body {FEW}+1003"), "end".to_owned()];
    let chunks: Vec<Option<&[u8]>> = long.chunks(100).map(Some).collect();
    for length in [None, Some(long.len() as u64)] {
        assert_eq!(told(&coded("", length, whole(), &chunks, length.is_none(), false)), want);
    }
    let mut stream = b"data: ".to_vec();
    stream.extend_from_slice(&long);
    stream.extend_from_slice(b"\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    let chunks: Vec<Option<&[u8]>> = stream.chunks(100).map(Some).collect();
    let got = told(&written(events(), &chunks, true, false));
    // The field's name counts for the limit.
    assert_eq!(got, [&format!("body {}+1009", FEW - 6), "received 30+0", "end"]);
}

#[test]
fn what_came_of_an_answer_that_broke_off_is_kept() {
    let head: &[u8] = br#"{"jsonrpc":"2.0","id":1,"res"#;
    let event: &[u8] = br#"data: {"jsonrpc":"2.0","id":1,"res"#;
    for (chunk, reader) in [(head, whole()), (event, events())] {
        let n = chunk.len();
        let got = told(&written(reader, &[Some(chunk), None], false, false));
        assert_eq!(got, [format!("partial {n}+0"), "failed reset".into()]);
    }
    // A stream that ends in the middle of an event; a client that goes, or a tap that is ended.
    let n = event.len();
    assert_eq!(
        told(&written(events(), &[Some(event)], true, false)),
        [
            format!("partial {n}+0"),
            format!("failed the stream ended in the middle of an event, after {n} bytes of it")
        ]
    );
    let gone = told(&written(events(), &[Some(event)], false, false));
    assert!(gone[0] == format!("partial {n}+0") && gone[1].contains("client closed"), "{gone:?}");
    let ended = told(&written(whole(), &[], false, true));
    assert!(ended.len() == 1 && ended[0].contains("redial"), "{ended:?}");
}

#[test]
fn a_page_is_kept_in_part_and_says_so() {
    let page = [b'<'; 100_000];
    let got = told(&written(Reader::whole(LIMIT), &[Some(&page)], true, false));
    assert_eq!(got, [&format!("body {PLAIN}+{}", 100_000 - PLAIN), "end"]);
}

#[test]
fn what_is_compressed_is_written_down_as_what_it_says_or_not_at_all() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;
    let gzip = |text: &[u8]| {
        let mut e = GzEncoder::new(Vec::new(), Compression::default());
        e.write_all(text).unwrap();
        e.finish().unwrap()
    };
    let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let body = gzip(answer);
    let chunks: Vec<Option<&[u8]>> = body.chunks(7).map(Some).collect();
    let received = format!("received {}+0", answer.len());
    for length in [None, Some(body.len() as u64)] {
        let got = coded("gzip", length, whole(), &chunks, length.is_none(), false);
        assert_eq!(told(&got), [received.as_str(), "end"], "{length:?}");
    }
    let stream = gzip(&[b"data: ", &answer[..], b"\n\n"].concat());
    let chunks: Vec<Option<&[u8]>> = stream.chunks(7).map(Some).collect();
    let got = told(&coded("x-gzip", None, events(), &chunks, true, false));
    assert_eq!(got, [received.as_str(), "end"]);
    // Nobody could tell what is secret in bytes that can't be read: none of them are kept.
    let got = told(&coded("dcb", None, whole(), &[Some(&body)], true, false));
    assert_eq!(got, ["unreadable Content-Encoding: dcb, which redial can't read", "end"]);
    let got = told(&coded("gzip", None, whole(), &[Some(&body[..20])], true, false));
    assert_eq!(got, ["unreadable its gzip ends in the middle", "end"]);
    let got = told(&coded("gzip", None, whole(), &[Some(answer)], true, false));
    assert!(got.len() == 2 && got[0].contains("damaged"), "{got:?}");
}
