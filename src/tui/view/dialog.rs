//! The re-issue dialog: the exact call, what is known, the gate's question at its foot, where it never
//! scrolls away; then the call on its way, and what came of it.

use super::Ui;
use super::boxes::{Body, draw_lines, frame_box, inner_width, reading};
use super::cells::{self, Cells};
use super::detail::{Tint, hash_words};
use crate::keys::action::{Action, Context};
use crate::text;
use crate::time::span;
use crate::tui::data::{Question, Report};
use crate::tui::dialog::{Dialog, Review, Stage};
use crate::tui::through::Part;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Widget;
use ratatui_textarea::TextArea;

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
            let Some(sent) = ui.app.sent_since(&dialog.request_id, *since) else {
                body.text("Agreed. Everything is read once more, and then it is sent…", t.info);
                return reading(ui, &title, body, dialog.scroll, area, frame);
            };
            let waited = span(sent.age_at(ui.app.now).max(0.0));
            body.text(&format!("Sent, waiting for the answer: {waited}"), t.info);
            let keys = &ui.app.keymap;
            let leave = keys.word(Context::Reading, Action::Close);
            let (x, w) = (keys.key_of(Action::Cancel), keys.key_of(Action::StopWaiting));
            body.text(
                &format!("{leave} leaves this box; the call goes on and its answer is shown when it comes. There {x} cancels the call, {w} stops waiting for it."),
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
            if r.ran_twice() {
                body.pair("", t.dim, "its work ran more than once", t.error);
            }
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

const CHANGED: &str = "Things have changed since you were asked; nothing was sent. Asked anew:";

/// Changes that are listed; the first are the worst.
const CHANGES: usize = 4;

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
    if !review.changes.is_empty() {
        // The question at the foot must never be pushed out.
        let listed = if area.height < 30 { 1 } else { CHANGES };
        above.text(CHANGED, t.error);
        for (i, line) in review.changes.iter().take(listed).enumerate() {
            above.pair(if i == 0 { "changed" } else { "" }, t.dim, line, t.error);
        }
        if let Some(more @ 1..) = review.changes.len().checked_sub(listed) {
            above.pair("", t.dim, &format!("and {more} more"), t.error);
        }
    }
    above.pair("call", t.dim, &format!("tools/call {}", review.plan.tool), t.strong);
    let called = above.lines.len();
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
    let situation = review.check.iter().flat_map(|c| &c.situation);
    for (i, line) in situation.enumerate() {
        below.pair(if i == 0 { "known" } else { "" }, t.dim, line, t.text);
    }
    let mut foot = Body::new(width);
    ask(ui, review, &mut foot);
    // The arguments get what is left between what is known and the question, at least a few lines.
    let room = usize::from(area.height).saturating_sub(2);
    // A person agrees to what could be read, the question and its reasons included.
    if called + foot.lines.len() + 2 > room {
        return cut_off(ui, (dialog, review), title, [above, below, foot], area, frame);
    }
    if above.lines.len() + foot.lines.len() + 2 > room {
        above.lines.truncate(called);
    }
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

/// The question where not all of it has room: it can be read piece by piece, and not be answered.
fn cut_off(
    ui: &mut Ui,
    (dialog, review): (&Dialog, &Review),
    title: &str,
    [mut all, below, foot]: [Body; 3],
    area: Rect,
    frame: &mut Frame,
) {
    let t = ui.theme;
    for line in review.args.lines() {
        all.pair("", t.dim, line, t.text);
    }
    all.lines.extend(below.lines);
    all.lines.extend(foot.lines);
    let mut notice = Body::new(all.width);
    let on = ui.app.keymap.word(Context::Reissue, Action::PageDown);
    let says =
        format!("No room for the whole question: until there is, nothing is sent. {on} reads on.");
    notice.text(&says, t.warn);
    let (high, lines) = (notice.lines.len() as u16, notice.lines.len() + all.lines.len());
    let place = frame_box(ui, title, all.width, lines, area, frame);
    draw_lines(ui, notice.lines, 0, place, frame);
    let high = high.min(place.height);
    let rest = Rect { y: place.y + high, height: place.height - high, ..place };
    // Its answer is given where all of it stands at once.
    let (of, height) = (all.lines.len(), usize::from(rest.height));
    let from = dialog.scroll.min(of.saturating_sub(height));
    let to = (from + height).min(of);
    ui.seen.part = Some(Part { from, to, of, width: all.width, beyond: true });
    draw_lines(ui, all.lines, dialog.scroll, rest, frame);
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
    if !review.editing {
        let tab = ui.app.keymap.word(Context::Reissue, Action::EditArgs);
        if let Some(lines) = both_ends(&review.args, &tab, place) {
            for (line, y) in lines.iter().zip(place.top()..place.bottom()) {
                let row = Rect { y, height: 1, ..place };
                cells::line(Line::styled(line.as_str(), t.text), row, frame);
            }
            return;
        }
        return (&args).render(place, frame.buffer_mut());
    }
    // The text area wraps by itself: where its cursor came to is seen by a mark that nothing else has. The terminal's
    // own cursor goes there too, since input methods open their windows at it.
    args.set_cursor_style(t.cursor.style().add_modifier(Modifier::RAPID_BLINK));
    (&args).render(place, frame.buffer_mut());
    for at in place.positions() {
        let cell = &mut frame.buffer_mut()[at];
        if cell.modifier.contains(Modifier::RAPID_BLINK) {
            cell.modifier.remove(Modifier::RAPID_BLINK);
            frame.set_cursor_position(at);
            return;
        }
    }
}

/// Arguments that don't fit: their first and last lines, and how much is between. `None` where all of them fit.
fn both_ends(args: &TextArea<'_>, tab: &str, place: Rect) -> Option<Vec<String>> {
    let (width, height) = (usize::from(place.width), usize::from(place.height));
    let room = width * height;
    let all: usize = args.lines().iter().map(|l| l.chars().count() + 1).sum();
    let fits = |lines: &[String]| {
        let wrapped = lines.iter().map(|l| text::wrap(l, width, height + 1).len().max(1));
        wrapped.sum::<usize>() <= height
    };
    if width < 8 || height < 2 || (all <= room + height && fits(args.lines())) {
        return None;
    }
    let whole = args.lines().join(" ");
    let chars: Vec<char> = whole.chars().collect();
    // Wide characters take two cells: what is cut to the line is cut by cells.
    let line = |chars: &[char]| -> String { chars.iter().collect() };
    let cut = |from: usize, rows: usize| -> (Vec<String>, usize) {
        let (mut at, mut lines) = (from, Vec::new());
        for _ in 0..rows {
            let end = (at..=chars.len())
                .rev()
                .find(|end| end - at <= width && text::width(&line(&chars[at..*end])) <= width);
            let end = end.unwrap_or(at);
            lines.push(line(&chars[at..end]));
            at = end;
        }
        (lines, at)
    };
    let tail_rows = (height - 1) / 2;
    let (mut lines, head) = cut(0, height - 1 - tail_rows);
    let mut tail = chars.len();
    let mut last: Vec<String> = Vec::new();
    for _ in 0..tail_rows {
        let begin = (tail.saturating_sub(width)..=tail)
            .find(|begin| text::width(&line(&chars[*begin..tail])) <= width)
            .unwrap_or(tail);
        last.push(line(&chars[begin.max(head)..tail]));
        tail = begin.max(head);
    }
    lines.push(format!(
        "… {} characters are not shown; {tab} shows them …",
        tail.saturating_sub(head)
    ));
    lines.extend(last.into_iter().rev());
    Some(lines)
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
        let back = ui.app.keymap.word(Context::Arguments, Action::EditArgs);
        foot.text(&format!("Editing the arguments. {back} goes back to the question."), t.info);
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
    let keys = |action| ui.app.keymap.word(Context::Reissue, action);
    let (enter, esc) = (keys(Action::Send), keys(Action::Close));
    match gate.question {
        Question::None | Question::Preview => {
            let says = format!("Send exactly this call? {enter} sends it, {esc} doesn't.");
            foot.text(&says, t.strong);
        }
        Question::Ask => {
            let y = keys(Action::Agree);
            foot.text(&format!("Send it all the same? {y} sends it, {esc} doesn't."), t.strong);
        }
        Question::Type => {
            foot.text(
                &format!("To send it all the same, type {} and {enter}. {esc} doesn't.", gate.word),
                t.strong,
            );
            let mut row = Cells::new(foot.width);
            row.put("  ", t.text);
            row.typed(&review.typed, t.input, t.cursor);
            let wrong = "  that is something else";
            let is_wrong = !gate.word.starts_with(&review.typed);
            let beside = row.left() >= wrong.len();
            if is_wrong && beside {
                row.put(wrong, t.warn);
            }
            foot.lines.push(row.line());
            if is_wrong && !beside {
                foot.text(wrong, t.warn);
            }
        }
        Question::Refused => {
            foot.text(&format!("It is not sent from here. {esc} closes."), t.strong);
        }
    }
}
