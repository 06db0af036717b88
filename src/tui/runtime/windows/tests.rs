use super::*;
use crate::inspect::Inspector;
use crate::judge::{Rules, State, Verdict};
use crate::tui::runtime::facts;
use tokio::sync::watch;

/// 500 rows; every hundredth is running, and has no ticket.
fn hands(folder: &std::path::Path) -> Hands {
    let path = folder.join("ledger.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL);
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT UNIQUE, title TEXT, body TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
         INSERT INTO requests SELECT 'r' || i, 'h' || i, iif(i % 100 = 0, 'running', 'done'), NULL, 'me', 1795963550 + i FROM n;
         INSERT INTO tickets SELECT 't' || rowid, request_id, '件名 ' || rowid, '' FROM requests WHERE status = 'done';",
    )
    .unwrap();
    let inspector = Inspector::new(Some(Ledger::open(&path)), None, Rules::default());
    let (judging, _) = watch::channel(Arc::new(facts::nothing_yet(&inspector)));
    Hands {
        inspector,
        news: mpsc::channel(8).0,
        judging,
        flags: Arc::default(),
        wires: Arc::default(),
        how_to: None,
    }
}

async fn read(hands: &Hands, anchor: Anchor, filter: &str) -> Window {
    let (_more, asked) = mpsc::unbounded_channel();
    let ask = Ask { seq: 1, filter: filter.into(), anchor, count: 50 };
    window(hands, ask, &asked).await.unwrap().unwrap()
}

fn ends(w: &Window) -> (i64, i64, bool, bool) {
    let rowid = |l: Option<&Line>| l.map_or(0, |l| l.row.rowid);
    (rowid(w.rows.first()), rowid(w.rows.last()), w.has_newer, w.has_older)
}

#[tokio::test]
async fn windows_are_keyset_reads_from_every_anchor() {
    let folder = tempfile::tempdir().unwrap();
    let hands = hands(folder.path());
    for (anchor, want) in [
        // 500 is running, and so on top.
        (Anchor::Newest, (499, 451, false, true)),
        (Anchor::Older(451), (450, 401, true, true)),
        (Anchor::At(450), (450, 401, true, true)),
        (Anchor::Newer(450), (499, 451, false, true)),
        (Anchor::Newer(440), (490, 441, true, true)),
        (Anchor::Older(30), (29, 1, true, false)),
        (Anchor::Oldest, (50, 1, true, false)),
    ] {
        assert_eq!(ends(&read(&hands, anchor, "").await), want, "{anchor:?}");
    }
}

#[tokio::test]
async fn unfinished_rows_are_on_top_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let hands = hands(folder.path());
    let overview = hands.inspector.overview(|| async {}).await.unwrap();
    hands.judging.send_replace(Arc::new(hands.inspector.judging(overview).await));
    let w = read(&hands, Anchor::Newest, "").await;
    let top: Vec<&str> = w.top.iter().map(Line::id).collect();
    assert_eq!(top, ["r500", "r400", "r300", "r200", "r100"]);
    assert!(w.rows.iter().all(|l| l.judged.state == State::Done && l.row.effects.len() == 1));
    // The pass is older than the window: what has finished since is no longer on top.
    let db = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    db.execute("UPDATE requests SET status = 'done' WHERE request_id = 'r500'", []).unwrap();
    let w = read(&hands, Anchor::Newest, "").await;
    assert_eq!((w.top.len(), w.rows[0].id()), (4, "r500"));
}

#[tokio::test]
async fn effects_without_a_request_have_lines_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let hands = hands(folder.path());
    let db = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    // Two lost ones, a swept one that is older than all, and a swept row whose effect is among the others.
    db.execute_batch(
        "INSERT INTO tickets VALUES('tx', 'lost-1', 'x', ''), ('ty', 'lost-2', 'y', '');
         INSERT INTO tickets(rowid, ticket_id, request_id) VALUES(-5, 'tz', 'swept-1');
         DELETE FROM requests WHERE request_id = 'r7';",
    )
    .unwrap();
    let overview = hands.inspector.overview(|| async {}).await.unwrap();
    hands.judging.send_replace(Arc::new(hands.inspector.judging(overview).await));
    let ids = |l: &[Line]| l.iter().map(|l| l.id().to_owned()).collect::<Vec<_>>();
    let w = read(&hands, Anchor::Newest, "").await;
    assert_eq!(ids(&w.top)[..4], ["lost-2", "lost-1", "r7", "r500"]);
    assert_eq!(ids(&w.tail), ["swept-1"]);
    let said = |l: &Line| (l.judged.state.clone(), l.finding.verdicts[0].clone(), l.effects);
    let lost = (State::NoRow, Verdict::EffectWithoutRequest, Some(1));
    assert_eq!(said(&w.top[0]), lost);
    assert_eq!(said(&w.tail[0]), (State::NoRow, Verdict::RequestPurged, Some(1)));
    for (filter, top, tail, count) in [
        ("state:no_row", 3, 1, 4),
        ("verdict:\"request purged\"", 0, 1, 1),
        ("state:no_row !req:lost*", 1, 1, 2),
        ("state:done", 0, 0, 494),
        ("abandoned", 5, 0, 5),
    ] {
        let w = read(&hands, Anchor::Newest, filter).await;
        assert_eq!((w.top.len(), w.tail.len()), (top, tail), "{filter}");
        assert_eq!(w.matches, Some((count, 503)), "{filter}");
    }
}

#[tokio::test]
async fn a_filter_finds_by_id_label_state_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let hands = hands(folder.path());
    let w = read(&hands, Anchor::Newest, "R12").await;
    let ids: Vec<&str> = w.rows.iter().map(Line::id).collect();
    assert_eq!(ids[..3], ["r129", "r128", "r127"]);
    assert_eq!((w.matches, w.has_older), (Some((11, 500)), false));
    assert_eq!(read(&hands, Anchor::Newest, "件名 499").await.matches, Some((1, 500)));
    let many = read(&hands, Anchor::Newest, "done").await;
    assert_eq!((many.rows.len(), many.matches, many.has_older), (50, Some((495, 500)), true));
    let last = many.rows.last().unwrap().row.rowid;
    let more = read(&hands, Anchor::Older(last), "done").await;
    assert_eq!((more.rows[0].row.rowid, more.matches), (last - 1, None));
    let stalled = read(&hands, Anchor::Newest, "stalled").await;
    assert_eq!((stalled.top.len(), stalled.matches), (5, Some((5, 500))));
    assert!(read(&hands, Anchor::Newest, "nowhere").await.rows.is_empty());
}
