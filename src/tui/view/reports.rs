//! What is only read, over the screen: help, what was sent, the questions before a call is
//! cancelled and before quitting.

use super::Ui;
use super::boxes::{Body, asking, inner_width, reading as reading_box};
use super::cells::Cells;
use crate::keys::action::{Action, Context, Entry, TABLE};
use crate::text;
use crate::tui::app::{App, Reading};
use crate::tui::wire::Reach;
use ratatui::Frame;
use ratatui::layout::Rect;

/// The keys, from the action table: those of where help was asked for first. With a search only the lines that hold it.
pub fn help(ui: &mut Ui, reading: &Reading, area: Rect, frame: &mut Frame) {
    let (t, app) = (ui.theme, ui.app);
    let mut body = Body::new(inner_width(area, 100));
    let query = reading.query.to_lowercase();
    if reading.typing || !query.is_empty() {
        let mut row = Cells::new(body.width);
        row.put("search ", t.dim);
        row.typed(&reading.query, t.input, if reading.typing { t.cursor } else { t.text });
        body.lines.push(row.line());
    }
    let first = reading.place.into_iter();
    let others = Context::ALL.into_iter().filter(|c| Some(*c) != reading.place);
    let mut found = false;
    for context in first.chain(others) {
        let holds = |e: &&Entry| {
            let keys = keys_of(app, e);
            let own = [context.title(), e.name, e.doc, &keys];
            e.context == context && own.iter().any(|t| t.to_lowercase().contains(&query))
        };
        let entries: Vec<&Entry> = TABLE.iter().filter(holds).collect();
        if entries.is_empty() {
            continue;
        }
        found = true;
        if !body.lines.is_empty() {
            body.blank();
        }
        body.text(context.title(), t.title);
        for e in entries {
            let keys = keys_of(app, e);
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
    if !found {
        body.blank();
        body.text("No key's help holds that.", t.dim);
    }
    if query.is_empty() {
        body.blank();
        body.text("In the arguments everything else types; elsewhere in the dialog, where it asks for a word.", t.dim);
        body.text("The filter: words of request_id, title, state and verdict, or state:abandoned verdict:stalled tool: outcome: req: text:\"…\" age:>5m, with ! for not, | for or, ( ).", t.dim);
        body.text("Other keys, themes and more: redial.toml.", t.dim);
        if let Some(demo) = &app.start.demo {
            body.blank();
            body.text(&demo.how, t.text);
        }
    }
    reading_box(ui, "help", body, reading.scroll, area, frame);
}

fn keys_of(app: &App, e: &Entry) -> String {
    app.keymap.keys(e).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// What this run sent.
pub fn log(ui: &mut Ui, scroll: usize, area: Rect, frame: &mut Frame) {
    let (t, app) = (ui.theme, ui.app);
    let mut body = Body::new(inner_width(area, 100));
    for s in &app.sent {
        body.pair(&s.at.clock(), t.dim, &s.what, t.strong);
        match &s.came {
            Some((at, words)) => body.pair("", t.dim, &format!("{} {words}", at.clock()), t.text),
            None if s.request_id.is_empty() => {}
            None => body.pair("", t.dim, "nothing has come of it yet", t.info),
        }
    }
    if app.sent.is_empty() {
        body.text(
            "Nothing was sent by this run. Look-ups, repeats and answers are listed here.",
            t.dim,
        );
    }
    if let Some(wire) = app.wire.as_deref() {
        let told = wire.notes.len() + wire.asked_of_us.len();
        if told > 0 || wire.strays > 0 {
            body.blank();
            body.text("of the endpoint", t.title);
        }
        if wire.notes_dropped > 0 {
            body.text(&format!("{} older ones aren't kept", wire.notes_dropped), t.dim);
        }
        for (at, note) in &wire.notes {
            body.pair(&at.clock(), t.dim, note, t.text);
        }
        for (method, n) in &wire.asked_of_us {
            body.pair("", t.dim, &format!("the server asked {n} times: {method}"), t.text);
        }
        if wire.strays > 0 {
            body.pair(
                "",
                t.dim,
                &format!("{} answers to nothing that was asked", wire.strays),
                t.warn,
            );
        }
    }
    reading_box(ui, "sent by this run", body, scroll, area, frame);
}

/// A call's words in a question: an id without end doesn't push the question away.
fn by_ends(call: &str) -> String {
    crate::text::ends(call).replace('\n', " ")
}

/// Cancel this call?
pub fn cancel(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let (t, app) = (ui.theme, ui.app);
    let mut body = Body::new(inner_width(area, 76));
    let keys = |action| app.keymap.word(Context::Cancel, action);
    let (w, esc) = (keys(Action::StopWaiting), keys(Action::Close));
    match app.pending_call() {
        Some(call) => {
            let id = call.request_id.as_deref().unwrap_or_default();
            let age = crate::time::span(call.sent_at.age_at(app.now).max(0.0));
            body.text(&by_ends(&format!("{} {id}, sent {age} ago", call.tool)), t.strong);
            body.blank();
            body.text("Cancelling tells the server that it is no longer wanted. A cancelled call is never answered, and its work may be done all the same: the outcome stays unknown until the request is looked up.", t.text);
            body.text(&format!("To stop waiting but keep listening, press {w}: nothing is sent, and an answer that comes later is still taken."), t.text);
            body.blank();
            let y = keys(Action::Cancel);
            body.text(&format!("Cancel it? {y} cancels, {w} stops waiting, {esc} leaves it."), t.text);
        }
        None => body.text(
            &format!("The call has been answered meanwhile; there is nothing to cancel. {esc} closes this."),
            t.text,
        ),
    }
    asking(ui, (Context::Cancel, "cancel a call"), body, None, area, frame);
}

/// Really quit?
pub fn quit(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let t = ui.theme;
    let app = ui.app;
    let mut body = Body::new(inner_width(area, 76));
    let calls = app.in_flight();
    let many = calls.len() != 1;
    let (these, goes) = if many { ("These calls", "go") } else { ("This call", "goes") };
    match &app.start.endpoint {
        Some(Reach::Http(_)) if calls.is_empty() => {
            body.text(
                "No answer is waited for, but this may still be going on at the server:",
                t.text,
            );
        }
        _ if calls.is_empty() => {
            body.text(
                "No answer is waited for, but quitting ends the server process, perhaps in the middle of:",
                t.warn,
            );
        }
        Some(Reach::Http(_)) => {
            body.text(&format!("{these} {goes} on at the server when you quit:"), t.text);
        }
        _ => {
            body.text(
                "Quitting ends the server process that was started from here, in the middle of:",
                t.warn,
            );
        }
    }
    for call in calls.iter().take(8) {
        body.text(&by_ends(&format!("  {call}")), t.strong);
    }
    if calls.len() > 8 {
        body.text(&format!("  and {} more", calls.len() - 8), t.dim);
    }
    let perhaps = app.perhaps_going_on();
    for call in perhaps.iter().take(8) {
        body.text(&by_ends(&format!("  {call}")), t.warn);
    }
    if perhaps.len() > 8 {
        body.text(&format!("  and {} more", perhaps.len() - 8), t.dim);
    }
    body.text("What comes of it won't be seen here; look it up later by its request_id.", t.dim);
    body.blank();
    let keys = |action| app.keymap.word(Context::Quit, action);
    let (y, esc) = (keys(Action::QuitNow), keys(Action::Close));
    body.text(&format!("Quit? {y} quits, {esc} stays."), t.text);
    asking(ui, (Context::Quit, "calls in flight"), body, None, area, frame);
}
