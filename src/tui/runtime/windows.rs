//! Reads windows of rows and judges them with what is known now. One question after the other; a filter
//! reads on in pieces until it has enough, and gives up when a newer question waits.

use super::Hands;
use crate::inspect::list::Judging;
use crate::inspect::wanted::Wanted;
use crate::ledger::{Ledger, LedgerError, Row};
use crate::time::Time;
use crate::tui::data::{Anchor, Ask, Line, Window};
use crate::tui::msg::Msg;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Unfinished rows kept on top.
const TOP: usize = 200;
/// Rows read at once for a filter.
const PIECE: usize = 2_000;
/// Rows looked at for a filter before its matches are shown without a count: enough to count those of a
/// small ledger, and to find rare ones in a large.
const COUNT: usize = 20_000;
const SCAN: usize = 200_000;

pub async fn serve(hands: Hands, mut asked: mpsc::UnboundedReceiver<Ask>) {
    while let Some(mut ask) = asked.recv().await {
        // Only the newest question is still of interest.
        while let Ok(newer) = asked.try_recv() {
            ask = newer;
        }
        let seq = ask.seq;
        match window(&hands, ask, &asked).await {
            Ok(Some(window)) => hands.tell(Msg::Requests(Box::new(window))).await,
            Ok(None) | Err(_) => hands.tell(Msg::NoRequests { seq }).await,
        }
    }
}

/// `None` when a newer question came in meanwhile.
async fn window(
    hands: &Hands,
    ask: Ask,
    asked: &mpsc::UnboundedReceiver<Ask>,
) -> Result<Option<Window>, LedgerError> {
    let judging = hands.judging.borrow().clone();
    let wanted = Wanted::new(&ask.filter, &judging);
    let hit = |line: &Line| wanted.holds(line);
    let mut top = hands.inspector.rowless_lines(&judging, Time::now());
    let Some(ledger) = &hands.inspector.ledger else {
        let all = top.len() as u64;
        top.retain(hit);
        let matches = (!wanted.is_empty()).then_some((top.len() as u64, all));
        let top_total = top.len();
        return Ok(Some(Window {
            ask,
            top,
            top_total,
            rows: Vec::new(),
            tail: Vec::new(),
            has_newer: false,
            has_older: false,
            matches,
        }));
    };
    let mut found = if wanted.is_empty() {
        plain(hands, ledger, &judging, &ask).await?
    } else {
        match filtered(hands, ledger, &judging, &ask, &wanted, asked).await? {
            Some(found) => found,
            None => return Ok(None),
        }
    };
    // The pass that knows the unfinished rows is older than the window: the window's word counts.
    let fresh: HashMap<&str, bool> = found.rows.iter().map(|l| (l.id(), is_finished(l))).collect();
    let unfinished: Vec<Row> = judging
        .overview
        .unfinished
        .iter()
        .filter(|r| fresh.get(r.request_id.as_str()) != Some(&true))
        .take(TOP)
        .cloned()
        .collect();
    drop(fresh);
    let mut lines = hands.inspector.lines(&unfinished, &judging, Time::now());
    // Requests that are known by an effect alone: lost ones before all, swept ones after all.
    let (mut lost, mut tail) = hands.inspector.loose_lines(&judging, Time::now());
    let called: HashSet<&str> = top.iter().map(Line::id).collect();
    lost.retain(|l| !called.contains(l.id()));
    tail.retain(|l| !called.contains(l.id()));
    drop(called);
    let loose = &judging.overview.loose;
    let named = (lost.len() + tail.len()) as u64;
    // They count where all of them have names.
    found.matches = match found.matches {
        Some((n, all)) if loose.is_named() => {
            let hits = lost.iter().chain(&tail).filter(|l| hit(l)).count() as u64;
            Some((n + hits, all + named))
        }
        other => other,
    };
    let known: HashSet<String> = lines.iter().map(|l| l.id().to_owned()).collect();
    let new: Vec<Line> =
        found.rows.iter().filter(|l| !is_finished(l) && !known.contains(l.id())).cloned().collect();
    lines.splice(..0, new);
    top.extend(lost);
    top.extend(lines);
    let seen: HashSet<String> = found.rows.iter().map(|l| l.id().to_owned()).collect();
    // A request whose row came after the pass has one now.
    top.retain(|l| hit(l) && !(l.row.rowid == 0 && seen.contains(l.id())));
    let on_top: HashSet<String> = top.iter().map(|l| l.id().to_owned()).collect();
    found.rows.retain(|l| !on_top.contains(l.id()));
    tail.retain(|l| hit(l) && !seen.contains(l.id()));
    let top_total = top.len();
    Ok(Some(Window {
        ask,
        top,
        top_total,
        rows: found.rows,
        tail,
        has_newer: found.has_newer,
        has_older: found.has_older,
        matches: found.matches,
    }))
}

fn is_finished(line: &Line) -> bool {
    crate::inspect::list::is_finished(&line.row)
}

struct Found {
    rows: Vec<Line>,
    has_newer: bool,
    has_older: bool,
    matches: Option<(u64, u64)>,
}

/// One keyset read, with one row more than asked for to see whether there are more.
async fn plain(
    hands: &Hands,
    ledger: &Ledger,
    judging: &Arc<Judging>,
    ask: &Ask,
) -> Result<Found, LedgerError> {
    let (anchor, count) = (ask.anchor, ask.count);
    let began = Time::now();
    let (mut rows, has_newer) = ledger
        .read_async(move |r| {
            let any_newer = |id: i64| r.newer(id, 1).map(|rows| !rows.is_empty());
            Ok(match anchor {
                Anchor::Newest => (r.newest(None, count + 1)?, false),
                Anchor::At(id) => {
                    (r.newest(Some(id.saturating_add(1)), count + 1)?, any_newer(id)?)
                }
                Anchor::Older(id) => (r.newest(Some(id), count + 1)?, true),
                Anchor::Newer(id) => {
                    let mut rows = r.newer(id, count + 1)?;
                    let more = rows.len() > count;
                    if more {
                        rows.remove(0);
                    }
                    (rows, more)
                }
                Anchor::Oldest => {
                    let mut rows = r.newer(i64::MIN, count + 1)?;
                    let more = rows.len() > count;
                    if more {
                        rows.remove(0);
                    }
                    (rows, more)
                }
            })
        })
        .await?;
    let has_older = match anchor {
        // There is the row that was asked from.
        Anchor::Newer(_) => true,
        Anchor::Oldest => false,
        _ => rows.len() > count,
    };
    rows.truncate(count);
    let rows = hands.inspector.window_lines(&rows, began, judging, Time::now());
    Ok(Found { rows, has_newer, has_older, matches: None })
}

/// Reads on from the newest row (or after the anchor) until enough match. Windows of a filter only grow
/// towards older rows.
async fn filtered(
    hands: &Hands,
    ledger: &Ledger,
    judging: &Arc<Judging>,
    ask: &Ask,
    wanted: &Wanted,
    asked: &mpsc::UnboundedReceiver<Ask>,
) -> Result<Option<Found>, LedgerError> {
    let mut before = match ask.anchor {
        Anchor::Older(id) => Some(id),
        Anchor::At(_) | Anchor::Newest | Anchor::Newer(_) | Anchor::Oldest => None,
    };
    let from_newest = before.is_none();
    let (mut rows, mut found, mut looked_at) = (Vec::new(), 0, 0);
    let mut through = false;
    let enough = |rows: &Vec<Line>, looked_at| {
        looked_at >= SCAN || (looked_at >= COUNT && rows.len() >= ask.count)
    };
    while !through && !enough(&rows, looked_at) {
        if !asked.is_empty() {
            return Ok(None);
        }
        let piece = ledger.read_async(move |r| r.newest(before, PIECE)).await?;
        through = piece.len() < PIECE;
        looked_at += piece.len();
        before = piece.last().map(|r| r.rowid);
        for line in hands.inspector.lines(&piece, judging, Time::now()) {
            if wanted.holds(&line) {
                found += 1;
                if rows.len() < ask.count {
                    rows.push(line);
                }
            }
        }
    }
    let has_older = found > rows.len() as u64 || !through;
    let matches = (through && from_newest).then_some((found, looked_at as u64));
    Ok(Some(Found { rows, has_newer: false, has_older, matches }))
}

#[cfg(test)]
mod tests {
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
}
