//! Calls of this endpoint: pending ones first with their age, then running rows as "pending by ledger",
//! then answered ones, newest first.

use super::cells::{self, Cells};
use super::{Ui, keep_in_sight};
use crate::journal::Outcome;
use crate::judge::State;
use crate::tui::app::{Hit, Pane};
use crate::tui::data::Line;
use crate::tui::theme::Theme;
use crate::tui::wire::{CallView, Reach};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The outcome's glyph, beside its word.
pub fn glyph(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "…",
        Some(Outcome::Ok) => "✓",
        Some(Outcome::ToolError | Outcome::RpcError) => "!",
        Some(Outcome::NotSent) => "∅",
        Some(Outcome::Refused) => "⊘",
        Some(Outcome::Unknown) => "?",
    }
}

/// How an outcome looks: an error never looks like success.
pub fn style(theme: &Theme, call: &CallView) -> Style {
    match (call.outcome, call.status) {
        (None, _) => theme.info,
        (Some(Outcome::Ok), Some("done") | None) => theme.ok,
        (Some(Outcome::Ok), Some("unknown")) if call.says.is_some() => theme.text,
        (Some(Outcome::Ok), _) => theme.warn,
        (Some(Outcome::ToolError | Outcome::RpcError), _) => theme.error,
        (Some(Outcome::Unknown), _) => theme.warn,
        (Some(Outcome::NotSent | Outcome::Refused), _) => theme.dim,
    }
    .style()
}

/// The outcome's word, and `late`. What an answer says that isn't finished stands beside it.
pub fn word(call: &CallView) -> String {
    let late = if call.late { " late" } else { "" };
    format!("{}{late}", call.word)
}

enum Row<'a> {
    Call(&'a CallView),
    Ledger(&'a Line),
}

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let app = ui.app;
    let wire = app.wire.as_deref();
    let pending = wire.map_or(0, |w| w.pending().count());
    let running: Vec<&Line> = app
        .requests
        .top
        .iter()
        .filter(|l| l.judged.state == State::Running)
        .filter(|l| {
            !wire.is_some_and(|w| w.pending().any(|c| c.request_id.as_deref() == Some(l.id())))
        })
        .collect();
    let note = match (pending, running.len()) {
        (0, 0) => String::new(),
        (n, 0) => format!("{n} pending"),
        (0, n) => format!("{n} pending by ledger"),
        (n, m) => format!("{n} pending · {m} pending by ledger"),
    };
    let body = ui.title(Pane::Calls, &note, area, frame);
    let calls = wire.map_or(&[][..], |w| &w.calls);
    let len = calls.len() + running.len();
    if len == 0 {
        return nothing(ui, body, frame);
    }
    let page = usize::from(body.height);
    let place = |i: usize| if i < pending { i } else { i + running.len() };
    let at = calls.iter().position(|c| Some(c.id) == app.call).map(place);
    keep_in_sight(&mut ui.seen.calls_at, at, len, page);
    for (i, y) in (ui.seen.calls_at..len).zip(body.top()..body.bottom()) {
        let row = match i {
            i if i < pending => Row::Call(&calls[i]),
            i if i < pending + running.len() => Row::Ledger(running[i - pending]),
            i => Row::Call(&calls[i - running.len()]),
        };
        let place = Rect { y, height: 1, ..body };
        if let Row::Call(call) = &row {
            ui.seen.hits.push((place, Hit::Call(call.id)));
        }
        draw_row(ui, row, place, frame);
    }
}

fn draw_row(ui: &Ui, what: Row, area: Rect, frame: &mut Frame) {
    let (t, now) = (ui.theme, ui.app.now);
    let width = usize::from(area.width);
    let mut row = Cells::new(width);
    let id_width = if width >= 60 { 14 } else { 11 };
    match what {
        Row::Ledger(line) => {
            row.gap(1);
            row.cell("▶ by ledger", 12, t.info);
            row.gap(1);
            let age = line.row.claimed_at.map(|at| cells::age(at, now, false));
            row.right(&age.unwrap_or_default(), 6, t.dim);
            row.gap(1);
            row.cell(line.id(), id_width, t.strong);
            row.gap(1);
            row.put("running in the ledger; no call of it waits here", t.dim);
            cells::line(row.line(), area, frame);
        }
        Row::Call(call) => {
            let selected = ui.app.call == Some(call.id);
            let focus = ui.has_focus(Pane::Calls);
            row.put(if selected && focus { "▸" } else { " " }, t.text);
            row.cell(&format!("{} {}", glyph(call.outcome), word(call)), 12, style(t, call));
            row.gap(1);
            row.right(&cells::age(call.sent_at, now, !call.is_pending()), 6, t.dim);
            row.gap(1);
            let id = call.request_id.as_deref().unwrap_or("—");
            row.cell(id, id_width, t.text);
            row.gap(1);
            // The agent's own calls, from its recording.
            let tool =
                if call.is_agents() { format!("◂{}", call.tool) } else { call.tool.clone() };
            row.cell(&tool, 13, t.text);
            row.put(&format!(" {}", says(ui, call)), t.dim);
            let line = if selected && focus { row.selected(t.selection) } else { row.line() };
            cells::line(line, area, frame);
        }
    }
}

/// A bar of ten cells in eighths.
pub fn progress(percent: f64) -> String {
    let eighths = (percent.clamp(0.0, 100.0) * 0.8) as usize;
    let part = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let full = "█".repeat(eighths / 8);
    let open = if eighths < 80 { part } else { "" };
    format!("▕{}▏", crate::text::pad(&format!("{full}{open}"), 10))
}

/// The reason, the answer, or how long it has been waiting for what.
fn says(ui: &Ui, call: &CallView) -> String {
    match call.outcome {
        None => {
            let waiting = call.waiting(ui.app.now);
            // Half a second is no wait that a bar would be worth.
            let bar = waiting.percent.filter(|_| call.sent_at.age_at(ui.app.now) >= 0.5);
            let bar = bar.map(|p| format!("{} ", progress(p))).unwrap_or_default();
            match waiting.clauses.is_empty() {
                true => "no answer yet".into(),
                false => format!("{bar}{waiting}"),
            }
        }
        Some(Outcome::Ok) => {
            let took = call.settled_at.map(|at| call.sent_at.age_at(at)).unwrap_or_default();
            let took = crate::time::span(took);
            match &call.says {
                Some(word) => format!("says {word} · {took}"),
                None => format!("{took} · {}", call.answer),
            }
        }
        Some(Outcome::ToolError | Outcome::RpcError) if !call.answer.is_empty() => {
            call.answer.clone()
        }
        Some(_) => call.why.clone(),
    }
}

fn nothing(ui: &Ui, area: Rect, frame: &mut Frame) {
    let says: &[&str] = match &ui.app.start.endpoint {
        _ if ui.app.start.recording.is_some() => &[
            "No calls yet: neither in the recording nor from here.",
            "T shows every frame and event of the recording.",
        ],
        None => &[
            "No endpoint is attached, so no calls are seen.",
            "Attach one with --http URL, or -- COMMAND ARGS…",
        ],
        Some(Reach::Http(_)) => &[
            "No calls from here yet: f looks the selected request up, r repeats it.",
            "The agent's own calls don't pass through redial and can't be seen from here.",
        ],
        Some(Reach::Stdio(_) | Reach::Recording(_)) => &[
            "No calls yet: f looks the selected request up, r repeats it.",
            "Only what this redial sends is seen; other clients talk to their own server process.",
        ],
    };
    ui.empty(says, area, frame);
}
