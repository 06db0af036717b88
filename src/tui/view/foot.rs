//! The two lines at the bottom: what was just said, else the selected request's next step; and the keys
//! that work now, from the action table.

use super::cells::{self, Cells};
use crate::text;
use crate::tui::action::{self, Action, Context};
use crate::tui::app::{App, Pane, Tone};
use crate::tui::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;

pub fn said(app: &App, theme: &Theme, area: Rect, frame: &mut Frame) {
    let mut row = Cells::new(usize::from(area.width));
    row.gap(1);
    if let Some((tone, text)) = &app.said {
        let style = match tone {
            Tone::Plain => theme.text,
            Tone::Good => theme.ok,
            Tone::Bad => theme.error,
        };
        row.put(text, style);
    } else if let Some(line) = app.requests.line() {
        row.put("→ ", theme.key);
        row.put(&format!("{}: ", line.id()), theme.dim);
        row.put(&line.finding.next, theme.strong);
    } else if let Some(demo) = &app.start.demo {
        row.put(&demo.how, theme.dim);
    }
    cells::line(row.line(), area, frame);
}

pub fn footer(app: &App, theme: &Theme, area: Rect, frame: &mut Frame) {
    let entries = action::footer(app);
    let label = |e: &action::Entry| {
        let name = match (e.action, e.context, app.pane) {
            (Action::Details, Context::Main, Pane::Calls) => "its request",
            _ => e.name,
        };
        (e.keys.first().map_or("", |k| *k), name)
    };
    let width_of = |e: &action::Entry| {
        let (key, name) = label(e);
        text::width(key) + text::width(name) + 3
    };
    // The last two (help and quit, or the way out of a dialog) always have a place.
    let width = usize::from(area.width);
    let tail = entries.len().saturating_sub(2);
    let mut left =
        width.saturating_sub(1 + entries[tail..].iter().map(|e| width_of(e)).sum::<usize>());
    let mut row = Cells::new(width);
    row.gap(1);
    for (i, e) in entries.iter().enumerate() {
        if i < tail {
            if width_of(e) > left {
                continue;
            }
            left -= width_of(e);
        }
        let (key, name) = label(e);
        row.put(key, theme.key);
        row.gap(1);
        row.put(name, theme.dim);
        row.gap(2);
    }
    cells::line(row.line(), area, frame);
}
