//! The time line of a recording or of this session: its state on the screen, and what keys do there. Pure; rows come
//! as windows from whoever reads the events, which also knows where the selection is.

mod data;

use super::app::{App, Overlay, Pane, Tone};
use super::msg::Effect;
use super::tree::View;
use super::update;
use super::update_scroll::lines_of;
use crate::filter::{Mistake, parse};
use crate::inspect::recorded::RECORDED_CALLS;
use crate::keys::action::Action;
use crate::keys::{Code, Key};
use crate::recording::rows::Row;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use data::{Ask, Form, Goto, HEX, Shown, Which, Window};

/// See the module's head.
#[derive(Debug, Default)]
pub struct Timeline {
    pub which: Which,
    pub window: Option<Box<Window>>,
    /// As it is typed, mistakes and all.
    pub filter: String,
    pub typing: bool,
    pub mistake: Option<Mistake>,
    pub form: Form,
    /// The keys move the text, not the list.
    pub reading: bool,
    /// The text alone.
    pub zoom: bool,
    pub view: Option<View>,
    pub hex_at: usize,
    pub follow: bool,
    pub paused: bool,
    /// Places of the recording and of this session.
    pub marks: [BTreeSet<usize>; 2],
    /// Where jumps began.
    pub back: Vec<usize>,
    seq: u64,
    /// The last filter without a mistake.
    good: String,
}

impl Timeline {
    /// The bookmarks of what is shown.
    pub fn marks(&self) -> &BTreeSet<usize> {
        &self.marks[usize::from(self.which == Which::Live)]
    }

    /// The selected row.
    pub fn row(&self) -> Option<&Row> {
        let w = self.window.as_ref()?;
        w.rows.iter().find(|(p, _)| Some(*p) == w.selected).map(|(_, r)| r)
    }

    /// Lines of the text in its present form.
    pub fn text_len(&self) -> usize {
        match (self.form, &self.view) {
            (Form::Hex, _) => {
                let text = self.window.as_ref().and_then(|w| w.text.as_ref());
                text.map_or(0, |t| t.bytes.len().div_ceil(HEX))
            }
            (_, Some(v)) => v.len(),
            (_, None) => 0,
        }
    }

    fn ask(&mut self, goto: Goto, rows: usize) -> Effect {
        self.seq += 1;
        Effect::Timeline(Some(Ask {
            seq: self.seq,
            which: self.which,
            filter: self.good.clone(),
            goto,
            rows,
            follow: self.follow,
            paused: self.paused,
        }))
    }

    /// Takes an answer; one to an older question is dropped.
    fn take(&mut self, window: Window) -> Option<String> {
        if window.seq != self.seq {
            return None;
        }
        if window.filter != self.good {
            self.good.clone_from(&window.filter);
            self.filter.clone_from(&window.filter);
            self.mistake = None;
        }
        let same = |a: &Arc<Shown>, b: &Arc<Shown>| Arc::ptr_eq(a, b);
        let before = self.window.as_ref().and_then(|w| w.text.as_ref());
        let stays = match (before, &window.text) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        };
        if !stays {
            self.hex_at = 0;
            self.view = window.text.as_ref().map(|t| View::new(t.document.clone()));
            self.dress();
        }
        let said = window.said.clone();
        self.window = Some(Box::new(window));
        said
    }

    /// The text in the form that was chosen.
    fn dress(&mut self) {
        if let Some(v) = &mut self.view
            && v.raw != (self.form == Form::Raw)
        {
            v.turn();
        }
    }
}

/// Rows of the list at the terminal's size.
pub fn rows(app: &App) -> usize {
    usize::from(app.size.1).max(10)
}

/// Opens it at what the pane is about.
pub fn open(app: &mut App, out: &mut Vec<Effect>) {
    let has = [app.start.recording.is_some(), app.start.endpoint.is_some()];
    let call = app.call.filter(|_| app.pane == Pane::Calls);
    let t = &mut app.timeline;
    t.which = match (has, call) {
        (_, Some(id)) if id >= RECORDED_CALLS => Which::Recording,
        (_, Some(_)) => Which::Live,
        ([true, _], None) => t.which,
        ([false, _], None) => Which::Live,
    };
    let first = t.window.is_none();
    let goto = match (call, &app.requests.selected) {
        (Some(id), _) => Goto::Event(id % RECORDED_CALLS),
        (None, Some(id)) if app.pane != Pane::Stderr => Goto::Request(id.clone()),
        _ if first => Goto::End,
        _ => Goto::Stay,
    };
    t.follow = matches!(goto, Goto::End);
    (t.typing, t.reading, t.paused) = (false, false, false);
    app.overlay = Some(Overlay::Timeline);
    super::findings::ask(app, out);
    go(app, goto, out);
}

/// Opens the recording's at this event; a filter that could hide it goes.
pub fn open_at(app: &mut App, seq: u64, out: &mut Vec<Effect>) {
    let t = &mut app.timeline;
    t.which = Which::Recording;
    (t.follow, t.typing, t.reading, t.paused) = (false, false, false, false);
    app.overlay = Some(Overlay::Timeline);
    go(app, Goto::Event(seq), out);
}

fn go(app: &mut App, goto: Goto, out: &mut Vec<Effect>) {
    let rows = rows(app);
    out.push(app.timeline.ask(goto, rows));
}

/// A window has come.
pub fn take(app: &mut App, window: Window) {
    if let Some(said) = app.timeline.take(window) {
        app.said = Some((Tone::Plain, said));
    }
}

/// Takes an action of the time line.
pub fn act(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    app.said = None;
    let page = (rows(app) / 2) as isize;
    if let Some(by) = lines_of(action, page) {
        return step(app, action, by, out);
    }
    let t = &mut app.timeline;
    match action {
        Action::Close => {
            app.overlay = None;
            out.push(Effect::Timeline(None));
        }
        Action::Quit => update::quit(app, out),
        Action::NextPane => t.reading = !t.reading,
        Action::Zoom => {
            t.zoom = !t.zoom;
            t.reading = t.zoom;
        }
        Action::Raw => {
            t.form = match t.form {
                Form::Pretty => Form::Raw,
                Form::Raw => Form::Hex,
                Form::Hex => Form::Pretty,
            };
            t.dress();
        }
        Action::Fold => {
            if let Some(v) = &mut t.view {
                v.fold();
            }
        }
        Action::Filter => t.typing = true,
        Action::Findings => {
            out.push(Effect::Timeline(None));
            super::findings::open(app, out);
        }
        Action::Follow => {
            t.follow = !t.follow;
            let on = t.follow;
            go(app, if on { Goto::End } else { Goto::Stay }, out);
        }
        Action::Pause => {
            t.paused = !t.paused;
            let what =
                if t.paused { "the list stands still; p lets it go on" } else { "it goes on" };
            app.said = Some((Tone::Plain, what.into()));
            go(app, Goto::Stay, out);
        }
        Action::Source => {
            t.which = if t.which == Which::Live { Which::Recording } else { Which::Live };
            t.back.clear();
            go(app, Goto::Stay, out);
        }
        Action::Mark => mark(app),
        Action::NextMark => {
            let at = t.window.as_ref().and_then(|w| w.selected).unwrap_or(0);
            let marks = t.marks();
            match marks.range(at + 1..).next().or_else(|| marks.first()).copied() {
                Some(place) => jump(app, Goto::Place(place), out),
                None => app.said = Some((Tone::Plain, "no bookmark; b sets one".into())),
            }
        }
        Action::Peer => jump(app, Goto::Peer, out),
        Action::StderrNear => jump(app, Goto::Stderr, out),
        Action::FirstError => jump(app, Goto::FirstError, out),
        Action::Again => jump(app, Goto::NextError, out),
        Action::Death => jump(app, Goto::Death, out),
        Action::Back => match t.back.pop() {
            Some(place) => go(app, Goto::Place(place), out),
            None => app.said = Some((Tone::Plain, "no jump to go back from".into())),
        },
        Action::Details => request(app, out),
        Action::Copy => copy(app, out),
        _ => {}
    }
}

fn step(app: &mut App, action: Action, by: isize, out: &mut Vec<Effect>) {
    let t = &mut app.timeline;
    if t.reading {
        let last = t.text_len().saturating_sub(1);
        match (t.form, &mut t.view) {
            (Form::Hex, _) => t.hex_at = t.hex_at.saturating_add_signed(by).min(last),
            (_, Some(v)) => v.step(by),
            (_, None) => {}
        }
        return;
    }
    // Whoever goes to the end wants to see what comes; whoever moves up reads.
    t.follow = action == Action::Bottom;
    let goto = match action {
        Action::Top => Goto::Start,
        Action::Bottom => Goto::End,
        _ => Goto::By(by),
    };
    go(app, goto, out);
}

fn jump(app: &mut App, goto: Goto, out: &mut Vec<Effect>) {
    let t = &mut app.timeline;
    if let Some(at) = t.window.as_ref().and_then(|w| w.selected)
        && t.back.last() != Some(&at)
    {
        t.back.push(at);
    }
    t.follow = false;
    go(app, goto, out);
}

fn mark(app: &mut App) {
    let t = &mut app.timeline;
    let Some(at) = t.window.as_ref().and_then(|w| w.selected) else { return };
    let marks = &mut t.marks[usize::from(t.which == Which::Live)];
    let said = if marks.remove(&at) { "bookmark taken away" } else { "bookmarked; B goes there" };
    if said.starts_with("bookmarked") {
        marks.insert(at);
    }
    app.said = Some((Tone::Plain, said.into()));
}

/// To the ledger row of the selected call.
fn request(app: &mut App, out: &mut Vec<Effect>) {
    let Some(id) = app.timeline.row().and_then(|r| r.request_id.clone()) else {
        app.said = Some((Tone::Plain, "this event names no request_id".into()));
        return;
    };
    app.requests.select(&id);
    app.pane = Pane::Detail;
    app.overlay = None;
    out.push(Effect::Timeline(None));
}

fn copy(app: &mut App, out: &mut Vec<Effect>) {
    let t = &app.timeline;
    let text = t.window.as_ref().and_then(|w| w.text.as_ref());
    if let (Some(text), Some(row)) = (text, t.row()) {
        let what = format!("event {}", row.seq);
        let text = String::from_utf8_lossy(&text.bytes).into_owned();
        out.push(Effect::Keep { what, text });
    }
}

/// An action while the filter is typed.
pub fn typing(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    match action {
        Action::Choose => app.timeline.typing = false,
        Action::Close => {
            app.timeline.typing = false;
            set(app, String::new(), out);
        }
        Action::Up => step(app, action, -1, out),
        Action::Down => step(app, action, 1, out),
        Action::Quit => update::quit(app, out),
        _ => {}
    }
}

/// A key that is no action: text of the filter.
pub fn type_key(app: &mut App, key: Key, out: &mut Vec<Effect>) {
    let mut filter = app.timeline.filter.clone();
    match (key.code, key.typed()) {
        (_, Some(c)) => filter.push(c),
        (Code::Backspace, _) => drop(filter.pop()),
        (Code::Char('u'), _) if key.ctrl => filter.clear(),
        _ => return,
    }
    set(app, filter, out);
}

/// Pasted text, its first line.
pub fn paste(app: &mut App, text: &str, out: &mut Vec<Effect>) {
    let line: String = text.lines().next().unwrap_or_default().chars().take(4_096).collect();
    set(app, format!("{}{line}", app.timeline.filter), out);
}

fn set(app: &mut App, filter: String, out: &mut Vec<Effect>) {
    let t = &mut app.timeline;
    t.mistake = parse(&filter).err();
    t.filter = filter;
    // With a mistake the rows of the last good one stay.
    if t.mistake.is_none() && t.good != t.filter {
        t.good.clone_from(&t.filter);
        go(app, Goto::Stay, out);
    }
}

/// A click on a row.
pub fn click(app: &mut App, place: usize, out: &mut Vec<Effect>) {
    app.timeline.reading = false;
    app.timeline.follow = false;
    go(app, Goto::Place(place), out);
}

#[cfg(test)]
mod tests;
