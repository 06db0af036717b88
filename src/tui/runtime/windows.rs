//! Reads windows of rows and judges them with what is known now. One question after the other; a filter
//! reads on in pieces until it has enough, and gives up when a newer question waits.

use super::Hands;
use crate::inspect::list::Judging;
use crate::inspect::wanted::Wanted;
use crate::ledger::{Ledger, LedgerError, Row};
use crate::time::Time;
use crate::tui::data::{Anchor, Ask, Line, Window};
use crate::tui::msg::Msg;
use std::collections::HashSet;
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

/// What a line is known by: its id, and its place where others have the id.
fn place(r: &Row) -> (String, Option<i64>) {
    (r.request_id.clone(), r.same.as_ref().map(|_| r.rowid))
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
    let fresh: HashSet<_> =
        found.rows.iter().filter(|l| is_finished(l)).map(|l| place(&l.row)).collect();
    let unfinished: Vec<Row> = judging
        .overview
        .unfinished
        .iter()
        .filter(|r| !fresh.contains(&place(r)))
        .take(TOP)
        .cloned()
        .collect();
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
    let known: HashSet<_> = lines.iter().map(|l| place(&l.row)).collect();
    let new = |l: &&Line| !is_finished(l) && !known.contains(&place(&l.row));
    let new: Vec<Line> = found.rows.iter().filter(new).cloned().collect();
    lines.splice(..0, new);
    top.extend(lost);
    top.extend(lines);
    let seen: HashSet<String> = found.rows.iter().map(|l| l.id().to_owned()).collect();
    // A request whose row came after the pass has one now.
    top.retain(|l| hit(l) && !(l.row.rowid == 0 && seen.contains(l.id())));
    // Where several rows have the id, by their places; a row that was written anew has another place and is the same.
    let on_top: HashSet<(String, Option<i64>)> = top.iter().map(|l| place(&l.row)).collect();
    found.rows.retain(|l| !on_top.contains(&place(&l.row)));
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
mod tests;
