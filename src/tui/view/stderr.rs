//! The server's stderr, a life after the other: a head for each generation, its lines, its end as a line.
//! Follows the newest line until somebody scrolls up.

use super::Ui;
use super::cells::{self, Cells};
use crate::journal::bounded::IDLE;
use crate::journal::generation::generation_name;
use crate::text;
use crate::tui::app::Pane;
use crate::tui::wire::{GenerationView, Reach};
use ratatui::Frame;
use ratatui::layout::Rect;

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let app = ui.app;
    let note = if app.stderr_up > 0 {
        format!("{} lines below · G follows", app.stderr_up)
    } else {
        String::new()
    };
    if app.start.stderr_file.is_some() {
        return file(ui, &note, area, frame);
    }
    let body = ui.title(Pane::Stderr, &note, area, frame);
    let lines = app.wire.as_ref().map_or(0, |w| w.stderr_len());
    let generations = app.wire.as_ref().map_or(&[][..], |w| &w.generations);
    let http = matches!(app.start.endpoint, Some(Reach::Http(_)));
    let anything =
        generations.iter().any(|g| !g.stderr.is_empty() || g.ended.is_some() || g.noise > 0);
    if !anything && (http || lines == 0) {
        return nothing(ui, body, frame);
    }
    let page = usize::from(body.height);
    let first = lines.saturating_sub(page).saturating_sub(app.stderr_up);
    let mut y = body.top();
    let mut at = 0;
    for g in generations {
        let len = 1 + g.stderr.len() + usize::from(g.ended.is_some());
        let skip = first.saturating_sub(at).min(len);
        for i in skip..len {
            if y >= body.bottom() {
                return;
            }
            cells::line(
                row(ui, g, i, usize::from(body.width)),
                Rect { y, height: 1, ..body },
                frame,
            );
            y += 1;
        }
        at += len;
    }
    if y < body.bottom() && lines == generations.len() {
        let place = Rect { y, height: body.bottom() - y, ..body };
        ui.empty(
            &["Nothing on stderr so far; what the server writes there appears here."],
            place,
            frame,
        );
    }
}

/// The followed file, when one was named: it is the witness then, wherever the server runs.
fn file(ui: &mut Ui, note: &str, area: Rect, frame: &mut Frame) {
    let tail = ui.app.stderr_file.clone();
    let name = ui.app.start.stderr_file.clone().unwrap_or_default();
    let said = tail.remark.as_ref().map(|r| format!(" · {r}")).unwrap_or_default();
    let note =
        if note.is_empty() { format!("{name}{said}") } else { format!("{note} · {name}{said}") };
    let body = ui.title(Pane::Stderr, &note, area, frame);
    if tail.lines.is_empty() {
        return ui.empty(
            &["Nothing in this file so far; what the server writes into it appears here.", &name],
            body,
            frame,
        );
    }
    let page = usize::from(body.height);
    let first = tail.lines.len().saturating_sub(page).saturating_sub(ui.app.stderr_up);
    for ((at, line), y) in tail.lines.iter().skip(first).zip(body.top()..body.bottom()) {
        let mut row = Cells::new(usize::from(body.width));
        row.gap(1);
        row.put(&at.clock(), ui.theme.dim);
        row.gap(1);
        row.put(&text::visible_bytes(line), ui.theme.text);
        cells::line(row.line(), Rect { y, height: 1, ..body }, frame);
    }
}

fn row(ui: &Ui, g: &GenerationView, i: usize, width: usize) -> ratatui::text::Line<'static> {
    let t = ui.theme;
    let mut row = Cells::new(width);
    row.gap(1);
    match i.checked_sub(1) {
        None => {
            row.put(&g.opened_at.clock(), t.dim);
            let pid = g.pid.map(|p| format!(", pid {p}")).unwrap_or_default();
            row.put(&format!(" {}{pid}", generation_name(g.n)), t.strong);
            if g.dropped > 0 {
                row.put(&format!(" · {} older lines no longer kept", g.dropped), t.dim);
            }
            if g.noise > 0 {
                let last = g.last_noise.as_deref().map(text::visible_bytes).unwrap_or_default();
                let s = if g.noise == 1 { "line" } else { "lines" };
                row.put(&format!(" · {} {s} on stdout no JSON-RPC: {last}", g.noise), t.warn);
            }
        }
        Some(i) => match (g.stderr.get(i), g.ended) {
            (Some((at, line)), _) => {
                row.put(&at.clock(), t.dim);
                row.gap(1);
                row.put(&text::visible_bytes(line), t.text);
            }
            (None, Some(ended)) => {
                row.put(&ended.at.clock(), t.dim);
                let death = g.death.as_deref().unwrap_or(IDLE);
                let good = ended.code == Some(0) && death == IDLE;
                let style = if good { t.dim } else { t.error };
                let how = match ended.gone_at {
                    Some(_) => format!("ended: {}", ended.how()),
                    None => ended.sentence(&g.left),
                };
                row.put(&format!(" ✗ {how}, {death}"), style);
            }
            (None, None) => {}
        },
    }
    row.line()
}

fn nothing(ui: &Ui, area: Rect, frame: &mut Frame) {
    let says: &[&str] = match &ui.app.start.endpoint {
        _ if ui.app.start.recording.is_some() => {
            &["The recorded server wrote nothing to stderr, and its end wasn't recorded."]
        }
        None => &[
            "No endpoint is attached, so there is no stderr to show.",
            "A server started from here (-- COMMAND ARGS…) shows its stderr and how it ended.",
        ],
        Some(Reach::Http(_)) => &[
            "The stderr of a server reached over HTTP can't be seen from here.",
            "Where it goes into a file, --stderr-file FILE follows that; -- COMMAND ARGS… shows it here too.",
        ],
        Some(Reach::Stdio(_) | Reach::Recording(_)) => {
            &["Waiting for the server's first line on stderr."]
        }
    };
    ui.empty(says, area, frame);
}
