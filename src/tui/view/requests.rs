//! The request rows: state, request_id, what it is about, age, effects, verdict.

use super::cells::{self, Cells};
use super::{Ui, keep_in_sight};
use crate::judge::{State, Verdict};
use crate::keys::action::{Action, Context};
use crate::text;
use crate::tui::app::{App, Hit, Overlay, Pane};
use crate::tui::data::Line;
use crate::tui::list::Sort;
use crate::words::glyph;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Column widths at one screen width.
struct Columns {
    gap: usize,
    state: usize,
    id: usize,
    about: usize,
    age: usize,
    effects: usize,
    verdict: usize,
}

impl Columns {
    fn of(width: usize, widest_id: usize) -> Columns {
        let wide = width >= 72;
        let gap = if wide { 2 } else { 1 };
        let (state, age, verdict) = (11, 6, if width >= 100 { 24 } else { 17 });
        let effects = if wide { 7 } else { 1 };
        let fixed = 1 + state + age + effects + verdict + 5 * gap;
        let free = width.saturating_sub(fixed);
        // The id first, but what it is about keeps a share.
        let id = widest_id.max(10).min(free.saturating_sub(free / 3).max(8));
        // Columns that are far apart are hard to read across: the rest of a wide screen stays empty.
        let about = free.saturating_sub(id).min(44);
        Columns { gap, state, id, about, age, effects, verdict }
    }
}

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let app = ui.app;
    let list = &app.requests;
    let mut note = match list.matches {
        _ if list.is_searching() => "searching…".into(),
        Some((found, all)) if !list.filter.is_empty() => format!("{found} of {all}"),
        _ => String::new(),
    };
    if matches!(app.overlay, Some(Overlay::Filter)) {
        note = format!("{note}  filter: {}▏", list.filter).trim_start().to_owned();
    } else if !list.filter.is_empty() && list.mistake.is_some() {
        note = format!(
            "{note}  not applied, it has a mistake: {}; in force: {}",
            list.filter, list.good
        )
        .trim_start()
        .to_owned();
    } else if !list.filter.is_empty() {
        let esc = app.keymap.key_of(Action::Back);
        note = format!("{note}  filter: {} ({esc} clears it)", list.filter).trim_start().to_owned();
    }
    let (sort, turned) = list.sorted();
    if (sort, turned) != (Sort::Newest, false) {
        let (newer, older) = list.more();
        let some = if newer || older {
            format!(", only the {} rows at hand", list.len())
        } else {
            String::new()
        };
        note = format!("{note}  by {}{}{some}", sort.word(), if turned { " ↑" } else { " ↓" });
    }
    if list.is_paused() {
        note += if list.has_missed() { "  paused, there is more (p)" } else { "  paused (p)" };
    }
    let body = ui.title(Pane::Requests, note.trim_start(), area, frame);
    if list.is_empty() {
        return nothing(ui, body, frame);
    }
    let page = usize::from(body.height.saturating_sub(1)).max(1);
    let first = &mut ui.seen.requests_at;
    keep_in_sight(first, list.position(), list.len(), page);
    let shown: Vec<&Line> = (*first..list.len()).take(page).filter_map(|i| list.get(i)).collect();
    let (top, chosen) = (*first, list.position());
    let widest = shown
        .iter()
        .map(|l| text::width(&text::visible(text::head(&l.name(), 99))))
        .max()
        .unwrap_or(0);
    let columns = Columns::of(usize::from(area.width), widest);
    let at = |i: usize| Rect { y: body.y + i as u16, height: 1, ..body };
    heads(ui, &columns, at(0), frame);
    for (i, line) in shown.iter().enumerate().take(usize::from(body.height.saturating_sub(1))) {
        let selected = chosen == Some(top + i);
        row(ui, &columns, line, selected, at(i + 1), frame);
        ui.seen.hits.push((at(i + 1), Hit::Request(line.id().to_owned(), top + i)));
    }
    remarks(ui, Rect { y: body.y + 1 + shown.len() as u16, ..body }, body.bottom(), frame);
}

fn heads(ui: &Ui, c: &Columns, area: Rect, frame: &mut Frame) {
    let dim = ui.theme.dim;
    let mut row = Cells::new(usize::from(area.width));
    row.gap(1);
    for (name, width) in [("state", c.state), ("request_id", c.id), ("about", c.about)] {
        row.cell(name, width, dim);
        row.gap(c.gap);
    }
    row.right("age", c.age, dim);
    row.gap(c.gap);
    row.right(if c.effects > 1 { "effects" } else { "#" }, c.effects, dim);
    row.gap(c.gap);
    row.cell("verdict", c.verdict, dim);
    cells::line(row.line(), area, frame);
}

fn row(ui: &Ui, c: &Columns, line: &Line, selected: bool, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let state = &line.judged.state;
    let mut row = Cells::new(usize::from(area.width));
    row.put(if selected { "▸" } else { " " }, t.text);
    let word = if *state == State::NoRow { "no row" } else { state.word() };
    row.cell(&format!("{} {word}", glyph(state)), c.state, t.state(state));
    // A row that has just changed has a mark; it goes by itself and never blinks.
    let fresh = ui.app.requests.is_fresh(line.id(), ui.app.now);
    row.put(if fresh { "•" } else { " " }, t.changed);
    row.gap(c.gap - 1);
    let finished = *state == State::Done;
    row.cell(
        &line.name(),
        c.id,
        if fresh {
            t.changed
        } else if finished {
            t.text
        } else {
            t.strong
        },
    );
    row.gap(c.gap);
    row.cell(&line.label, c.about, t.text);
    row.gap(c.gap);
    let age = line.row.claimed_at.map(|at| cells::age(at, ui.app.now, *state != State::Running));
    row.right(&age.unwrap_or_default(), c.age, t.dim);
    row.gap(c.gap);
    let many: Style = if line.effects > Some(1) { t.error.style() } else { t.text.style() };
    let effects = line.effects.map_or_else(|| "–".to_owned(), |n| n.to_string());
    row.right(&effects, c.effects, many);
    row.gap(c.gap);
    if let Some(worst) = line.finding.verdicts.first() {
        let more = line.finding.verdicts[1..].iter().filter(|v| **v != Verdict::Finished).count();
        let words = match more {
            0 => worst.words().to_owned(),
            n => format!("{} +{n}", worst.words()),
        };
        row.cell(&words, c.verdict, t.verdict(worst));
    }
    let drawn = match (selected, ui.has_focus(Pane::Requests)) {
        (true, true) => row.selected(t.selection),
        (true, false) => {
            let mut line = row.line();
            let idle = t.selection_idle.style();
            line.spans.iter_mut().for_each(|s| s.style = s.style.patch(idle));
            line
        }
        (false, _) => row.line(),
    };
    cells::line(drawn, area, frame);
}

/// Below the rows, where there is room: how many more there are, and remarks on the file.
fn remarks(ui: &Ui, area: Rect, bottom: u16, frame: &mut Frame) {
    let Some(counts) = &ui.app.counts else { return };
    // A line is left free above them.
    let t = ui.theme;
    let warnings = counts.warnings.iter().map(|w| ("warning", w, t.warn));
    let notes = counts.remarks.iter().map(|r| ("note", r, t.dim));
    for (y, (kind, remark, style)) in (area.y + 1..bottom).zip(warnings.chain(notes)) {
        let mut row = Cells::new(usize::from(area.width));
        row.put(&format!(" {kind}: {remark}"), style);
        cells::line(row.line(), Rect { y, height: 1, ..area }, frame);
    }
}

const ATTACH: &str =
    "Attach the server's ledger with --ledger FILE to see every request and what became of it.";

/// That there are calls and no requests; empty when there is no call, or a call of a request.
fn nameless(app: &App) -> String {
    let Some(wire) = app.wire.as_deref() else { return String::new() };
    let calls = match wire.calls_total {
        0 => return String::new(),
        _ if wire.calls.iter().any(|c| c.request_id.is_some()) => return String::new(),
        1 => "The one call here carries no request_id and stands".to_owned(),
        n => format!("The {n} calls here carry no request_id and stand"),
    };
    format!("No ledger is attached, so requests are known from calls alone. {calls} in calls.")
}

fn nothing(ui: &Ui, area: Rect, frame: &mut Frame) {
    let app = ui.app;
    let trouble = app.counts.as_ref().and_then(|c| Some((c.trouble.as_ref()?, &c.warnings)));
    if let Some((why, hints)) = trouble.filter(|_| !app.requests.loaded) {
        let mut says = vec!["The ledger can't be read:", why];
        says.extend(hints.iter().map(String::as_str));
        return ui.empty(&says, area, frame);
    }
    let (nameless, clears) = (nameless(app), clears(app) + ".");
    let says: &[&str] = match () {
        () if app.requests.mistake.is_some() && app.requests.loaded => {
            &["The filter has a mistake; what it was before matches nothing.", &clears]
        }
        () if !app.requests.filter.is_empty() && app.requests.loaded => {
            &["Nothing matches the filter.", &clears]
        }
        () if app.start.ledger && !app.requests.loaded => &["Reading the ledger…"],
        () if app.start.ledger => {
            &["The ledger has no requests yet.", "A row appears as soon as a server claims one."]
        }
        () if !nameless.is_empty() => &[&nameless, ATTACH],
        () => &[
            "No ledger is attached: requests are known from this endpoint's calls alone, and there are none.",
            ATTACH,
            "o goes to a request_id that you type: there f looks it up and r sends it, behind the gate.",
        ],
    };
    ui.empty(says, area, frame);
}

/// The key that clears the filter.
fn clears(app: &App) -> String {
    format!("{} clears it", app.keymap.word(Context::Main, Action::Back))
}
