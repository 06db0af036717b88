//! One stream of the time line as far as it was read: where the selection is, which events the filter lets through,
//! and the window around.

use super::wanted::Wanted;
use crate::filter::{Filter, parse};
use crate::journal::Kind;
use crate::record::entry::What;
use crate::recording::rows::Knows;
use crate::recording::timeline::{Judged, Places, Source};
use crate::time::Time;
use crate::tui::timeline::{Ask, Goto, Shown, Window};
use crate::tui::tree::Document;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one piece of work may take while somebody may ask.
const PIECE: Duration = Duration::from_millis(6);
/// Events a filter looks at before the clock is asked.
const LOOK_AT: usize = 64;
/// Bytes of a text that are shown.
const TEXT: usize = 4 << 20;

/// One of the two streams, as far as it was read.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) source: Result<Source, String>,
    knows: Box<dyn Knows + Send>,
    places: Places,
    pub(super) filter: String,
    selected: usize,
    /// Where the selection stood when the filter was set, until the filter has looked that far.
    near: Option<usize>,
    /// A jump to something that may not have been read yet.
    wanted: Option<Wanted>,
    text: Option<Arc<Shown>>,
    written: Box<dyn Fn() -> bool + Send>,
    /// All events were read, and all were looked at.
    pub(super) through: bool,
    /// What the ledger says of requests, where the filter asks for it.
    pub(super) judged: Judged,
}

impl Side {
    pub(super) fn new(
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
            near: None,
            wanted: None,
            text: None,
            written,
            through: false,
            judged: Judged::default(),
        }
    }

    /// Reads and looks at what is new, for a bounded time; whether anything was.
    pub(super) fn work(&mut self) -> bool {
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
        // Once at least: what is let go is no match any more.
        let unseen = loop {
            let unseen = self.places.look(source, &*self.knows, &self.judged, now, LOOK_AT);
            if !unseen || began.elapsed() >= PIECE * 2 {
                break unseen;
            }
        };
        self.through = !more && !unseen;
        let after = (source.range(), source.progress(), self.places.len(source), self.through);
        self.stay();
        after != before
    }

    /// Takes a question; what there is to say of it.
    pub(super) fn take(&mut self, ask: &Ask) -> Option<String> {
        if ask.filter != self.filter {
            self.filter.clone_from(&ask.filter);
            self.places = Places::new(parse(&ask.filter).unwrap_or_else(|_| Filter::default()));
            self.near = Some(self.selected);
            self.work();
        }
        if ask.goto != Goto::Stay {
            self.near = None;
        }
        self.wanted = Some(Wanted::new(ask.goto.clone(), self.selected));
        self.seek()
    }

    /// Tries the jump that is wanted, among what is new; why it leads nowhere, once all is read.
    pub(super) fn seek(&mut self) -> Option<String> {
        let mut wanted = self.wanted.take()?;
        let why = self.go(&mut wanted).err()?;
        if self.through {
            return Some(why);
        }
        self.wanted = Some(wanted);
        None
    }

    /// Keeps the selection on something that is there: near the place where a new filter found it, and off what the
    /// source has let go.
    fn stay(&mut self) {
        let Ok(source) = &self.source else { return };
        let range = source.range();
        if let Some(near) = self.near {
            self.selected = near;
            if self.through || self.places.has_looked_at(near) {
                self.near = None;
            }
            self.settle();
        } else if self.selected < range.start {
            self.selected = range.start;
            self.settle();
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

    pub(super) fn end(&mut self) {
        let Ok(source) = &self.source else { return };
        let last = self.places.len(source).checked_sub(1).and_then(|r| self.places.at(source, r));
        self.selected = last.unwrap_or(self.selected);
    }

    fn go(&mut self, wanted: &mut Wanted) -> Result<(), String> {
        let Ok(source) = &self.source else { return Ok(()) };
        let (at, seen) = (wanted.at, wanted.seen(source));
        let generation = source.quick(at).map_or(0, |q| q.generation);
        let place = match &wanted.goto {
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
                source.call_of(id, seen).ok_or(format!("no call of {id} is among these events"))
            }
            Goto::Peer => {
                source.peer(at).ok_or("nothing answers this event, and it answers nothing".into())
            }
            Goto::Stderr => source
                .stderr_near(at, seen)
                .ok_or(format!("generation {generation} wrote nothing to stderr")),
            Goto::FirstError => wanted
                .error(source, 0, &*self.knows, self.through)
                .ok_or("nothing went wrong here".into()),
            Goto::NextError => wanted
                .error(source, at + 1, &*self.knows, self.through)
                .ok_or("nothing went wrong after this".into()),
            Goto::Death => {
                source.death_after(at, seen).ok_or("no server's end is among these events".into())
            }
        };
        wanted.seen = source.range().end;
        self.selected = place?;
        Ok(())
    }

    pub(super) fn window(&mut self, ask: &Ask, mut said: Option<String>) -> Window {
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
