//! What is only read, over the screen: help, the outcome of `verify`, the question before quitting.

use super::Ui;
use super::boxes::{Body, inner_width, reading};
use super::cells::Cells;
use crate::text;
use crate::tui::action::{Context, TABLE};
use crate::tui::data::Verified;
use crate::tui::wire::Reach;
use ratatui::Frame;
use ratatui::layout::Rect;

/// The keys, from the action table.
pub fn help(ui: &mut Ui, scroll: usize, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let mut body = Body::new(inner_width(area, 92));
    for context in Context::ALL {
        if !body.lines.is_empty() {
            body.blank();
        }
        body.text(context.title(), t.title);
        for e in TABLE.iter().filter(|e| e.context == context) {
            let keys = e.keys.join(" ");
            const KEYS: usize = 22;
            let wide = body.width.saturating_sub(KEYS + 2);
            for (i, line) in text::wrap(e.doc, wide, 9).into_iter().enumerate() {
                let mut row = Cells::new(body.width);
                row.gap(1);
                row.cell(if i == 0 { &keys } else { "" }, KEYS, t.key);
                row.gap(1);
                row.put(&line, t.text);
                body.lines.push(row.line());
            }
        }
    }
    body.blank();
    body.text("In the arguments everything else types; elsewhere in the dialog, where it asks for a word.", t.dim);
    if let Some(demo) = &ui.app.start.demo {
        body.blank();
        body.text(&demo.how, t.text);
    }
    reading(ui, "help", body, scroll, area, frame);
}

/// The outcome of `verify`.
pub fn verify(
    ui: &mut Ui,
    report: Option<&Result<Box<Verified>, String>>,
    scroll: usize,
    area: Rect,
    frame: &mut Frame,
) {
    let t = ui.theme;
    let mut body = Body::new(inner_width(area, 84));
    match report {
        None => body.text("Counting…", t.dim),
        Some(Err(why)) => body.text(why, t.error),
        Some(Ok(v)) => {
            let (glyph, style) = if v.good { ("✓", t.ok) } else { ("✗", t.error) };
            body.text(&format!("{glyph} {}", v.sentence), style);
            for p in v.problems.iter().take(100) {
                body.blank();
                let (word, style) = if p.error { ("error", t.error) } else { ("warning", t.warn) };
                body.pair(word, style, &p.kind, t.strong);
                body.pair("", t.text, &p.detail, t.text);
                let ids: Vec<&str> = p.request_ids.iter().take(12).map(String::as_str).collect();
                let more = p.request_ids.len() - ids.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                body.pair("", t.text, &format!("{}{more}", ids.join(", ")), t.dim);
            }
        }
    }
    reading(ui, "verify", body, scroll, area, frame);
}

/// Really quit?
pub fn quit(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let app = ui.app;
    let mut body = Body::new(inner_width(area, 76));
    let calls = app.in_flight();
    let one = calls.len() == 1;
    match &app.start.endpoint {
        Some(Reach::Http(_)) => {
            body.text(
                if one {
                    "This call goes on at the server when you quit:"
                } else {
                    "These calls go on at the server when you quit:"
                },
                t.text,
            );
        }
        _ => {
            body.text(
                "Quitting ends the server process that was started from here, in the middle of:",
                t.warn,
            );
        }
    }
    for call in calls.iter().take(8) {
        body.text(&format!("  {call}"), t.strong);
    }
    if calls.len() > 8 {
        body.text(&format!("  and {} more", calls.len() - 8), t.dim);
    }
    body.text("Its answer won't be seen here; look it up later by its request_id.", t.dim);
    body.blank();
    body.text("Quit? y quits, Esc stays.", t.text);
    reading(ui, "calls in flight", body, 0, area, frame);
}
