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

/// Works until nothing is left to do; the last window.
fn through(r: &mut Reader, first: Vec<Ask>) -> Window {
    let (mut window, mut more) = r.turn(first);
    while more {
        let (w, m) = r.turn(Vec::new());
        (window, more) = (w.or(window), m);
    }
    window.unwrap()
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
