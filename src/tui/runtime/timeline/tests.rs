use super::*;
use crate::inspect::recorded::Recorded;
use crate::journal::Kind;
use crate::journal::event::Purpose;
use crate::record::entry::{self, Entry, Header, What};
use crate::recording::Recording;
use crate::tui::timeline::Goto;
use std::io::Write;

fn ask(seq: u64, filter: &str, goto: Goto) -> Ask {
    Ask {
        seq,
        which: Which::Recording,
        filter: filter.into(),
        goto,
        rows: 10,
        follow: false,
        paused: false,
    }
}

/// A recording of so many calls, each with its answer; the file.
fn calls(n: u64, file: &mut impl Write) {
    write!(file, "{}", entry::header(&Header::default())).unwrap();
    add(1..n + 1, file);
}

fn add(ids: std::ops::Range<u64>, file: &mut impl Write) {
    for id in ids {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{}","arguments":{{"request_id":"r-{id}"}}}}}}"#,
            id % 2
        );
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        let sent = Kind::Sent { raw: call.into(), exchange: None, purpose: Purpose::Asked };
        let received = Kind::Received { raw: answer.into(), exchange: None };
        for (n, kind) in [(id * 2 - 1, sent), (id * 2, received)] {
            let e = Entry::new(n, Time(n as i64), n, 1, What::Event(kind));
            file.write_all(entry::line(&e).as_bytes()).unwrap();
        }
    }
}

fn reader(file: &tempfile::NamedTempFile) -> Reader {
    let recorded = Recorded::new(Recording::open(file.path()).unwrap());
    let index = Index::open(file.path()).map(|i| Source::File(Box::new(i)));
    let held = recorded.clone();
    let side = Side::new(
        "r.jsonl".into(),
        index.map_err(|e| e.to_string()),
        Box::new(recorded),
        Box::new(move || held.is_being_written()),
    );
    Reader { sides: [Some(side), None], ask: None, told_at: None, dirty: false, hands: None }
}

/// Works until nothing is left to do; the last window, with the last thing that was said. How many turns that takes is
/// a matter of how busy the machine is.
fn through(r: &mut Reader, first: Vec<Ask>) -> Window {
    let (window, mut more) = r.turn(first);
    let mut window = window.unwrap();
    while more {
        let (w, m) = r.turn(Vec::new());
        more = m;
        if let Some(w) = w {
            window = Window { said: w.said.clone().or(window.said), ..w };
        }
    }
    window
}

fn place(w: &Window) -> (Option<usize>, usize, usize) {
    (w.selected, w.total, w.of)
}

#[test]
fn a_window_stands_around_the_selection_wherever_that_is() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    calls(3000, &mut file);
    let mut r = reader(&file);
    let w = through(&mut r, vec![ask(1, "", Goto::End)]);
    assert!(w.of > 0, "the first answer has rows, whatever is still to be read");
    let w = through(&mut r, vec![ask(2, "", Goto::End)]);
    assert_eq!((w.seq, place(&w)), (2, (Some(5999), 6000, 6000)));
    assert_eq!((w.rows.len(), w.percent), (11, None));
    assert_eq!(w.rows[10].1.request_id.as_deref(), Some("r-3000"), "the answer knows its request");
    // Several questions at once are done in order and answered by one window.
    let w = through(
        &mut r,
        vec![ask(3, "", Goto::Place(100)), ask(4, "", Goto::By(2)), ask(5, "", Goto::Peer)],
    );
    assert_eq!((w.seq, place(&w)), (5, (Some(103), 6000, 6000)));
    assert_eq!((w.first, w.rows[0].0, w.rows.len()), (93, 93, 21));
    assert!(w.text.unwrap().document.text.contains("result"));
    let w = through(&mut r, vec![ask(6, "", Goto::Event(4001))]);
    assert_eq!(w.selected, Some(4000));
    let w = through(&mut r, vec![ask(7, "", Goto::Request("r-17".into()))]);
    assert_eq!(w.selected, Some(32));
    let w = through(&mut r, vec![ask(8, "", Goto::Death)]);
    assert_eq!(
        (w.selected, w.said.is_some()),
        (Some(32), true),
        "a jump that leads nowhere says so"
    );
}

#[test]
fn a_filter_counts_keeps_near_and_gives_way_to_a_jump() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    calls(500, &mut file);
    let mut r = reader(&file);
    let w = through(&mut r, vec![ask(1, "", Goto::Place(501))]);
    assert_eq!(w.selected, Some(501));
    let w = through(&mut r, vec![ask(2, "tool:t1 kind:request", Goto::Stay)]);
    assert_eq!(place(&w), (Some(500), 250, 1000));
    assert!(w.rows.iter().all(|(_, row)| row.tool.as_deref() == Some("t1")));
    let w = through(&mut r, vec![ask(3, "tool:t1 kind:request", Goto::By(-1))]);
    assert_eq!((w.selected, w.filter.as_str()), (Some(496), "tool:t1 kind:request"));
    let w = through(&mut r, vec![ask(4, "tool:t1 kind:request", Goto::Peer)]);
    assert_eq!((w.selected, w.filter.as_str(), w.total), (Some(497), "", 1000));
    assert!(w.said.unwrap().contains("cleared"));
}

#[test]
fn what_is_written_meanwhile_is_told_and_followed_unless_paused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    calls(10, &mut file);
    let mut r = reader(&file);
    let follow = |seq, paused| Ask { follow: true, paused, ..ask(seq, "", Goto::End) };
    assert_eq!(through(&mut r, vec![follow(1, false)]).selected, Some(19));
    add(11..12, &mut file);
    r.told_at = None;
    let (w, _) = r.turn(Vec::new());
    assert_eq!(place(&w.unwrap()), (Some(21), 22, 22));
    assert_eq!(through(&mut r, vec![follow(2, true)]).selected, Some(21));
    add(12..13, &mut file);
    r.told_at = None;
    assert!(r.turn(Vec::new()).0.is_none(), "paused: nothing is told");
}

#[test]
fn a_filter_that_looks_in_pieces_stays_near_the_place_where_it_was_set() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    calls(3000, &mut file);
    let mut r = reader(&file);
    assert_eq!(through(&mut r, vec![ask(1, "", Goto::Place(5001))]).selected, Some(5001));
    // The text of every event is read for it: too much for one turn.
    let w = through(&mut r, vec![ask(2, "text:isError | tool:t1 kind:request", Goto::Stay)]);
    assert_eq!((w.selected, w.total), (Some(5000), 1500));
}

#[test]
fn the_selection_leaves_what_a_session_lets_go() {
    let journal = crate::journal::Journal::new();
    let source = Ok(Source::Live(Live::new(journal.clone())));
    let mut side = Side::new("s".into(), source, Box::new(Nobody), Box::new(|| true));
    let large = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    let put = |n: usize| {
        for i in 0..n {
            let exit = Kind::Exit { code: Some(0), signal: None, left: crate::procs::Left::Nobody };
            let kind = if i % 2 == 0 { Kind::Stderr { raw: large.clone() } } else { exit };
            journal.append(1, kind);
        }
    };
    for (n, filter) in ["", "kind:exit"].into_iter().enumerate() {
        put(4);
        side.work();
        let first = Ask { which: Which::Live, ..ask(n as u64, filter, Goto::Start) };
        side.take(&first);
        let before = side.window(&first, None).selected.unwrap();
        // The journal itself keeps only the last ones for somebody who looks seldom.
        for _ in 0..30 {
            put(2);
            side.work();
        }
        while !side.through {
            side.work();
        }
        let w = side.window(&Ask { goto: Goto::Stay, ..first.clone() }, None);
        let start = side.source.as_ref().unwrap().range().start;
        assert!(before < start, "it is gone");
        let first_kept = w.rows.first().map(|(place, _)| *place);
        assert_eq!(w.selected, first_kept, "{filter}");
        assert!(w.selected.is_some_and(|s| s == start || s == start + 1), "{filter}");
        side.take(&first);
        assert_eq!(side.window(&first, None).selected, first_kept, "{filter}: at the start");
    }
}

#[test]
fn a_jump_waits_for_what_is_still_to_be_read() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    calls(4000, &mut file);
    let sent = |id: u64| {
        let raw = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"request_id":"r-{id}"}}}}}}"#
        );
        Kind::Sent { raw: raw.into(), exchange: None, purpose: Purpose::Asked }
    };
    let mut put = |seq: u64, kind: Kind| {
        let e = Entry::new(seq, Time(seq as i64), seq, 1, What::Event(kind));
        file.write_all(entry::line(&e).as_bytes()).unwrap();
    };
    put(8001, sent(4001));
    for n in 8002..10_000 {
        put(n, Kind::Stderr { raw: b"busy".to_vec().into() });
    }
    put(10_000, Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody });
    for (goto, want) in [
        (Goto::Request("r-4001".into()), 8000),
        (Goto::Event(10_000), 9999),
        (Goto::Death, 9999),
        (Goto::Stderr, 8001),
    ] {
        let mut r = reader(&file);
        let w = through(&mut r, vec![ask(1, "", goto.clone())]);
        assert_eq!((w.selected, w.said), (Some(want), None), "{goto:?}");
    }
}

/// Every call that waits is lost.
struct Lost;

impl Knows for Lost {
    fn outcome(&self, _: u64) -> Option<(Option<Outcome>, Option<f64>)> {
        Some((Some(Outcome::Unknown), None))
    }
    fn death(&self, _: u32) -> Option<String> {
        None
    }
    fn lost(&self, _: u32) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn a_call_that_waited_when_it_was_looked_at_may_be_the_first_that_went_wrong() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    calls(3, &mut file);
    let raw = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t"}}"#;
    let kind = Kind::Sent { raw: raw.into(), exchange: None, purpose: Purpose::Asked };
    let e = Entry::new(7, Time(7), 7, 1, What::Event(kind));
    file.write_all(entry::line(&e).as_bytes()).unwrap();
    let mut source = Source::File(Box::new(Index::open(file.path()).unwrap()));
    while source.advance().unwrap() {}
    let mut wanted = wanted::Wanted::new(Goto::FirstError, 0);
    assert_eq!(wanted.error(&source, 0, &Nobody, false), None);
    wanted.seen = source.range().end;
    assert_eq!(wanted.error(&source, 0, &Lost, false), None, "nothing new");
    assert_eq!(wanted.error(&source, 0, &Lost, true), Some(6));
}
