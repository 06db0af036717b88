//! The findings over the whole screen: who makes and who uses state, then one line a finding, and under the list the
//! selected one in full. Costs the lines that are seen.

use super::boxes;
use super::boxes::Body;
use super::cells::{self, Cells};
use super::{Ui, keep_in_sight};
use crate::audit::{Finding, Severity};
use crate::keys::action::Action;
use crate::tui::app::Hit;
use crate::tui::findings::Audited;
use crate::tui::theme::{Look, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Clear, Widget};

/// Lines that the selected finding may take.
const FULL: u16 = 7;

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    Clear.render(area, frame.buffer_mut());
    frame.buffer_mut().set_style(area, ui.theme.text.style());
    ui.seen.hits.retain(|(_, hit)| matches!(hit, Hit::Key(_)));
    let Some(news) = ui.app.findings.news.clone() else {
        let body = boxes::title(ui, "findings", "reading…", true, area, frame);
        return ui.empty(&["Auditing the recording…"], body, frame);
    };
    let body = boxes::title(ui, "findings", &note(&news), true, area, frame);
    let body = head(ui, &news, body, frame);
    if news.findings.is_empty() {
        let says: &[&str] = match news.calls {
            0 => &["No call so far.", "Findings appear as calls are made."],
            _ => &[
                "Nothing found.",
                "Every handle that was used came from a call of this recording, as far as that can be told.",
            ],
        };
        return ui.empty(says, body, frame);
    }
    let full = FULL.min(body.height / 2);
    let list = Rect { height: body.height - full, ..body };
    rows(ui, &news, list, frame);
    let below = Rect { y: list.bottom(), height: full, ..body };
    selected(ui, below, frame);
}

fn note(n: &Audited) -> String {
    let mut parts = vec![match n.total {
        1 => "1".to_owned(),
        t => t.to_string(),
    }];
    parts.push(match &n.contracts {
        Some(path) => format!("by {path}"),
        None => "handles inferred".into(),
    });
    if n.reading {
        parts.push("reading…".into());
    }
    parts.join(" · ")
}

/// Who makes and who uses state, and what there is to say.
fn head(ui: &Ui, n: &Audited, area: Rect, frame: &mut Frame) -> Rect {
    let t = ui.theme;
    let trouble = n.trouble.as_deref().unwrap_or_default();
    let lines =
        [("makes ", &*n.makes, t.text), ("uses  ", &*n.uses, t.text), ("", trouble, t.error)];
    let mut y = area.y;
    for (name, value, style) in lines {
        if value.is_empty() || y + 2 >= area.bottom() {
            continue;
        }
        let mut row = Cells::new(usize::from(area.width));
        row.gap(1);
        row.put(name, t.dim);
        row.put(value, style);
        cells::line(row.line(), Rect { y, height: 1, ..area }, frame);
        y += 1;
    }
    Rect { y, height: area.bottom().saturating_sub(y), ..area }
}

/// The sign and the look of a severity.
pub fn sign(theme: &Theme, s: Severity) -> (&'static str, Look) {
    match s {
        Severity::Error => ("▲", theme.error),
        Severity::Warning => ("△", theme.warn),
        Severity::Note => ("·", theme.info),
    }
}

fn place(f: &Finding) -> String {
    match f.call {
        Some(n) => format!("call {n}"),
        None => format!("line {}", f.line),
    }
}

fn rows(ui: &mut Ui, n: &Audited, area: Rect, frame: &mut Frame) {
    let at = ui.app.findings.at;
    let page = usize::from(area.height).max(1);
    keep_in_sight(&mut ui.seen.findings_at, Some(at), n.findings.len(), page);
    let first = ui.seen.findings_at;
    let shown = n.findings.iter().enumerate().skip(first);
    for ((i, f), y) in shown.zip(area.top()..area.bottom()) {
        let t = ui.theme;
        let (glyph, look) = sign(t, f.severity);
        let mut row = Cells::new(usize::from(area.width));
        row.put(if i == at { "▸" } else { " " }, t.key);
        row.put(glyph, look);
        row.gap(1);
        row.cell(&f.kind.word().replace('_', " "), 22, look);
        row.gap(1);
        row.cell(&place(f), 10, t.dim);
        row.gap(1);
        row.put(&f.message, t.text);
        let line = if i == at { row.selected(t.selection) } else { row.line() };
        let area = Rect { y, height: 1, ..area };
        cells::line(line, area, frame);
        ui.seen.hits.push((area, Hit::Line(i)));
    }
}

fn selected(ui: &Ui, area: Rect, frame: &mut Frame) {
    let (t, Some(f)) = (ui.theme, ui.app.findings.selected()) else { return };
    let mut body = Body::new(usize::from(area.width.saturating_sub(2)));
    body.blank();
    let sure = if f.inferred { ", inferred from what looks like a handle" } else { "" };
    let life = if f.generation > 0 { format!(", life {}", f.generation) } else { String::new() };
    body.text(&format!("{} · {}{life}{sure}", f.kind.word().replace('_', " "), place(f)), t.strong);
    body.text(&f.message, t.text);
    if !f.calls.is_empty() {
        let calls: Vec<String> = f.calls.iter().map(u64::to_string).collect();
        body.text(&format!("see also call {}", calls.join(", ")), t.dim);
    }
    if f.seq > 0 {
        let key = ui.app.keymap.key_of(Action::Details);
        body.text(&format!("{key} goes to its frame in the time line"), t.dim);
    }
    for (mut line, y) in body.lines.into_iter().zip(area.top()..area.bottom()) {
        line.spans.insert(0, " ".into());
        cells::line(line, Rect { y, height: 1, ..area }, frame);
    }
}
