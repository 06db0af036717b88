//! The joining of witnesses, on a session folded from real events.

use super::*;
use crate::journal::event::{Event, Kind, Purpose, Transport};
use crate::judge::testing::{effect, row, t};
use crate::judge::{Verdict, conclude};
use crate::model::lookup::LOOK_UP;
use crate::wire::frame;
use crate::wire::id::Id;

struct Tape {
    session: Session,
    seq: u64,
}

impl Tape {
    fn new() -> Tape {
        Tape { session: Session::default(), seq: 0 }
    }
    fn add(&mut self, at: f64, generation: u32, kind: Kind) {
        self.seq += 1;
        self.session.apply(&Event { seq: self.seq, at: t(at), mono_us: 0, generation, kind });
    }
    fn open(&mut self, at: f64, generation: u32) {
        let transport = Transport::Stdio { command: vec!["server".into()], pid: None };
        self.add(at, generation, Kind::Opened { transport });
    }
    fn call(&mut self, at: f64, generation: u32, id: u64, tool: &str, request_id: &str) {
        let params = format!(r#"{{"name":"{tool}","arguments":{{"request_id":"{request_id}"}}}}"#);
        let raw = frame::request(&Id::from(id), "tools/call", Some(&params)).into();
        self.add(at, generation, Kind::Sent { raw, exchange: None, purpose: Purpose::Asked });
    }
    fn answer(&mut self, at: f64, generation: u32, id: u64, object: &str) {
        let raw = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{object}}}}}"#
        );
        self.add(at, generation, Kind::Received { raw: raw.into(), exchange: None });
    }
    fn killed(&mut self, at: f64, generation: u32) {
        self.add(
            at,
            generation,
            Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody },
        );
    }
}

fn ledger(at: f64, row: Option<Row>) -> LedgerFacts {
    LedgerFacts {
        view: LedgerView::Read(t(at)),
        row,
        has_effects_table: true,
        ..LedgerFacts::default()
    }
}

/// Killed in the middle of r-2, started again, looked up: the demo's story.
fn night() -> Tape {
    let mut tape = Tape::new();
    tape.open(0.0, 1);
    tape.call(1.0, 1, 1, "create_ticket", "r-1");
    tape.answer(2.0, 1, 1, r#"{"ticket_id":"T-000001","replayed":false}"#);
    tape.call(3.0, 1, 2, "create_ticket", "r-2");
    tape.killed(5.0, 1);
    tape.open(6.0, 2);
    tape.call(7.0, 2, 1, LOOK_UP, "r-2");
    tape.answer(7.5, 2, 1, r#"{"request_id":"r-2","status":"abandoned","result":null}"#);
    tape
}

#[test]
fn a_kill_in_the_middle_is_abandoned_by_observation() {
    let tape = night();
    let made = r#"{"ticket_id": "T-000001"}"#;
    let result = Some(made.to_owned());
    let rows = [
        Row { result, effects: vec![effect("r-1", "a")], ..row("r-1", "done", "A", 1.2) },
        row("r-2", "running", "A", 3.2),
    ];
    let (owners, histories) = (OwnerView::from_rows(&rows), Histories::default());
    let ctx = Context::new(&histories, &owners, Rules::default(), t(10.0)).with_session(
        &tape.session,
        LOOK_UP,
        Pairing::Consistent,
        &rows,
    );
    let f = ctx.gather("r-2", ledger(9.0, Some(rows[1].clone())), HashCheck::Equal);
    assert_eq!(
        (f.calls.len(), f.ended_generations.len()),
        (1, 1),
        "the look-up is no call of the work"
    );
    assert_eq!(f.server_says.as_ref().and_then(|w| w.started_by_us), Some(t(6.0)));
    assert_eq!(conclude(&f, t(10.0)).verdicts, [Verdict::Abandoned]);
    // Where nothing shows that this owner is that process, its end is only presumed to be the owner's.
    let other = [row("r-2", "running", "A", 3.2)];
    let alone = OwnerView::from_rows(&other);
    let times = Context::new(&histories, &alone, Rules::default(), t(10.0)).with_session(
        &tape.session,
        LOOK_UP,
        Pairing::Consistent,
        &other,
    );
    let f = times.gather("r-2", ledger(9.0, Some(rows[1].clone())), HashCheck::Equal);
    assert_eq!(conclude(&f, t(10.0)).verdicts, [Verdict::Stalled]);
    // Without the wire nobody has seen anything end.
    let blind = Context::new(&histories, &owners, Rules::default(), t(10.0));
    let f = blind.gather("r-2", ledger(9.0, Some(rows[1].clone())), HashCheck::NotChecked);
    assert_eq!(conclude(&f, t(10.0)).verdicts, [Verdict::Working]);
    let f = ctx.gather("r-1", ledger(9.0, Some(rows[0].clone())), HashCheck::NotChecked);
    assert_eq!(conclude(&f, t(10.0)).verdicts, [Verdict::Finished]);
}

#[test]
fn a_kill_before_the_claim_leaves_no_claim() {
    let tape = night();
    let (owners, histories) = (OwnerView::default(), Histories::default());
    let ctx = Context::new(&histories, &owners, Rules::default(), t(10.0)).with_session(
        &tape.session,
        LOOK_UP,
        Pairing::Consistent,
        &[],
    );
    let f = ctx.gather("r-2", ledger(9.0, None), HashCheck::NotChecked);
    assert_eq!(conclude(&f, t(10.0)).verdicts, [Verdict::NoClaim]);
}

#[test]
fn a_row_that_was_seen_and_is_gone_after_an_error_was_released() {
    let mut tape = Tape::new();
    tape.open(0.0, 1);
    tape.call(1.0, 1, 1, "create_ticket", "r");
    let raw = r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"boom"}]}}"#;
    tape.add(4.0, 1, Kind::Received { raw: raw.into(), exchange: None });
    let mut histories = Histories::default();
    histories.observe(&row("r", "running", "A", 1.5), t(2.0));
    histories.missing("r", t(4.5));
    let owners = OwnerView::default();
    let ctx = Context::new(&histories, &owners, Rules::default(), t(10.0)).with_session(
        &tape.session,
        LOOK_UP,
        Pairing::Proven,
        &[],
    );
    let f = ctx.gather("r", ledger(9.0, None), HashCheck::NotChecked);
    assert_eq!(conclude(&f, t(10.0)).verdicts, [Verdict::Released]);
    // A ledger that can't be read now has lost nothing.
    let unread =
        LedgerFacts { view: LedgerView::Unreadable("locked".into()), ..LedgerFacts::default() };
    assert_eq!(ctx.gather("r", unread, HashCheck::NotChecked).row_vanished_at, None);
}

#[test]
fn twins_are_judged_and_a_request_is_not_its_own_twin() {
    let rows = [row("a", "done", "A", 1.0), row("b", "running", "B", 2.0)];
    let owners = OwnerView::from_rows(&rows);
    let histories = Histories::default();
    let ctx = Context::new(&histories, &owners, Rules::default(), t(1000.0));
    let facts = LedgerFacts { twins: rows.to_vec(), ..ledger(999.0, Some(rows[1].clone())) };
    let f = ctx.gather("b", facts, HashCheck::NotChecked);
    assert_eq!(f.twins.iter().map(|t| t.request_id.as_str()).collect::<Vec<_>>(), ["a"]);
    let c = conclude(&f, t(1000.0));
    assert_eq!(c.verdicts, [Verdict::SuspectDuplicate, Verdict::Stalled]);
    let next = crate::words::next_step(&c.next, t(1000.0));
    assert!(next.contains("do not finish this one"), "{next}");
}

#[test]
fn a_dead_servers_claim_to_be_working_is_over() {
    let mut tape = Tape::new();
    tape.open(0.0, 1);
    tape.call(2.0, 1, 1, LOOK_UP, "r");
    tape.answer(2.5, 1, 1, r#"{"status":"running"}"#);
    let (owners, histories) = (OwnerView::default(), Histories::default());
    let says = |tape: &Tape| {
        Context::new(&histories, &owners, Rules::default(), t(10.0))
            .with_session(&tape.session, LOOK_UP, Pairing::Unproven, &[])
            .server_word("r")
    };
    assert_eq!(says(&tape).map(|w| w.status), Some("running".into()));
    tape.killed(3.0, 1);
    assert_eq!(says(&tape), None);
}

#[test]
fn pairing_folds_over_a_session_in_its_order() {
    use crate::model::pairing::{Paired, Read};
    let tape = night();
    let fold = |r2: Option<Row>| {
        Paired::fold(&tape.session, LOOK_UP, &mut Default::default(), |id| {
            let row = match id {
                "r-1" => None,
                _ => r2.clone(),
            };
            Some(Read { row, at: t(9.0), absent_at: None, there_since: None, done_since: None })
        })
        .pairing()
    };
    // The claim came when the call on generation 1 was under way, which proves nothing; the look-up of generation 2
    // agrees.
    assert_eq!(fold(Some(row("r-2", "running", "A", 3.2))), Pairing::Consistent);
    assert_eq!(fold(Some(row("r-2", "running", "A", 2.0))), Pairing::Consistent);
    assert_eq!(fold(None), Pairing::Unproven);
    let unread = Paired::fold(&tape.session, LOOK_UP, &mut Default::default(), |_| None);
    assert_eq!(unread.pairing(), Pairing::Unproven);
}

#[test]
fn a_look_up_is_judged_by_the_first_read_after_it() {
    use crate::model::pairing::{FirstReads, Paired, Read};
    let mut tape = Tape::new();
    tape.open(0.0, 1);
    tape.call(1.0, 1, 1, LOOK_UP, "r");
    tape.answer(2.0, 1, 1, r#"{"request_id":"r","status":"done"}"#);
    let mut first = FirstReads::new();
    let mut fold = |row: Option<Row>, at: f64| {
        let read = |_: &str| {
            Some(Read {
                row: row.clone(),
                at: t(at),
                absent_at: None,
                there_since: None,
                done_since: None,
            })
        };
        Paired::fold(&tape.session, LOOK_UP, &mut first, read).pairing()
    };
    assert_eq!(fold(None, 1.5), Pairing::Unproven, "read before the answer");
    assert_eq!(fold(Some(row("r", "done", "A", 0.5)), 3.0), Pairing::Consistent);
    // Swept in the night: that is no denial of what was answered then.
    assert_eq!(fold(None, 90_000.0), Pairing::Consistent);
}

#[test]
fn what_a_tool_says_later_changes_no_earlier_call() {
    let list = |hint: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":9,"result":{{"tools":[{{"name":"peek","annotations":{hint}}}]}}}}"#
        )
    };
    let mut tape = Tape::new();
    tape.open(0.0, 1);
    let listed = |tape: &mut Tape, at: f64, hint: &str| {
        let raw = frame::request(&Id::from(9), "tools/list", None).into();
        tape.add(at, 1, Kind::Sent { raw, exchange: None, purpose: Purpose::Asked });
        tape.add(at + 0.1, 1, Kind::Received { raw: list(hint).into(), exchange: None });
    };
    tape.call(0.5, 1, 1, "peek", "r");
    listed(&mut tape, 1.0, r#"{"readOnlyHint":true}"#);
    tape.call(2.0, 1, 2, "peek", "r");
    listed(&mut tape, 3.0, "{}");
    let (owners, histories) = (OwnerView::default(), Histories::default());
    let ctx = Context::new(&histories, &owners, Rules::default(), t(10.0)).with_session(
        &tape.session,
        LOOK_UP,
        Pairing::Unproven,
        &[],
    );
    let work: Vec<Time> = ctx.calls_of("r").iter().map(|c| c.sent_at).collect();
    assert_eq!(work, [t(0.5)], "before the list nobody had said so; after it, it had been said");
}

#[test]
fn a_good_answer_overtakes_an_earlier_look_up() {
    let mut tape = Tape::new();
    tape.open(0.0, 1);
    tape.call(1.0, 1, 1, LOOK_UP, "r");
    tape.answer(2.0, 1, 1, r#"{"request_id":"r","status":"abandoned"}"#);
    let says = |tape: &Tape| {
        let (owners, histories) = (OwnerView::default(), Histories::default());
        let ctx = Context::new(&histories, &owners, Rules::default(), t(10.0)).with_session(
            &tape.session,
            LOOK_UP,
            Pairing::Unproven,
            &[],
        );
        let facts = ctx.gather("r", LedgerFacts::default(), HashCheck::NotChecked);
        facts.server_says.map(|w| w.status)
    };
    assert_eq!(says(&tape).as_deref(), Some("abandoned"));
    tape.call(3.0, 1, 2, "create_ticket", "r");
    tape.answer(4.0, 1, 2, r#"{"status":"done","ticket_id":"T-1"}"#);
    assert_eq!(says(&tape), None);
}
