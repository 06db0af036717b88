//! All that is known of the selected request: verdicts and the next step first, then evidence, its life over
//! the generations, row, hash, effects, the result, the server's word. Every part is bounded, so that a frame is too.

use super::cells::{self, Cells, age};
use super::{Ui, calls};
use crate::journal::bounded::IDLE;
use crate::journal::generation::generation_name;
use crate::judge::{HashCheck, State, Strength};
use crate::keys::action::Action;
use crate::model::UNREADABLE;
use crate::text;
use crate::time::Time;
use crate::tui::app::Pane;
use crate::tui::data::{Agrees, Detail, Line};
use crate::words::{glyph, next_step};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Screen lines of any one part.
const PART: usize = 40;
/// Characters read of a result or an answer.
const TEXT: usize = 4_000;
/// Columns of an effect that are shown.
const COLUMNS: usize = 8;
const LABEL: usize = 9;

/// The lines in the making.
struct Page<'a> {
    ui: &'a Ui<'a>,
    width: usize,
    lines: Vec<ratatui::text::Line<'static>>,
    label: &'static str,
}

impl Page<'_> {
    /// The parts that follow stand under this label.
    fn part(&mut self, label: &'static str) {
        self.label = label;
    }

    fn start(&mut self) -> Cells {
        let mut row = Cells::new(self.width);
        row.gap(1);
        row.cell(std::mem::take(&mut self.label), LABEL, self.ui.theme.dim);
        row.gap(1);
        row
    }

    /// One wrapped text.
    fn text(&mut self, text: &str, style: impl Into<Style>) {
        let style = style.into();
        let width = self.width.saturating_sub(LABEL + 3);
        for line in text::wrap(&text::visible(text), width, PART) {
            let mut row = self.start();
            row.put(&line, style);
            self.lines.push(row.line());
        }
    }

    /// A time in its own column, then wrapped text.
    fn timed(&mut self, at: Option<crate::time::Time>, head: &str, text: &str, style: Style) {
        let t = self.ui.theme;
        let indent = LABEL + 2 + 9 + if head.is_empty() { 0 } else { text::width(head) + 1 };
        let width = self.width.saturating_sub(indent + 1).max(8);
        for (i, line) in text::wrap(&text::visible(text), width, PART).into_iter().enumerate() {
            let mut row = self.start();
            row.cell(&at.filter(|_| i == 0).map(|t| t.clock()).unwrap_or_default(), 8, t.dim);
            row.gap(1);
            if !head.is_empty() {
                row.cell(if i == 0 { head } else { "" }, text::width(head), t.dim);
                row.gap(1);
            }
            row.put(&line, style);
            self.lines.push(row.line());
        }
    }

    /// What of `all` is not shown.
    fn rest(&mut self, all: usize, shown: usize, what: &str) {
        if all > shown {
            let more = all - shown;
            let s = if more == 1 { "" } else { "s" };
            self.text(&format!("… and {more} more {what}{s}"), self.ui.theme.dim);
        }
    }

    /// JSON or other long text, its beginning.
    fn long(&mut self, raw: &str, style: impl Into<Style>) {
        let style = style.into();
        let head: String = raw.chars().take(TEXT).collect();
        let more = raw.len() - head.len();
        let head = text::visible_json(&head);
        for line in head.split('\n').take(PART) {
            self.text(line, style);
        }
        self.rest(head.split('\n').count(), PART, "line");
        if more > 0 {
            self.text(&format!("… {more} more bytes"), self.ui.theme.dim);
        }
    }
}

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let app = ui.app;
    let Some(id) = app.requests.selected.as_deref() else {
        let body = ui.title(Pane::Detail, "", area, frame);
        return ui.empty(
            &[
                "Nothing is selected.",
                "Select a request to see its row, its calls, and what to do next.",
            ],
            body,
            frame,
        );
    };
    let body = ui.title(Pane::Detail, text::named(id), area, frame);
    let full = app.detail.as_deref().filter(|d| d.line.id() == id);
    // Of several rows with the id the one that is selected; what was read is another's then.
    let other = app
        .requests
        .line()
        .filter(|l| l.row.same.is_some() && full.is_some_and(|d| d.line.row.rowid != l.row.rowid));
    let full = full.filter(|_| other.is_none());
    let Some(line) = other.or(full.map(|d| &d.line)).or(app.requests.line()) else {
        let says: &[&str] = if app.detail_gone {
            &[
                "This request has no row any more and no call of it is known here.",
                "A row goes when the work raised an error (released), or when the ledger is swept.",
            ]
        } else {
            &["Reading…"]
        };
        return ui.empty(says, body, frame);
    };
    let mut page = Page { ui, width: usize::from(body.width), lines: Vec::new(), label: "" };
    conclusion(&mut page, line);
    life(&mut page, line, full);
    record(&mut page, line, full);
    server(&mut page, full);
    let lines = page.lines;
    let height = usize::from(body.height);
    ui.seen.detail_most = lines.len().saturating_sub(height);
    let first = app.detail_scroll.min(ui.seen.detail_most);
    let more = lines.len().saturating_sub(first + height);
    for (line, y) in lines.into_iter().skip(first).zip(body.top()..body.bottom()) {
        cells::line(line, Rect { y, height: 1, ..body }, frame);
    }
    if more > 0 {
        let text = format!(" {more} more ↓ ");
        let width = (text::width(&text) as u16).min(area.width);
        let place = Rect { x: area.right() - width, width, height: 1, ..area };
        cells::line(ratatui::text::Line::styled(text, ui.theme.dim), place, frame);
    }
}

/// State, verdicts, why, the next step.
fn conclusion(page: &mut Page, line: &Line) {
    let t = page.ui.theme;
    let j = &line.judged;
    let (glyph, state) = match j.state {
        // Nothing is said of a row that nobody can see.
        State::NoRow if is_blind(line) => ("?", "not known: the ledger can't be read now"),
        State::NoRow => (glyph(&j.state), "no row"),
        _ => (glyph(&j.state), j.state.word()),
    };
    page.part("state");
    let mut row = page.start();
    row.put(&format!("{glyph} {state}"), t.state(&j.state).patch(t.strong.style()));
    if !line.label.is_empty() {
        row.gap(2);
        row.put(&line.label, t.text);
    }
    page.lines.push(row.line());
    page.part("verdict");
    let mut row = page.start();
    for (i, v) in line.finding.verdicts.iter().enumerate() {
        row.put(if i > 0 { ", " } else { "" }, t.dim);
        row.put(v.words(), t.verdict(v));
    }
    page.lines.push(row.line());
    page.part("next");
    let step = page.ui.app.next_step().map(|a| format!("[{}] ", page.ui.app.keymap.key_of(a)));
    let next = next_step(&line.finding.next, page.ui.app.now);
    page.text(&format!("{}{next}", step.unwrap_or_default()), t.strong);
    page.part("why");
    if !j.why.is_empty() {
        page.text(&with_strength(&j.why, j.strength), t.text);
    }
    if let Some(skew) = j.skew_s {
        page.text(
            &format!("claimed {} in the future: clock skew", crate::time::span(skew)),
            t.warn,
        );
    }
    page.part("evidence");
    for e in line.finding.evidence.iter().take(PART) {
        let said = e.strength.map_or_else(|| e.text.clone(), |s| with_strength(&e.text, s));
        let head = text::pad(e.source, 7);
        page.timed(e.at, &head, &said, t.text.style());
    }
    page.rest(line.finding.evidence.len(), PART, "sentence");
}

/// Nobody could look for its row: nothing is said of one.
fn is_blind(line: &Line) -> bool {
    line.judged.state == State::NoRow && line.judged.why.starts_with(UNREADABLE)
}

/// A reason with how strong it is, unless it says so itself or is the ledger's own word.
fn with_strength(why: &str, s: Strength) -> String {
    if s == Strength::Stored {
        return why.to_owned();
    }
    let word = s.word().replace('_', " ");
    if why.contains(&word) { why.to_owned() } else { format!("{why} ({word})") }
}

/// The row, the hash, the effects, the result.
fn record(page: &mut Page, line: &Line, full: Option<&Detail>) {
    let t = page.ui.theme;
    let r = &line.row;
    page.part("row");
    if !page.ui.app.start.ledger {
        return page.text("no ledger is attached", t.dim);
    }
    if line.judged.state == State::NoRow {
        page.text(if is_blind(line) { "can't be read now" } else { "none" }, t.dim);
    } else {
        let owner = r.owner.as_deref().map(|o| format!(", owner {o}")).unwrap_or_default();
        page.text(&format!("status {}{owner}", r.status), t.text);
        if let Some(at) = r.claimed_at {
            let ago = age(at, page.ui.app.now, line.judged.state != State::Running);
            page.text(&format!("claimed {} ({ago} ago)", at.rfc3339()), t.text);
        }
    }
    page.part("hash");
    let stored = r.args_hash.as_deref().unwrap_or("none stored");
    match full.map(|d| (d.hash, d.hash_why.as_str())) {
        Some((check, why)) => {
            let (words, tint) = hash_words(check, why);
            let style = match tint {
                Tint::Good => t.ok,
                Tint::Bad => t.error,
                Tint::Open => t.dim,
            };
            page.text(&words, style);
            page.text(stored, t.dim);
        }
        None => page.text(stored, t.dim),
    }
    page.part("effects");
    match line.effects {
        _ if !r.effects.is_empty() => {}
        Some(0) => page.text("none", t.dim),
        Some(n) => page.text(&format!("{n}, without a row of the request"), t.warn),
        None if is_blind(line) => page.text("can't be read now", t.dim),
        None => page.text("not known: this ledger doesn't show them", t.dim),
    }
    for e in r.effects.iter().take(PART) {
        page.text(&format!("{}  {}", e.key, e.label), t.text);
        for (name, value) in e.columns.iter().take(COLUMNS) {
            page.text(&format!("  {name} {}", text::visible_json(value)), t.dim);
        }
        page.rest(e.columns.len(), COLUMNS, "column");
    }
    page.rest(r.effects.len(), PART, "effect");
    page.part("result");
    match &r.result {
        Some(result) => page.long(result, t.text),
        None => page.text("none stored", t.dim),
    }
}

pub enum Tint {
    Good,
    Bad,
    Open,
}

/// The hash check in words.
pub fn hash_words(check: HashCheck, why: &str) -> (String, Tint) {
    match check {
        HashCheck::NotChecked => (format!("not checked: {why}"), Tint::Open),
        HashCheck::Equal => (why.to_owned(), Tint::Good),
        HashCheck::DiffersProven | HashCheck::DiffersUnproven => (why.to_owned(), Tint::Bad),
    }
}

/// One moment of the request's life.
struct Moment {
    at: Time,
    witness: &'static str,
    text: String,
    style: Style,
}

/// The request's life over the generations, oldest first: claims, calls and answers, ends of the server.
fn life(page: &mut Page, line: &Line, full: Option<&Detail>) {
    let t = page.ui.theme;
    let app = page.ui.app;
    let mut life: Vec<Moment> = Vec::new();
    let moment = |at, witness, text: String, style: Style| Moment { at, witness, text, style };
    for (at, what) in full.iter().flat_map(|d| &d.history) {
        life.push(moment(*at, "ledger", what.clone(), t.text.style()));
    }
    let known = full.is_some_and(|d| !d.history.is_empty());
    if let Some(at) = line.row.claimed_at.filter(|_| !known) {
        let owner = line.row.owner.as_deref().unwrap_or("an owner that isn't named");
        life.push(moment(at, "ledger", format!("claimed by {owner}"), t.text.style()));
    }
    let wire = app.wire.as_deref();
    let mut seen = false;
    for c in wire.iter().flat_map(|w| w.calls_of(line.id())).take(PART) {
        seen = true;
        life.push(moment(
            c.sent_at,
            "wire",
            format!("{} sent on {}", c.tool, generation_name(c.generation)),
            t.text.style(),
        ));
        let head = format!("{} {}", calls::glyph(c.outcome), calls::word(c));
        match c.settled_at {
            Some(at) => {
                let said = if c.why.is_empty() { &c.answer } else { &c.why };
                let said = c.says.as_ref().map_or_else(|| said.clone(), |s| format!("says {s}"));
                life.push(moment(
                    at,
                    "wire",
                    format!("{head}: {} · {said}", c.tool),
                    calls::style(t, c),
                ));
            }
            None => {
                let waits = c.waiting(app.now);
                life.push(moment(
                    app.now,
                    "wire",
                    format!("{head}: {} · {waits}", c.tool),
                    calls::style(t, c),
                ));
            }
        }
    }
    // Ends and starts of the server are of interest once the request was there.
    let born = life.iter().map(|m| m.at).min();
    for g in wire.iter().flat_map(|w| &w.generations) {
        let of_it = |at: Time| born.is_some_and(|b| at >= b);
        if of_it(g.opened_at) {
            let pid = g.pid.map(|p| format!(", pid {p}")).unwrap_or_default();
            life.push(moment(
                g.opened_at,
                "wire",
                format!("{} began{pid}", generation_name(g.n)),
                t.dim.style(),
            ));
        }
        if let Some(e) = g.ended.filter(|e| of_it(e.at)) {
            life.push(moment(
                e.at,
                "exit",
                format!(
                    "{} ended: {}, {}",
                    generation_name(g.n),
                    e.how(),
                    g.death.as_deref().unwrap_or(IDLE)
                ),
                t.error.style(),
            ));
        }
    }
    life.sort_by_key(|m| m.at);
    page.part("life");
    let more = life.len().saturating_sub(PART);
    if more > 0 {
        page.text(&format!("… {more} earlier moments"), t.dim);
    }
    let mut last: Option<Time> = None;
    for m in life.iter().skip(more) {
        let gap = last.map(|l| l.age_at(m.at)).filter(|s| *s >= 1.0);
        let gap = gap.map(|s| format!("  +{}", crate::time::span(s))).unwrap_or_default();
        page.timed(Some(m.at), &text::pad(m.witness, 7), &format!("{}{gap}", m.text), m.style);
        last = Some(m.at);
    }
    if !seen {
        page.text("no call of it seen from here", t.dim);
    }
    let j = &line.judged;
    if j.state != State::NoRow && j.strength != Strength::Stored {
        let now = format!("now {}: {}", j.state.word(), with_strength(&j.why, j.strength));
        page.timed(Some(app.now), &text::pad("judged", 7), &now, t.state(&j.state));
    }
}

/// The server's own word.
fn server(page: &mut Page, full: Option<&Detail>) {
    let (t, app) = (page.ui.theme, page.ui.app);
    let Some(d) = full else { return };
    page.part("server");
    match &d.looked_up {
        Some(l) => {
            let agrees = l.agrees.words();
            let (says, style) = match l.agrees {
                Agrees::Outdated => ("said", t.dim.style()),
                _ => ("says", t.text.style()),
            };
            page.timed(Some(l.at), "", &format!("{says} {}{agrees}", l.status), style);
            page.long(&l.answer, t.dim);
        }
        None => {
            let key = app.keymap.key_of(Action::Find);
            page.text(&format!("not looked up yet ({key})"), t.dim);
        }
    }
}
