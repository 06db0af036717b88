//! What lies over the screen: the re-issue dialog, help, the outcome of `verify`, the question before
//! quitting. Each is a box of lines; the dialog's question stands at its foot and never scrolls away.

use super::Ui;
use super::cells::{self, Cells};
use super::detail::{Tint, hash_words};
use crate::text;
use crate::time::span;
use crate::tui::action::{Context, TABLE};
use crate::tui::data::{Question, Report, Verified};
use crate::tui::dialog::{Dialog, Review, Stage};
use crate::tui::wire::Reach;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};

/// Lines of a box in the making.
struct Body {
    width: usize,
    lines: Vec<Line<'static>>,
}

impl Body {
    fn new(width: usize) -> Body {
        Body { width, lines: Vec::new() }
    }
    fn text(&mut self, text: &str, style: impl Into<Style>) {
        let style = style.into();
        for line in text::wrap(&text::visible(text), self.width, 60) {
            self.lines.push(Line::styled(line, style));
        }
    }
    fn blank(&mut self) {
        self.lines.push(Line::default());
    }
    /// A label and a wrapped text beside it.
    fn pair(
        &mut self,
        label: &str,
        label_style: impl Into<Style>,
        text: &str,
        style: impl Into<Style>,
    ) {
        const LABEL: usize = 11;
        let (label_style, style) = (label_style.into(), style.into());
        let wide = self.width.saturating_sub(LABEL + 1);
        for (i, line) in text::wrap(&text::visible(text), wide, 60).into_iter().enumerate() {
            let mut row = Cells::new(self.width);
            row.cell(if i == 0 { label } else { "" }, LABEL, label_style);
            row.gap(1);
            row.put(&line, style);
            self.lines.push(row.line());
        }
    }
}

/// The width that texts in a box of the screen `area` get.
fn inner_width(area: Rect, want: u16) -> usize {
    usize::from(want.min(area.width.saturating_sub(2)).saturating_sub(4))
}

/// Draws a box with `title` for `height` lines in the middle of `area`; returns the place for them.
fn frame_box(
    ui: &Ui,
    title: &str,
    width: usize,
    height: usize,
    area: Rect,
    frame: &mut Frame,
) -> Rect {
    let h = u16::try_from(height + 2).unwrap_or(u16::MAX).min(area.height);
    let w = (width as u16 + 4).min(area.width);
    let place = Rect::new(area.x + (area.width - w) / 2, area.y + (area.height - h) / 2, w, h);
    clear(place, frame);
    let title =
        format!(" {} ", text::truncate(&text::visible(title), width.saturating_sub(2), "…"));
    let block = Block::bordered()
        .border_style(ui.theme.title_focus)
        .title(Line::styled(title, ui.theme.title_focus));
    let inner = block.inner(place);
    block.render(place, frame.buffer_mut());
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// Empties a place and a column on either side of it; a wide character that it would cut in two goes whole.
fn clear(place: Rect, frame: &mut Frame) {
    let screen = frame.area();
    let left = place.x.saturating_sub(1).max(screen.x);
    let right = (place.right() + 1).min(screen.right());
    let buffer = frame.buffer_mut();
    for y in place.top()..place.bottom() {
        if left > screen.x && text::width(buffer[(left - 1, y)].symbol()) > 1 {
            buffer[(left - 1, y)].reset();
        }
    }
    Clear.render(Rect { x: left, width: right - left, ..place }, buffer);
}

/// Draws `lines` from `scroll` on; tells how far it can be scrolled.
fn draw_lines(
    ui: &mut Ui,
    lines: Vec<Line<'static>>,
    scroll: usize,
    area: Rect,
    frame: &mut Frame,
) {
    let height = usize::from(area.height);
    ui.seen.overlay_most = lines.len().saturating_sub(height);
    let first = scroll.min(ui.seen.overlay_most);
    let more = lines.len().saturating_sub(first + height);
    for (line, y) in lines.into_iter().skip(first).zip(area.top()..area.bottom()) {
        cells::line(line, Rect { y, height: 1, ..area }, frame);
    }
    if more > 0 {
        let says = format!(" {more} more ↓ ");
        let w = (text::width(&says) as u16).min(area.width);
        let place = Rect { x: area.right() - w, y: area.bottom(), width: w, height: 1 };
        cells::line(Line::styled(says, ui.theme.dim), place, frame);
    }
}

/// A box that is only read.
fn reading(ui: &mut Ui, title: &str, body: Body, scroll: usize, area: Rect, frame: &mut Frame) {
    let place = frame_box(ui, title, body.width, body.lines.len(), area, frame);
    draw_lines(ui, body.lines, scroll, place, frame);
}

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

/// The re-issue dialog.
pub fn reissue(ui: &mut Ui, dialog: &Dialog, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let title = format!("re-issue {}", dialog.request_id);
    let mut body = Body::new(inner_width(area, 96));
    match &dialog.stage {
        Stage::Review(review) => return question(ui, dialog, review, &title, area, frame),
        Stage::Preparing => body.text("Finding out what a repeat would be…", t.dim),
        Stage::Impossible(why) => {
            body.text("Nothing can be sent.", t.warn);
            body.text(why, t.text);
        }
        Stage::Sending { since } => {
            let waited = span(since.age_at(ui.app.now).max(0.0));
            body.text(&format!("Sent, waiting for the answer: {waited}"), t.info);
            body.text(
                "Esc leaves this box; the call goes on and its answer is shown when it comes.",
                t.dim,
            );
        }
        Stage::Done(report) => match &**report {
            Ok(r) => outcome(ui, &mut body, r),
            Err(why) => {
                body.text("Nothing was sent.", t.warn);
                body.text(why, t.text);
            }
        },
    }
    reading(ui, &title, body, dialog.scroll, area, frame);
}

fn outcome(ui: &Ui, body: &mut Body, r: &Report) {
    let t = ui.theme;
    let done = r.outcome == "ok" && r.answer_status.as_deref().is_none_or(|s| s == "done");
    let (glyph, style) = match r.outcome.as_str() {
        "ok" if done => ("✓", t.ok),
        "ok" | "unknown" => ("?", t.warn),
        _ => ("!", t.error),
    };
    let mut words = format!("{glyph} {}", r.outcome);
    if let Some(s) = &r.answer_status {
        words += &format!(", {s}");
    }
    if r.replayed == Some(true) {
        words += ", replayed: the stored result, no new work";
    }
    body.text(&format!("{words} ({})", span(r.elapsed_s)), style);
    if !r.why.is_empty() && !done {
        body.text(&r.why, t.text);
    }
    body.blank();
    let change = |(before, after): (u64, u64)| match after.cmp(&before) {
        std::cmp::Ordering::Equal => format!("{before} → {after} (unchanged)"),
        _ => format!("{before} → {after}"),
    };
    match r.effects {
        Some(e) => {
            let style = if e.1 > 1 { t.error } else { t.strong };
            body.pair("effects", t.dim, &format!("{} of this request", change(e)), style);
        }
        None => body.pair("effects", t.dim, "not known: no ledger is attached", t.dim),
    }
    if let Some(e) = r.effects_total {
        body.pair("", t.dim, &format!("{} in all", change(e)), t.text);
    }
    body.pair("state", t.dim, &r.state_after, t.text);
    if !r.answer.is_empty() {
        let head: String = r.answer.chars().take(2_000).collect();
        body.pair("answer", t.dim, &head, t.text);
    }
    if !r.next.is_empty() {
        body.pair("next", t.dim, &r.next, t.strong);
    }
    for (i, line) in r.stderr.iter().enumerate() {
        body.pair(if i == 0 { "stderr" } else { "" }, t.dim, line, t.text);
    }
}

/// The exact call, what is known, and the gate's question.
fn question(
    ui: &mut Ui,
    dialog: &Dialog,
    review: &Review,
    title: &str,
    area: Rect,
    frame: &mut Frame,
) {
    let t = ui.theme;
    let width = inner_width(area, 96);
    let mut above = Body::new(width);
    above.pair("call", t.dim, &format!("tools/call {}", review.plan.tool), t.strong);
    let source = if review.edited() { "edited here" } else { &review.plan.source };
    above.pair("arguments", t.dim, source, t.text);
    let mut below = Body::new(width);
    match &review.check {
        Some(check) => {
            let (words, tint) = hash_words(check.hash, &check.hash_why);
            let style = match tint {
                Tint::Good => t.ok,
                Tint::Bad => t.error,
                Tint::Open => t.dim,
            };
            below.pair("hash", t.dim, &words, style);
        }
        None => below.pair("hash", t.dim, "checking…", t.dim),
    }
    for (i, line) in review.plan.situation.iter().enumerate() {
        below.pair(if i == 0 { "known" } else { "" }, t.dim, line, t.text);
    }
    let mut foot = Body::new(width);
    ask(ui, review, &mut foot);
    // The arguments get what is left between what is known and the question, at least a few lines.
    let room = usize::from(area.height).saturating_sub(2);
    let wanted = args_lines(review, width).clamp(2, 12);
    let fixed = above.lines.len() + foot.lines.len();
    let args_height = wanted.min(room.saturating_sub(fixed + 2)).max(2);
    let below_height = below.lines.len().min(room.saturating_sub(fixed + args_height));
    let height = fixed + args_height + below_height;
    let place = frame_box(ui, title, width, height, area, frame);
    let mut y = place.y;
    let mut take = |h: usize| {
        let h = (h as u16).min(place.bottom().saturating_sub(y));
        let part = Rect { y, height: h, ..place };
        y += h;
        part
    };
    let (a, b, c, d) =
        (take(above.lines.len()), take(args_height), take(below_height), take(foot.lines.len()));
    draw_lines(ui, above.lines, 0, a, frame);
    arguments(ui, review, b, frame);
    draw_lines(ui, foot.lines, 0, d, frame);
    draw_lines(ui, below.lines, dialog.scroll, c, frame);
}

/// How many lines the arguments take when wrapped.
fn args_lines(review: &Review, width: usize) -> usize {
    let inner = width.saturating_sub(4);
    review.args.lines().iter().take(20).map(|l| text::wrap(l, inner, 20).len()).sum()
}

fn arguments(ui: &Ui, review: &Review, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let mut args = review.args.clone();
    args.set_cursor_line_style(Style::default());
    args.set_style(t.text.style());
    args.set_cursor_style(if review.editing { t.cursor.style() } else { t.text.style() });
    let bar = if review.editing { t.title_focus } else { t.rule };
    for y in area.top()..area.bottom() {
        cells::line(Line::styled("▏", bar), Rect { y, width: 1, height: 1, ..area }, frame);
    }
    let place = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
    (&args).render(place, frame.buffer_mut());
}

/// The gate's question and its reasons.
fn ask(ui: &Ui, review: &Review, foot: &mut Body) {
    let t = ui.theme;
    foot.lines.push(Line::styled("─".repeat(foot.width), t.rule));
    let Some(check) = &review.check else {
        foot.text("The changed arguments are being checked; until then nothing is sent.", t.dim);
        return;
    };
    let gate = &check.gate;
    if review.editing {
        foot.text("Editing the arguments. Tab goes back to the question.", t.info);
        return;
    }
    for reason in &gate.reasons {
        let style = match gate.question {
            Question::None | Question::Preview => t.text,
            Question::Refused => t.error,
            Question::Ask | Question::Type => t.warn,
        };
        foot.text(reason, style);
    }
    match gate.question {
        Question::None | Question::Preview => {
            foot.text("Send exactly this call? Enter sends it, Esc doesn't.", t.strong);
        }
        Question::Ask => foot.text("Send it all the same? y sends it, Esc doesn't.", t.strong),
        Question::Type => {
            foot.text(
                &format!("To send it all the same, type {} and Enter. Esc doesn't.", gate.word),
                t.strong,
            );
            let mut row = Cells::new(foot.width);
            row.put("  ", t.text);
            row.put(&review.typed, t.input);
            row.put(" ", t.cursor);
            if !gate.word.starts_with(&review.typed) {
                row.put("  that is something else", t.warn);
            }
            foot.lines.push(row.line());
        }
        Question::Refused => foot.text("It is not sent from here. Esc closes.", t.strong),
    }
}
