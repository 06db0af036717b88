//! The verify pane: one plain sentence, as of when and whether it is being counted again, requests by state, how the
//! sentence has changed while it was watched, and every broken invariant with the requests it is about.

use super::boxes::Body;
use super::cells::{self, Cells};
use super::{Ui, keep_in_sight};
use crate::keys::action::Action;
use crate::text;
use crate::time::span;
use crate::tui::app::{Hit, Pane};
use crate::tui::data::Verified;
use crate::tui::watch::{NAMED, Run};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

pub fn draw(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let watch = &ui.app.watch;
    let note = match watch.run {
        // A count that takes a moment says for how long.
        Run::Counting(since) => match since.age_at(ui.app.now) {
            s if s >= 1.0 => format!("counting for {}…", span(s)),
            _ => "counting…".to_owned(),
        },
        Run::Resting(at) => format!("changed since; counts again at {}", at.clock()),
        Run::Waiting => "counts again with every change".into(),
        Run::Off => String::new(),
    };
    let body = ui.title(Pane::Verify, &note, area, frame);
    let Some(report) = &watch.report else { return nothing(ui, body, frame) };
    let (lines, named) = lines(ui, report, usize::from(body.width));
    let at = named.get(watch.at).copied().filter(|_| ui.has_focus(Pane::Verify));
    let page = usize::from(body.height);
    // While its first request is selected, what stands above it is wanted too.
    let at = if watch.at == 0 { Some(0) } else { at };
    let len = lines.len();
    keep_in_sight(&mut ui.seen.verify_at, at, len, page);
    let first = ui.seen.verify_at;
    for ((i, line), y) in lines.into_iter().enumerate().skip(first).zip(body.top()..body.bottom()) {
        let place = Rect { y, height: 1, ..body };
        if let Some(n) = named.iter().position(|l| *l == i) {
            ui.seen.hits.push((place, Hit::Found(n)));
        }
        cells::line(line, place, frame);
    }
    let more = len.saturating_sub(first + page);
    if more > 0 {
        let says = format!(" {more} more ↓ ");
        let width = (text::width(&says) as u16).min(area.width);
        let place = Rect { x: area.right() - width, width, height: 1, ..area };
        cells::line(Line::styled(says, ui.theme.dim), place, frame);
    }
}

/// All lines, and which of them are requests, in the order of `Watch::named`.
fn lines(ui: &Ui, report: &Verified, width: usize) -> (Vec<Line<'static>>, Vec<usize>) {
    let (t, watch) = (ui.theme, &ui.app.watch);
    let mut body = Body::new(width.saturating_sub(2));
    let (glyph, style) = if report.good { ("✓", t.ok) } else { ("✗", t.error) };
    body.text(&format!("{glyph} {}", report.sentence), style.style().patch(t.strong.style()));
    if let Some(why) = &watch.trouble {
        body.text(&format!("could not be counted again: {why}"), t.error);
    }
    let took = span(report.took_s);
    body.text(&format!("as of {}, counted in {took}", report.as_of.clock()), t.dim);
    let mut parts: Vec<String> = report.requests.iter().map(|(s, n)| format!("{n} {s}")).collect();
    parts.extend(report.effects.map(|n| format!("{n} effect{}", if n == 1 { "" } else { "s" })));
    body.text(&parts.join(" · "), t.text);
    if watch.turns.len() > 1 {
        body.blank();
        for (at, sentence) in &watch.turns {
            body.pair(&at.clock(), t.dim, sentence, t.text);
        }
    }
    let mut named = Vec::new();
    let focus = ui.has_focus(Pane::Verify);
    for p in &report.problems {
        body.blank();
        let (word, style) = if p.error { ("error", t.error) } else { ("warning", t.warn) };
        body.pair(word, style, &p.kind, t.strong);
        body.pair("", t.text, &p.detail, t.text);
        for id in p.request_ids.iter().take(NAMED) {
            let selected = focus && named.len() == watch.at;
            let mut row = Cells::new(body.width);
            row.gap(10);
            row.put(if selected { "▸ " } else { "  " }, t.text);
            row.put(id, t.strong);
            named.push(body.lines.len());
            body.lines.push(if selected { row.selected(t.selection) } else { row.line() });
        }
        let more = p.request_ids.len().saturating_sub(NAMED);
        if more > 0 {
            body.pair("", t.text, &format!("and {more} more"), t.dim);
        }
    }
    let pad = |mut line: Line<'static>| {
        line.spans.insert(0, " ".into());
        line
    };
    (body.lines.into_iter().map(pad).collect(), named)
}

fn nothing(ui: &Ui, area: Rect, frame: &mut Frame) {
    let app = ui.app;
    let key = app.keymap.key_of(Action::Verify);
    let asks = format!("{key} counts requests and effects and checks that each happened once.");
    let says: &[&str] = match (&app.watch.trouble, app.watch.run) {
        _ if !app.start.ledger => &[
            "No ledger is attached, so there is nothing to count.",
            "With --ledger FILE this checks that every request was done exactly once.",
        ],
        (Some(why), _) => &["It could not be counted:", why],
        (None, Run::Off) => &[&asks, "It counts again with every change while it is seen."],
        (None, _) => &["Counting…"],
    };
    ui.empty(says, area, frame);
}
