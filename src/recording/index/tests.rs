use super::*;
use crate::journal::Kind;
use crate::journal::event::Purpose;
use crate::record::entry::{self, What, Wire};
use proptest::prelude::*;
use std::io::Write;

fn sent(seq: u64, text: &str) -> Entry {
    let kind = Kind::Sent { raw: text.to_owned().into(), exchange: None, purpose: Purpose::Asked };
    Entry::new(seq, Time(1_795_963_550_000_000 + seq as i64), seq, 1, What::Event(kind))
}

fn received(seq: u64, text: &str) -> Entry {
    let kind = Kind::Received { raw: text.to_owned().into(), exchange: None };
    Entry::new(seq, Time(1_795_963_550_000_000 + seq as i64), seq, 1, What::Event(kind))
}

#[test]
fn an_index_grows_with_its_file_and_reads_where_it_is_asked() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"create_ticket"}}"#;
    let header = entry::header(&Header { run: "a".into(), ..Header::default() });
    write!(file, "{header}{}", entry::line(&sent(1, call))).unwrap();
    let mut index = Index::open(file.path()).unwrap();
    while index.advance().unwrap() {}
    assert_eq!((index.len(), index.headers().len()), (1, 1));
    // Half a line is nothing yet; its other half makes it an event. A second run counts its generations on.
    let more = format!("{{\"bad\n{header}{}", entry::line(&sent(1, r#"{"id":2,"result":{}}"#)));
    let (a, b) = more.split_at(more.len() - 9);
    file.write_all(a.as_bytes()).unwrap();
    while index.advance().unwrap() {}
    assert_eq!((index.len(), index.bad.len()), (1, 1));
    file.write_all(b.as_bytes()).unwrap();
    while index.advance().unwrap() {}
    let slots = index.window(0, 10);
    assert_eq!(
        slots.iter().map(|s| (s.kind(), s.generation)).collect::<Vec<_>>(),
        [("sent", 1), ("sent", 2)]
    );
    assert_eq!(index.name(&slots[0]), "create_ticket");
    assert_eq!(slots[1].rpc(), Some(Rpc::Result));
    assert_eq!(index.entry(0).unwrap().raw().unwrap(), call.as_bytes());
    assert_eq!(index.tail(1)[0].raw().unwrap(), r#"{"id":2,"result":{}}"#.as_bytes());
    assert_eq!(index.bad[0].line, 3);
    // The answer knows its request, over the runs only within one; numbers are those of the whole file.
    assert_eq!((slots[0].peer(), slots[1].peer()), (None, None));
    let answer = entry::line(&received(2, r#"{"id":2,"result":{}}"#));
    let ask = entry::line(&sent(3, r#"{"id":"x","method":"tools/call","params":{"name":"n"}}"#));
    let other = entry::line(&received(4, r#"{"id":"x","error":{"code":1,"message":""}}"#));
    write!(file, "{answer}{ask}{other}").unwrap();
    while index.advance().unwrap() {}
    let peers: Vec<_> = index.window(0, 9).iter().map(Slot::peer).collect();
    assert_eq!(peers, [None, None, None, Some(4), Some(3)]);
    assert!(index.slot(3).unwrap().is_call() && !index.slot(4).unwrap().is_call());
    for i in 0..index.len() {
        let seq = index.entry(i).unwrap().seq;
        assert_eq!((seq, index.find(seq)), (i as u64 + 1, Some(i)));
    }
    assert_eq!((index.find(0), index.find(6)), (None, None));
    // Replaced: read anew.
    std::fs::write(file.path(), entry::line(&sent(1, call))).unwrap();
    while index.advance().unwrap() {}
    assert_eq!((index.len(), index.bad.len(), index.window(0, 1)[0].generation), (1, 0, 1));
}

proptest! {
    #[test]
    fn the_fast_way_says_what_the_slow_way_says(
        id in prop_oneof!["[0-9]{1,5}", "\"\\PC{0,6}\""], method in "\\PC{1,12}", tool in "\\PC{0,12}", exchange in proptest::option::of(any::<u64>()),
        headers in proptest::collection::vec(("\\PC{0,5}", "\\PC{0,5}"), 0..2), cut in 0u64..3,
    ) {
        use crate::json::raw::quote;
        let text = format!(r#"{{"id":{id},"method":{},"params":{{"name":{}}}}}"#, quote(&method), quote(&tool));
        let kind = Kind::Sent { raw: text.into(), exchange, purpose: Purpose::FollowUp { call: 3 } };
        let mut e = Entry::new(7, Time(1_795_963_550_611_770), 8, 3, What::Event(kind));
        e.wire = Wire { headers, cut, ..Wire::default() };
        let line = entry::line(&e);
        if let Some(h) = head::read(line.trim_end().as_bytes()) {
            let s = summary(&e);
            let (rpc, name, id) = match &s {
                Some(s) => (head::rpc(s.rpc), s.tool.as_deref().or(s.method.as_deref()), s.id.as_ref().map(Id::to_json)),
                None => (0, None, None),
            };
            prop_assert_eq!((h.at, h.generation, h.kind, h.rpc), (e.at, 3, 0, rpc));
            prop_assert_eq!(h.name, name.unwrap_or_default());
            prop_assert_eq!((h.id, h.exchange), (id.as_deref().unwrap_or(""), exchange));
        }
    }

    #[test]
    fn no_head_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        head::read(&bytes);
        let mut line = br#"{"seq":1,"at":"2026-11-29T14:45:50.611770Z","mono":1,"gen":1,"kind":"sent","#.to_vec();
        line.extend_from_slice(&bytes);
        line.push(b'}');
        head::read(&line);
    }
}
