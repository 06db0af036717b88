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
            let (rpc, name) = summary(&e);
            prop_assert_eq!((h.at, h.generation, h.kind, h.rpc), (e.at, 3, 0, rpc));
            prop_assert_eq!(h.name, name.unwrap_or_default());
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
