//! Reads the time line for the screen: takes questions, goes through the events piece by piece between them, and
//! tells windows of rows. Nothing is read before somebody looks, and nothing is followed when nobody does.

use super::Hands;
use crate::filter::{Field, Filter, parse};
use crate::journal::{Kind, Outcome};
use crate::record::entry::What;
use crate::recording::index::Index;
use crate::recording::rows::Knows;
use crate::recording::timeline::{Judged, Live, Places, Source};
use crate::time::Time;
use crate::tui::data::Line;
use crate::tui::msg::Msg;
use crate::tui::timeline::{Ask, Goto, Shown, Which, Window};
use crate::tui::tree::Document;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(80);
/// How long one piece of work may take while somebody may ask.
const PIECE: Duration = Duration::from_millis(6);
/// Between two windows that nobody asked for.
const TELL: Duration = Duration::from_millis(60);
/// Events a filter looks at before the clock is asked.
const LOOK_AT: usize = 64;
/// Bytes of a text that are shown.
const TEXT: usize = 4 << 20;

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

/// One of the two streams, as far as it was read.
struct Side {
    name: String,
    source: Result<Source, String>,
    knows: Box<dyn Knows + Send>,
    places: Places,
    filter: String,
    selected: usize,
    /// A jump to something that may not have been read yet.
    wanted: Option<Goto>,
    text: Option<Arc<Shown>>,
    written: Box<dyn Fn() -> bool + Send>,
    /// All events were read, and all were looked at.
    through: bool,
    /// What the ledger says of requests, where the filter asks for it.
    judged: Judged,
}

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
        if let Some(goto) = side.wanted.take() {
            let found = side.go(&goto);
            if let Err(why) = found {
                match side.through {
                    true => said = Some(why),
                    false => side.wanted = Some(goto),
                }
            }
        }
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

impl Side {
    fn new(
        name: String,
        source: Result<Source, String>,
        knows: Box<dyn Knows + Send>,
        written: Box<dyn Fn() -> bool + Send>,
    ) -> Side {
        Side {
            name,
            source,
            knows,
            places: Places::default(),
            filter: String::new(),
            selected: 0,
            wanted: None,
            text: None,
            written,
            through: false,
            judged: Judged::default(),
        }
    }

    /// Reads and looks at what is new, for a bounded time; whether anything was.
    fn work(&mut self) -> bool {
        let Ok(source) = &mut self.source else { return false };
        let began = Instant::now();
        let before = (source.range(), source.progress(), self.places.len(source), self.through);
        let mut more = true;
        while more && began.elapsed() < PIECE {
            match source.advance() {
                Ok(m) => more = m,
                Err(e) => {
                    self.source = Err(e.to_string());
                    return true;
                }
            }
        }
        let now = Time::now();
        let mut unseen = true;
        while unseen && began.elapsed() < PIECE * 2 {
            unseen = self.places.look(source, &*self.knows, &self.judged, now, LOOK_AT);
        }
        self.through = !more && !unseen;
        (source.range(), source.progress(), self.places.len(source), self.through) != before
    }

    /// Takes a question; what there is to say of it.
    fn take(&mut self, ask: &Ask) -> Option<String> {
        if ask.filter != self.filter {
            self.filter.clone_from(&ask.filter);
            self.places = Places::new(parse(&ask.filter).unwrap_or_else(|_| Filter::default()));
            self.work();
            self.settle();
        }
        self.wanted = None;
        match self.go(&ask.goto) {
            Ok(()) => None,
            Err(_) if !self.through => {
                self.wanted = Some(ask.goto.clone());
                None
            }
            Err(why) => Some(why),
        }
    }

    /// The selection onto a place that the filter lets through: the last one before it, else the first.
    fn settle(&mut self) {
        let Ok(source) = &self.source else { return };
        if self.places.has(source, self.selected) {
            return;
        }
        let rank = self.places.rank(source, self.selected);
        let near = self.places.at(source, rank.saturating_sub(1));
        if let Some(place) = near.or_else(|| self.places.at(source, 0)) {
            self.selected = place;
        }
    }

    fn end(&mut self) {
        let Ok(source) = &self.source else { return };
        let last = self.places.len(source).checked_sub(1).and_then(|r| self.places.at(source, r));
        self.selected = last.unwrap_or(self.selected);
    }

    fn go(&mut self, goto: &Goto) -> Result<(), String> {
        let Ok(source) = &self.source else { return Ok(()) };
        let (at, knows) = (self.selected, &*self.knows);
        let generation = source.quick(at).map_or(0, |q| q.generation);
        let place = match goto {
            Goto::Stay => return Ok(()),
            Goto::By(by) => {
                let rank = self.places.rank(source, at).saturating_add_signed(*by);
                let last = self.places.len(source).saturating_sub(1);
                self.selected = self.places.at(source, rank.min(last)).unwrap_or(at);
                return Ok(());
            }
            Goto::Start => {
                self.selected = self.places.at(source, 0).unwrap_or(at);
                return Ok(());
            }
            Goto::End => {
                self.end();
                return Ok(());
            }
            Goto::Place(place) => Some(*place)
                .filter(|p| source.range().contains(p))
                .ok_or("it is no longer kept".to_owned()),
            Goto::Event(seq) => source.find(*seq).ok_or(format!("event {seq} isn't among these")),
            Goto::Request(id) => {
                source.call_of(id).ok_or(format!("no call of {id} is among these events"))
            }
            Goto::Peer => {
                source.peer(at).ok_or("nothing answers this event, and it answers nothing".into())
            }
            Goto::Stderr => source
                .stderr_near(at)
                .ok_or(format!("generation {generation} wrote nothing to stderr")),
            Goto::FirstError => source.error_from(0, knows).ok_or("nothing went wrong here".into()),
            Goto::NextError => {
                source.error_from(at + 1, knows).ok_or("nothing went wrong after this".into())
            }
            Goto::Death => {
                source.death_after(at).ok_or("no server's end is among these events".into())
            }
        };
        self.selected = place?;
        Ok(())
    }

    fn window(&mut self, ask: &Ask, mut said: Option<String>) -> Window {
        let mut window = Window {
            seq: ask.seq,
            which: ask.which,
            name: self.name.clone(),
            filter: self.filter.clone(),
            rows: Vec::new(),
            first: 0,
            total: 0,
            of: 0,
            percent: None,
            damaged: 0,
            selected: None,
            text: None,
            said: None,
            written: (self.written)(),
        };
        let source = match &self.source {
            Ok(source) => source,
            Err(why) => {
                window.said = Some(why.clone());
                return window;
            }
        };
        // A jump leads to where it leads: a filter that hides the place gives way.
        if self.places.len(source) > 0
            && source.range().contains(&self.selected)
            && !self.places.has(source, self.selected)
        {
            if matches!(ask.goto, Goto::Stay | Goto::By(_) | Goto::Start | Goto::End) {
                self.settle();
            } else {
                self.places = Places::default();
                self.filter.clear();
                said.get_or_insert("the filter hid this; it is cleared".into());
            }
        }
        let Ok(source) = &self.source else { return window };
        let (read, len) = source.progress();
        if !self.through && len > 0 {
            window.percent = Some((read.saturating_mul(100) / len.max(1)).min(99) as u8);
        }
        (window.total, window.of) = (self.places.len(source), source.range().len());
        window.damaged = source.damaged();
        window.filter.clone_from(&self.filter);
        let rank = self.places.rank(source, self.selected);
        window.first = rank.saturating_sub(ask.rows);
        let now = Time::now();
        let places = (window.first..rank + ask.rows + 1).map_while(|r| self.places.at(source, r));
        window.rows = places.filter_map(|p| Some((p, source.row(p, &*self.knows, now)?))).collect();
        for (_, row) in &mut window.rows {
            cut(&mut row.text);
        }
        window.selected = self.places.has(source, self.selected).then_some(self.selected);
        if let Some(place) = window.selected {
            if self.text.as_ref().is_none_or(|t| t.place != place) {
                self.text = shown(source, place, &*self.knows);
            }
            window.text.clone_from(&self.text);
        }
        window.said = said;
        window
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

/// A row of the list shows its beginning.
fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(400) {
        text.truncate(at);
    }
}

fn shown(source: &Source, place: usize, knows: &dyn Knows) -> Option<Arc<Shown>> {
    let entry = source.entry(place)?;
    let bytes = match entry.raw() {
        Some(raw) => raw.clone(),
        None => {
            let mut lines = vec![source.row(place, knows, entry.at)?.text];
            if matches!(entry.what, What::Event(Kind::Exit { .. })) {
                lines.extend(
                    knows.lost(entry.generation).iter().map(|l| format!("waited then: {l}")),
                );
            }
            Bytes::from(lines.join("\n"))
        }
    };
    let cut = bytes.len().saturating_sub(TEXT);
    let bytes = bytes.slice(..bytes.len() - cut);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let document = Arc::new(Document::new(format!("event {}", entry.seq), text));
    Some(Arc::new(Shown { place, bytes, document, cut }))
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
