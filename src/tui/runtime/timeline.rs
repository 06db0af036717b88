//! Reads the time line for the screen: takes questions, goes through the events piece by piece between them, and
//! tells windows of rows. Nothing is read before somebody looks, and nothing is followed when nobody does.

mod side;
mod wanted;

use super::Hands;
use crate::filter::{Field, parse};
use crate::journal::Outcome;
use crate::recording::index::Index;
use crate::recording::rows::Knows;
use crate::recording::timeline::{Judged, Live, Source};
use crate::time::Time;
use crate::tui::data::Line;
use crate::tui::msg::Msg;
use crate::tui::timeline::{Ask, Which, Window};
use side::Side;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(80);
/// Between two windows that nobody asked for.
const TELL: Duration = Duration::from_millis(60);

pub async fn serve(hands: Hands, mut asks: mpsc::UnboundedReceiver<Option<Ask>>) {
    let mut reader = Some(Reader::new(&hands));
    let mut open = false;
    let mut busy = false;
    loop {
        let first = match (open, busy) {
            (false, _) => asks.recv().await,
            (true, true) => match asks.try_recv() {
                Ok(ask) => Some(ask),
                Err(mpsc::error::TryRecvError::Empty) => None,
                Err(mpsc::error::TryRecvError::Disconnected) => return,
            },
            (true, false) => tokio::select! {
                ask = asks.recv() => match ask { Some(ask) => Some(ask), None => return },
                () = tokio::time::sleep(LOOK) => None,
            },
        };
        if !open && first.is_none() {
            return;
        }
        let mut batch = Vec::new();
        for ask in first.into_iter().chain(std::iter::from_fn(|| asks.try_recv().ok())) {
            open = ask.is_some();
            batch.extend(ask);
        }
        if !open {
            continue;
        }
        let Some(mut r) = reader.take() else { return };
        let worked = tokio::task::spawn_blocking(move || {
            let told = r.turn(batch);
            (r, told)
        });
        // The task is ended together with the screen.
        let Ok((back, (window, more))) = worked.await else { return };
        (reader, busy) = (Some(back), more);
        if let Some(w) = window {
            hands.tell(Msg::Timeline(Box::new(w))).await;
        }
    }
}

type Told = (Option<Window>, bool);

struct Reader {
    sides: [Option<Side>; 2],
    ask: Option<Ask>,
    told_at: Option<Instant>,
    dirty: bool,
    /// Whoever judges requests.
    hands: Option<Hands>,
}

impl Reader {
    fn new(hands: &Hands) -> Reader {
        let recording = hands.inspector.recording.clone().map(|r| {
            let path = r.path();
            let held = r.clone();
            Side::new(
                path.display().to_string(),
                Index::open(&path).map(|i| Source::File(Box::new(i))).map_err(|e| e.to_string()),
                Box::new(r),
                Box::new(move || held.is_being_written()),
            )
        });
        let live = hands.inspector.client.clone().map(|c| {
            let source = Source::Live(Live::new(c.journal().clone()));
            let name = c.name();
            Side::new(name, Ok(source), Box::new(c.journal().clone()), Box::new(|| true))
        });
        let hands = Some(hands.clone());
        Reader { sides: [recording, live], ask: None, told_at: None, dirty: false, hands }
    }

    /// Answers, and does a piece of work; whether there is more to do.
    fn turn(&mut self, asks: Vec<Ask>) -> Told {
        let asked = !asks.is_empty();
        let mut said = None;
        for ask in asks {
            said = None;
            let side = self.sides.get_mut(ask.which as usize).and_then(Option::as_mut);
            if let Some(side) = side {
                if ask.filter != side.filter {
                    side.judged =
                        self.hands.as_ref().map(|h| judged(h, &ask.filter)).unwrap_or_default();
                }
                if self.ask.is_none() || side.source.as_ref().is_ok_and(|s| s.range().is_empty()) {
                    side.work();
                }
                said = side.take(&ask);
            }
            self.ask = Some(ask);
        }
        let Some(ask) = self.ask.clone() else { return (None, false) };
        let Some(side) = self.sides.get_mut(ask.which as usize).and_then(Option::as_mut) else {
            let name = match ask.which {
                Which::Recording => "no recording is attached",
                Which::Live => "no endpoint is attached",
            };
            let mut nothing =
                Side::new(name.into(), Err(name.into()), Box::new(Nobody), Box::new(|| false));
            return (asked.then(|| nothing.window(&ask, None)), false);
        };
        let changed = side.work();
        if ask.follow && !ask.paused {
            side.end();
        }
        said = side.seek().or(said);
        self.dirty |= changed && !ask.paused;
        let due = self.told_at.is_none_or(|t| t.elapsed() >= TELL);
        let more = !side.through;
        if asked || said.is_some() || (self.dirty && due) {
            (self.told_at, self.dirty) = (Some(Instant::now()), false);
            return (Some(side.window(&ask, said)), more);
        }
        (None, more || self.dirty)
    }
}

/// State and verdicts of the requests that have calls, by request_id; nothing unless the filter asks for them.
fn judged(hands: &Hands, filter: &str) -> Judged {
    let filter = parse(filter).unwrap_or_default();
    if !filter.names(Field::State) && !filter.names(Field::Verdict) {
        return Judged::default();
    }
    let judging = hands.judging.borrow().clone();
    let now = Time::now();
    let rows: Vec<_> = judging.called.values().filter_map(|r| r.as_ref().ok()?.clone()).collect();
    let mut lines = hands.inspector.lines(&rows, &judging, now);
    lines.extend(hands.inspector.rowless_lines(&judging, now));
    let words = |l: &Line| (l.judged.state.word().to_owned(), l.verdict_words());
    lines.iter().map(|l| (l.id().to_owned(), words(l))).collect()
}

struct Nobody;

impl Knows for Nobody {
    fn outcome(&self, _: u64) -> Option<(Option<Outcome>, Option<f64>)> {
        None
    }
    fn death(&self, _: u32) -> Option<String> {
        None
    }
    fn lost(&self, _: u32) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
