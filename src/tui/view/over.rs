//! What is chosen from, typed into or walked through, over the screen: lists, JSON texts, the server's question.

use super::Ui;
use super::boxes::{Body, asking, draw_lines, frame_box, inner_width, pieces, reading};
use super::cells::{self, Cells};
use super::keep_in_sight;
use crate::keys::action::{Action, Context};
use crate::text;
use crate::time::span;
use crate::tui::app::Hit;
use crate::tui::form::{Field, Form, Kind};
use crate::tui::pick::Pick;
use crate::tui::tree::{Shown, View};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Cells that a level of a JSON text is moved in, and the most levels that are.
const INDENT: (usize, usize) = (2, 20);

/// A list to choose from, with what was typed above it.
pub fn pick(ui: &mut Ui, pick: &Pick, area: Rect, frame: &mut Frame) {
    let (t, app) = (ui.theme, ui.app);
    let items = pick.items(app);
    let most = usize::from(area.height).saturating_sub(5);
    let want = match pick.kind {
        crate::tui::pick::Kind::Palette => most.min(18),
        _ => items.len().clamp(3, most.max(3)),
    };
    let width = inner_width(area, 84);
    let place = frame_box(ui, pick.title(), width, want + 1, area, frame);
    let mut row = Cells::new(width);
    row.put("› ", t.key);
    let x = place.x + 2 + row.typed(&pick.query, t.input, t.cursor) as u16;
    row.put(&format!(" {}", items.len()), t.dim);
    cells::line(row.line(), Rect { height: 1, ..place }, frame);
    frame.set_cursor_position((x.min(place.right().saturating_sub(1)), place.y));
    let list = Rect { y: place.y + 1, height: place.height.saturating_sub(1), ..place };
    let mut first = 0;
    keep_in_sight(&mut first, Some(pick.at), items.len(), usize::from(list.height).max(1));
    // The list begins so that the selected line is in its middle where it can be.
    let middle = pick.at.saturating_sub(usize::from(list.height) / 2);
    first = first.max(middle.min(items.len().saturating_sub(usize::from(list.height))));
    if items.is_empty() {
        ui.empty(&["Nothing is called that."], list, frame);
    }
    for ((i, item), y) in items.iter().enumerate().skip(first).zip(list.top()..list.bottom()) {
        let place = Rect { y, height: 1, ..list };
        let mut row = Cells::new(width);
        let selected = i == pick.at;
        row.put(if selected { "▸" } else { " " }, t.text);
        let look = if item.works { t.strong } else { t.dim };
        if item.doc.is_empty() {
            row.put(&item.name, look);
        } else {
            row.cell(&item.name, 14, look);
            row.gap(1);
            row.cell(&item.key, 10, t.key);
            row.gap(1);
            row.put(&item.doc, if item.works { t.text } else { t.dim });
        }
        let line = if selected { row.selected(t.selection) } else { row.line() };
        cells::line(line, place, frame);
        ui.seen.hits.push((place, Hit::Line(i)));
    }
}

/// A request_id that is being typed.
pub fn go_to(ui: &mut Ui, id: &str, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let width = inner_width(area, 76);
    let mut row = Cells::new(width);
    row.put("request_id ", t.dim);
    let wide = row.typed(id, t.input, t.cursor);
    let mut body = Body::new(width);
    body.text("It needs no row and no call that is known here: f then looks it up at the server, r sends it behind the gate.", t.dim);
    body.lines.insert(0, row.line());
    let place = frame_box(ui, "go to", width, body.lines.len(), area, frame);
    let x = place.x + 11 + wide as u16;
    frame.set_cursor_position((x.min(place.right().saturating_sub(1)), place.y));
    draw_lines(ui, body.lines, 0, place, frame);
}

/// A JSON text on nearly the whole screen. Costs the lines that are seen, whatever the text is.
pub fn json(ui: &mut Ui, views: &[View], at: usize, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let Some(view) = views.get(at) else {
        let mut body = Body::new(inner_width(area, 60));
        body.text("Reading…", t.dim);
        return reading(ui, "JSON", body, 0, area, frame);
    };
    let width = inner_width(area, area.width);
    let tabs =
        if views.len() > 1 { format!("{} of {} · ", at + 1, views.len()) } else { String::new() };
    let title = format!("{tabs}{} · {} bytes", view.document.title, view.document.text.len());
    let place = frame_box(ui, &title, width, usize::from(area.height), area, frame);
    let body = Rect { height: place.height.saturating_sub(1), ..place };
    let page = usize::from(body.height).max(1);
    keep_in_sight(&mut ui.seen.json_at, Some(view.at), view.len(), page);
    let first = ui.seen.json_at;
    for (i, y) in (first..view.len()).zip(body.top()..body.bottom()) {
        let Some(shown) = view.line(i) else { break };
        let place = Rect { y, height: 1, ..body };
        let mut row = Cells::new(width);
        let mark = match shown.fold {
            Some(true) => "▸ ",
            Some(false) => "▾ ",
            None => "  ",
        };
        row.gap(shown.depth.min(INDENT.1) * INDENT.0);
        row.put(mark, t.dim);
        // A line that holds the hit has a look of its own, the selected one in any case.
        let query = view.query.to_lowercase();
        let hit = !query.is_empty() && shown.text.to_lowercase().contains(&query);
        put_json(&mut row, &shown, ui, hit);
        if shown.hidden > 0 {
            row.put(&format!(" … {} lines", shown.hidden), t.dim);
        }
        if shown.left_out > 0 {
            row.put(&format!(" … {} more bytes", shown.left_out), t.dim);
        }
        let line = if i == view.at { row.selected(t.selection) } else { row.line() };
        cells::line(line, place, frame);
        ui.seen.hits.push((place, Hit::Line(i)));
    }
    let mut row = Cells::new(width);
    if view.typing || !view.query.is_empty() {
        row.put("search ", t.dim);
        let look = if view.typing { t.cursor } else { t.text };
        let x = place.x + 7 + row.typed(&view.query, t.input, look) as u16;
        if view.typing {
            frame.set_cursor_position((x.min(place.right().saturating_sub(1)), body.bottom()));
        }
        row.gap(2);
    }
    let form = if view.raw { "raw" } else { "tree" };
    row.put(&format!("line {} of {} · {form}", view.at + 1, view.len()), t.dim);
    cells::line(row.line(), Rect { y: body.bottom(), height: 1, ..place }, frame);
}

/// The piece of text: a name apart from its value. Characters that hide stand in JSON's own escapes.
pub fn put_json(row: &mut Cells, shown: &Shown<'_>, ui: &Ui, hit: bool) {
    let t = ui.theme;
    let clean = text::visible_json(shown.text);
    if hit {
        return row.put(&clean, t.found);
    }
    let name = name_end(&clean);
    row.put(&clean[..name], t.info);
    row.put(&clean[name..], t.text);
}

/// Where a member's name (with its colon) ends; 0 when the line has none.
fn name_end(line: &str) -> usize {
    if !line.starts_with('"') {
        return 0;
    }
    let bytes = line.as_bytes();
    let mut i = 1;
    while let Some(b) = bytes.get(i) {
        match b {
            b'\\' => i += 2,
            b'"' => break,
            _ => i += 1,
        }
    }
    let rest = line.get(i + 1..).unwrap_or_default();
    let colon = rest.trim_start().starts_with(':');
    if colon { i + 1 + rest.len() - rest.trim_start().len() + 1 } else { 0 }
}

/// Cells before a field's value.
const LABEL: usize = 20;

/// The first of the server's open questions.
pub fn form(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let (t, app) = (ui.theme, ui.app);
    let Some(form) = app.questions.first() else { return };
    let mut body = Body::new(inner_width(area, 84));
    body.whole(0, &form.message, t.strong);
    let waited = span(form.asked_at.age_at(app.now).max(0.0));
    match &form.call {
        Some(call) => body.text(&format!("{call} waits for it since {waited}"), t.dim),
        None => body.text(&format!("asked {waited} ago"), t.dim),
    }
    match app.questions.len() - 1 {
        0 => {}
        1 => body.text("and 1 more question", t.dim),
        n => body.text(&format!("and {n} more questions"), t.dim),
    }
    body.blank();
    let mut cursor = None;
    for (i, f) in form.fields.iter().enumerate() {
        let x = field(ui, f, i == form.at, &mut body);
        let line = body.lines.len() - 1;
        if i == form.at {
            cursor = Some((x, line));
        }
        let kind = match &f.kind {
            Kind::Text => String::new(),
            Kind::Number { whole: true } => "a whole number".into(),
            Kind::Number { whole: false } => "a number".into(),
            Kind::Bool => "y or n".into(),
            Kind::Choice(of) => format!("space: {}", of.join(", ")),
            Kind::Raw => "JSON".into(),
        };
        let about: Vec<&str> =
            [f.about.as_str(), &kind].into_iter().filter(|s| !s.is_empty()).collect();
        if !about.is_empty() {
            body.whole(LABEL, &about.join(" · "), t.dim);
        }
    }
    if form.fields.is_empty() {
        let enter = ui.app.keymap.word(Context::Form, Action::Accept);
        body.text(&format!("It wants a yes or no only: {enter} says yes."), t.text);
    }
    let title = (Context::Form, "the server asks");
    let (place, first) = asking(ui, title, body, cursor.map(|c| c.1), area, frame);
    if let Some((x, line)) = cursor
        && let Some(y) = line.checked_sub(first).filter(|y| *y < usize::from(place.height))
    {
        let x = (place.x + x as u16).min(place.right().saturating_sub(1));
        frame.set_cursor_position((x, place.y + y as u16));
    }
    let told = Line::from(Span::styled(" * needed ", t.dim));
    let at = Rect { x: place.x, y: place.bottom(), width: 10.min(place.width), height: 1 };
    cells::line(told, at, frame);
}

/// A field's name and all of its value: that may be the server's. Returns the cell of the cursor on the last line.
fn field(ui: &Ui, f: &Field, here: bool, body: &mut Body) -> usize {
    let t = ui.theme;
    let mut label = format!("{}{}", f.name, if f.required { "*" } else { " " });
    if text::width(&text::visible(&label)) >= LABEL - 1 {
        body.whole(1, &std::mem::take(&mut label), t.strong);
    }
    let room = body.width.saturating_sub(LABEL + 1);
    let (values, beyond) = pieces(&f.value, room);
    body.beyond |= beyond;
    let last = values.len() - 1;
    let mut x = 0;
    for (i, value) in values.iter().enumerate() {
        let mut row = Cells::new(body.width);
        row.put(if here && i == 0 { "▸" } else { " " }, t.key);
        row.cell(if i == 0 { &label } else { "" }, LABEL - 2, t.strong);
        row.gap(1);
        row.put(value, t.input);
        if i == last {
            x = LABEL + text::width(value);
            row.put(" ", if here { t.cursor } else { t.input });
            let wrong = Form::wrong(f).map(|w| format!("  {w}")).unwrap_or_default();
            row.put(&wrong, t.warn);
        }
        body.lines.push(row.line());
    }
    x
}
