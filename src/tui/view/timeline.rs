//! The time line over the whole screen: a list of frames and events, and under it the selected one's text, pretty,
//! raw or in hex. Costs the rows that are seen.

use super::boxes;
use super::cells::{self, Cells};
use super::over::put_json;
use super::{Ui, keep_in_sight};
use crate::keys::action::{Action, Context};
use crate::recording::rows::Row;
use crate::text;
use crate::time::span;
use crate::tui::app::Hit;
use crate::tui::theme::Theme;
use crate::tui::timeline::{Form, HEX, Timeline, Which, Window};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    // It lies over the panes and is clicked instead of them; the footer stays.
    Clear.render(area, frame.buffer_mut());
    frame.buffer_mut().set_style(area, ui.theme.text.style());
    ui.seen.hits.retain(|(_, hit)| matches!(hit, Hit::Key(_)));
    let t = &ui.app.timeline;
    let Some(window) = t.window.as_deref() else {
        let body = boxes::title(ui, "time line", "reading…", true, area, frame);
        return ui.empty(&["Reading the events…"], body, frame);
    };
    let filtered = t.typing || !t.filter.is_empty();
    let head = 1 + u16::from(filtered) + u16::from(t.mistake.is_some());
    let text = match t.zoom {
        true => area.height.saturating_sub(head + 2),
        false => (area.height * 2 / 5).max(4),
    };
    let list = Rect { height: area.height - text, ..area };
    let body = boxes::title(
        ui,
        &name(window),
        &note(t, window, ui.app.findings.total()),
        !t.reading,
        list,
        frame,
    );
    let body = if filtered { filter(ui, t, body, frame) } else { body };
    rows(ui, t, window, body, frame);
    let below = Rect { y: list.bottom(), height: text, ..area };
    shown(ui, t, window, below, frame);
}

fn name(w: &Window) -> String {
    match w.which {
        Which::Recording => {
            let file = w.name.rsplit('/').next().unwrap_or(&w.name);
            let written = if w.written { ", being written" } else { "" };
            format!("time line of {file}{written}")
        }
        Which::Live => "time line of this session".into(),
    }
}

fn note(t: &Timeline, w: &Window, found: u64) -> String {
    let mut parts = vec![format!("{} of {}", w.total, w.of)];
    parts.extend(w.percent.map(|p| format!("{p}% read")));
    if w.damaged > 0 {
        let s = if w.damaged == 1 { "line" } else { "lines" };
        parts.push(format!("{} damaged {s}", w.damaged));
    }
    if t.paused {
        parts.push("paused (p)".into());
    } else if t.follow {
        parts.push("follows".into());
    }
    if found > 0 && t.which == Which::Recording {
        let s = if found == 1 { "" } else { "s" };
        parts.push(format!("{found} finding{s} (A)"));
    }
    if !t.marks().is_empty() {
        parts.push(format!("{} bookmarked", t.marks().len()));
    }
    parts.join(" · ")
}

/// The filter, its mistake marked where it is.
fn filter(ui: &Ui, t: &Timeline, area: Rect, frame: &mut Frame) -> Rect {
    let theme = ui.theme;
    let width = usize::from(area.width);
    let mut row = Cells::new(width);
    row.put(" / ", theme.key);
    let whole = t.filter.as_str();
    let wrong = t.mistake.as_ref().map_or(whole.len()..whole.len(), |m| m.at.clone());
    let (a, b) = (wrong.start.min(whole.len()), wrong.end.min(whole.len()));
    let part = |from: usize, to: usize| whole.get(from..to).unwrap_or_default();
    row.put(part(0, a), theme.input);
    row.put(part(a, b), theme.error);
    row.put(part(b, whole.len()), theme.input);
    if t.typing {
        row.put(" ", theme.cursor);
        let x = area.x + 3 + text::width(&text::visible(whole)) as u16;
        frame.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
    } else {
        row.put("  (/ changes it)", theme.dim);
    }
    cells::line(row.line(), Rect { height: 1, ..area }, frame);
    let mut used = 1;
    if let Some(m) = &t.mistake {
        let mut row = Cells::new(width);
        row.gap(3 + text::width(&text::visible(part(0, a))));
        row.put(&"^".repeat(text::width(&text::visible(part(a, b))).max(1)), theme.error);
        row.gap(1);
        row.put(&m.why, theme.error);
        cells::line(row.line(), Rect { y: area.y + 1, height: 1, ..area }, frame);
        used = 2;
    }
    Rect { y: area.y + used, height: area.height.saturating_sub(used), ..area }
}

fn rows(ui: &mut Ui, t: &Timeline, w: &Window, area: Rect, frame: &mut Frame) {
    if w.rows.is_empty() {
        let esc = ui.app.keymap.word(Context::Filter, Action::Back);
        let clears = format!("{esc} while typing it clears it.");
        let says: &[&str] = match (w.of, t.filter.is_empty()) {
            (0, _) => &["No events so far; what happens appears here."],
            (_, false) => &["Nothing matches the filter.", &clears],
            _ => &["Reading the events…"],
        };
        return ui.empty(says, area, frame);
    }
    let page = usize::from(area.height).max(1);
    let at = w.rows.iter().position(|(p, _)| Some(*p) == w.selected).map(|i| i + w.first);
    keep_in_sight(&mut ui.seen.timeline_at, at, w.total, page);
    let skip = ui.seen.timeline_at.saturating_sub(w.first);
    let columns = Columns::of(usize::from(area.width));
    for ((place, row), y) in w.rows.iter().skip(skip).zip(area.top()..area.bottom()) {
        let area = Rect { y, height: 1, ..area };
        let selected = Some(*place) == w.selected;
        let line = line(ui, &columns, row, t.marks().contains(place), selected, t);
        cells::line(line, area, frame);
        ui.seen.hits.push((area, Hit::Line(*place)));
    }
}

/// Widths at one width of the screen.
struct Columns {
    width: usize,
    name: usize,
    id: usize,
    outcome: usize,
}

impl Columns {
    fn of(width: usize) -> Columns {
        let (name, id, outcome) = match width {
            0..100 => (15, 11, 12),
            100..160 => (22, 16, 13),
            _ => (28, 24, 13),
        };
        Columns { width, name, id, outcome }
    }
}

fn line(
    ui: &Ui,
    c: &Columns,
    r: &Row,
    marked: bool,
    selected: bool,
    t: &Timeline,
) -> Line<'static> {
    let theme = ui.theme;
    let mut row = Cells::new(c.width);
    row.put(if selected { "▸" } else { " " }, theme.key);
    let found = (t.which == Which::Recording).then(|| ui.app.findings.mark(r.seq)).flatten();
    match (marked, found) {
        (true, _) => row.put("◆", theme.warn),
        (false, Some(severity)) => {
            let (glyph, look) = super::findings::sign(theme, severity);
            row.put(glyph, look);
        }
        (false, None) => row.put(" ", theme.text),
    }
    row.put(&clock(r), theme.dim);
    row.gap(1);
    row.cell(&format!("g{}", r.generation), 3, theme.dim);
    row.gap(1);
    let arrow = match r.dir {
        "out" => "→",
        "in" => "←",
        "err" => "!",
        _ => "·",
    };
    row.put(arrow, theme.dim);
    row.gap(1);
    let name = r.tool.as_deref().or(r.method.as_deref());
    let is_frame = crate::record::summary::Rpc::from_word(r.kind).is_some();
    if is_frame {
        row.cell(name.unwrap_or(r.kind), c.name, theme.strong);
        row.gap(1);
        row.cell(r.request_id.as_deref().unwrap_or(""), c.id, theme.text);
        row.gap(1);
        row.cell(&outcome(r), c.outcome, outcome_style(theme, r.outcome));
        row.gap(1);
        row.right(&ms(r.ms), 7, theme.dim);
        row.gap(1);
        row.right(&size(r.bytes), 6, theme.dim);
        row.gap(1);
        row.put(&r.text, theme.dim);
    } else {
        let style = kind_style(theme, r);
        row.cell(&r.kind.replace('_', " "), 8, style);
        row.gap(1);
        row.put(&r.text, style);
    }
    match selected && !t.reading {
        true => row.selected(theme.selection),
        false => row.line(),
    }
}

/// `02:57:10.123`
fn clock(r: &Row) -> String {
    let ms = r.at.0.rem_euclid(1_000_000) / 1000;
    format!("{}.{ms:03}", r.at.clock())
}

fn outcome(r: &Row) -> String {
    let glyph = match r.outcome {
        None => return if r.kind == "notification" { "—".into() } else { String::new() },
        Some("ok") => "✓",
        Some("pending") => "…",
        Some("tool_error" | "rpc_error") => "!",
        Some("not_sent") => "∅",
        Some("refused") => "⊘",
        Some(_) => "?",
    };
    format!("{glyph} {}", r.outcome.unwrap_or_default().replace('_', " "))
}

fn outcome_style(theme: &Theme, outcome: Option<&str>) -> Style {
    match outcome {
        Some("ok") => theme.ok.style(),
        Some("pending") => theme.info.style(),
        Some("unknown") => theme.warn.style(),
        Some("tool_error" | "rpc_error") => theme.error.style(),
        _ => theme.dim.style(),
    }
}

fn kind_style(theme: &Theme, r: &Row) -> Style {
    match r.kind {
        "exit" if r.text.contains("exit code 0") && r.text.ends_with("while idle") => {
            theme.dim.style()
        }
        "exit" | "gap" | "not_written" => theme.error.style(),
        "stderr" | "noise" => theme.warn.style(),
        "opened" => theme.strong.style(),
        _ => theme.dim.style(),
    }
}

fn ms(ms: Option<f64>) -> String {
    match ms {
        None => String::new(),
        Some(ms) if ms < 10.0 => format!("{ms:.1}ms"),
        Some(ms) if ms < 1000.0 => format!("{ms:.0}ms"),
        Some(ms) => span(ms / 1000.0),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes}B"),
        10_000..10_000_000 => format!("{}kB", bytes / 1000),
        _ => format!("{}MB", bytes / 1_000_000),
    }
}

/// The selected event's text.
fn shown(ui: &mut Ui, t: &Timeline, w: &Window, area: Rect, frame: &mut Frame) {
    let (Some(text), Some(row)) = (&w.text, t.row()) else {
        boxes::title(ui, "no event", "", false, area, frame);
        return;
    };
    let form = match (t.form, &t.view) {
        (Form::Pretty, Some(v)) if !v.document.is_json => "text",
        (form, _) => form.word(),
    };
    let cut = if text.cut > 0 { format!(" · {} more bytes", text.cut) } else { String::new() };
    let name = format!("event {} · {}", row.seq, row.kind.replace('_', " "));
    let note = format!("{} · generation {} · {form} (x){cut}", row.at.rfc3339(), row.generation);
    let body = boxes::title(ui, &name, &note, t.reading, area, frame);
    let page = usize::from(body.height).max(1);
    if t.form == Form::Hex {
        let lines = t.text_len();
        keep_in_sight(&mut ui.seen.text_at, Some(t.hex_at), lines, page);
        for (i, y) in (ui.seen.text_at..lines).zip(body.top()..body.bottom()) {
            let bytes = text.bytes.get(i * HEX..).unwrap_or_default();
            let mut row = Cells::new(usize::from(body.width));
            row.gap(1);
            row.put(&hex(i * HEX, bytes.get(..HEX).unwrap_or(bytes)), ui.theme.text);
            let line = match t.reading && i == t.hex_at {
                true => row.selected(ui.theme.selection),
                false => row.line(),
            };
            cells::line(line, Rect { y, height: 1, ..body }, frame);
        }
        return;
    }
    let Some(view) = &t.view else { return };
    keep_in_sight(&mut ui.seen.text_at, Some(view.at), view.len(), page);
    for (i, y) in (ui.seen.text_at..view.len()).zip(body.top()..body.bottom()) {
        let Some(shown) = view.line(i) else { break };
        let mut row = Cells::new(usize::from(body.width));
        row.gap(1 + shown.depth.min(20) * 2);
        put_json(&mut row, &shown, ui, false);
        if shown.hidden > 0 {
            row.put(&format!(" … {} lines", shown.hidden), ui.theme.dim);
        }
        if shown.left_out > 0 {
            row.put(&format!(" … {} more bytes", shown.left_out), ui.theme.dim);
        }
        let line = match t.reading && i == view.at {
            true => row.selected(ui.theme.selection),
            false => row.line(),
        };
        cells::line(line, Rect { y, height: 1, ..body }, frame);
    }
}

/// `00000010  7b 22 6a 73 6f 6e 72 70  63 22 3a 22 32 2e 30 22  {"jsonrpc":"2.0"`
fn hex(at: usize, bytes: &[u8]) -> String {
    let mut out = format!("{at:08x} ");
    for i in 0..HEX {
        if i % 8 == 0 {
            out.push(' ');
        }
        match bytes.get(i) {
            Some(b) => out += &format!("{b:02x} "),
            None => out += "   ",
        }
    }
    out.push(' ');
    let plain = |b: &u8| if b.is_ascii_graphic() || *b == b' ' { char::from(*b) } else { '.' };
    out.extend(bytes.iter().map(plain));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_hex_has_every_byte_and_hides_none() {
        assert_eq!(
            hex(16, b"{\"a\":\x1b\xe9\x9a\x9c}"),
            "00000010  7b 22 61 22 3a 1b e9 9a  9c 7d                    {\"a\":....}"
        );
        assert_eq!(
            (size(9_999), size(10_000), ms(Some(1.25))),
            ("9999B".into(), "10kB".into(), "1.2ms".into())
        );
    }
}
