//! The one way the state changes: `update(&mut App, Msg) -> Vec<Effect>`. Pure: no IO, no clock.

use super::answer::Worth;
use super::app::{App, Overlay, Pane, Sent, Tone};
use super::dialog::Stage;
use super::msg::{Effect, Msg};
use super::update_scroll::{read, scroll};
use super::wire::WireView;
use super::{
    asking, findings, timeline, update_dialog as dialog, update_main as main,
    update_mouse as mouse, update_over as over,
};
use crate::config::Bell;
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use std::time::Duration;

/// A call that ends after so many seconds is worth a bell.
const LONG_S: f64 = 10.0;

/// Takes one message in; returns what is to be done.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let selected = app.requests.selected.clone();
    let mut effects = Vec::new();
    take(app, msg, &mut effects);
    if app.requests.selected != selected {
        app.detail_scroll = 0;
        app.detail_gone = false;
        load_detail(app, &mut effects);
    }
    match app.pane {
        Pane::Verify => app.shares.verify = true,
        Pane::Detail => app.shares.verify = false,
        _ => {}
    }
    main::watch(app, &mut effects);
    effects
}

fn take(app: &mut App, msg: Msg, out: &mut Vec<Effect>) {
    match msg {
        Msg::Key { key, repeat } => press(app, key, repeat, out),
        Msg::Paste(_) | Msg::Mouse { .. } if app.is_too_small() => {}
        Msg::Paste(text) => paste(app, &text, out),
        Msg::Mouse { x, y, did } => mouse::take(app, x, y, did, out),
        Msg::Resize(w, h) => {
            app.size = (w, h);
            app.answering.unread();
        }
        Msg::Input { at, crowded } => app.answering.input(at, crowded),
        Msg::Drawn { at } => {
            let question = app.standing();
            app.answering.drawn(question, at);
        }
        Msg::Quiet { at } => held(app, at, out),
        Msg::Unread => app.answering.unread(),
        Msg::Now(now) => {
            app.now = now;
            app.requests.fade(now);
        }
        Msg::Reading(rows) => app.reading = Some(rows),
        Msg::Counts(counts) => {
            // What was not said before is said once where it is read; it stays among the notes.
            if let Some(before) = &app.counts
                && let Some(new) = counts.warnings.iter().find(|w| !before.warnings.contains(w))
            {
                app.said = Some((Tone::Bad, new.clone()));
            }
            app.counts = Some(*counts);
            app.reading = None;
        }
        Msg::FactsChanged => {
            out.extend(app.requests.refresh().map(Effect::LoadWindow));
            load_detail(app, out);
            dialog::reread(app, out);
        }
        Msg::Requests(window) => {
            let ask = app.requests.take(*window, app.now);
            out.extend(ask.map(Effect::LoadWindow));
        }
        Msg::NoRequests { seq } => app.requests.give_up(seq),
        Msg::Detail { request_id, detail } => {
            if app.requests.selected.as_ref() == Some(&request_id) {
                app.detail_gone = detail.is_none();
                app.detail = detail;
            }
        }
        Msg::Wire(wire) => {
            // Lines that come in don't move what is being read.
            if app.stderr_up > 0 {
                let before = app.wire.as_ref().map_or(0, |w| w.stderr_len());
                app.stderr_up += wire.stderr_len().saturating_sub(before);
                app.stderr_up = app.stderr_up.min(wire.stderr_len());
            }
            if app.call.is_none_or(|id| wire.calls.iter().all(|c| c.id != id)) {
                app.call = wire.calls.first().map(|c| c.id);
            }
            let was = app.link();
            ring(app, &wire);
            answered_late(app, &wire);
            let server = |w: &WireView| {
                (w.own_generation().map(|g| g.n), w.server.clone(), w.tools, w.calls_total)
            };
            let same = app.wire.as_ref().is_some_and(|w| server(w) == server(&wire));
            app.wire = Some(wire);
            if !same || was != app.link() {
                dialog::reread(app, out);
            }
            if was != app.link() && app.is_ready() && app.said.is_some() {
                app.said = Some((Tone::Good, "connected".into()));
            }
        }
        Msg::Paired(paired) => app.paired = paired,
        Msg::LookedUp { request_id, answer } => {
            app.finding.remove(&request_id);
            let came = answer.as_ref().map_or_else(Clone::clone, |f| format!("says {}", f.status));
            came_of(app, &request_id, came);
            app.said = Some(match answer {
                Ok(found) => {
                    let tone = if found.agrees == super::data::Agrees::Denied {
                        Tone::Bad
                    } else {
                        Tone::Good
                    };
                    let agrees = found.agrees.words();
                    (tone, format!("{request_id}: the server says {}{agrees}", found.status))
                }
                Err(why) => (Tone::Bad, format!("{request_id} could not be looked up: {why}")),
            });
            load_detail(app, out);
        }
        Msg::Planned { request_id, seq, plan } => dialog::planned(app, &request_id, seq, plan),
        Msg::Checked { request_id, seq, check } => {
            dialog::checked(app, &request_id, seq, *check, out);
        }
        Msg::Reissued { request_id, report } => dialog::reissued(app, &request_id, *report),
        Msg::Changed { request_id, anew } => dialog::changed(app, &request_id, *anew),
        Msg::Counted(news) => app.watch.take(news),
        Msg::Documents(documents) => over::documents(app, documents),
        Msg::Copied { what, text, kept } => over::copied(app, &what, text, kept),
        Msg::Asked(form) => {
            app.questions.push(*form);
            app.ring = (app.bell != Bell::Off).then(|| "the server asks something".into());
            // Nobody is interrupted in what they do: the footer names the key.
            if app.is_main() && app.questions.len() == 1 {
                app.overlay = Some(Overlay::Form);
            }
        }
        Msg::AskedNoMore { id } => {
            app.questions.retain(|q| q.id != id);
            if app.questions.is_empty() && matches!(app.overlay, Some(Overlay::Form)) {
                app.overlay = None;
            }
        }
        Msg::StderrFile(tail) => {
            if app.stderr_up > 0 {
                let grown = (tail.dropped + tail.lines.len() as u64)
                    .saturating_sub(app.stderr_file.dropped + app.stderr_file.lines.len() as u64);
                app.stderr_up = (app.stderr_up + grown as usize).min(tail.lines.len());
            }
            app.stderr_file = tail;
        }
        Msg::Timeline(window) => timeline::take(app, *window),
        Msg::Audited(news) => findings::take(app, news),
    }
}

fn load_detail(app: &App, out: &mut Vec<Effect>) {
    if let Some(id) = &app.requests.selected {
        out.push(Effect::LoadDetail { request_id: id.clone() });
    }
}

/// Remembers that something was sent.
pub(super) fn log(app: &mut App, what: String, request_id: &str) {
    let sent = Sent { at: app.now, what, request_id: request_id.to_owned(), came: None };
    app.sent.push(sent);
}

/// Remembers what came of the newest thing sent for a request.
pub(super) fn came_of(app: &mut App, request_id: &str, words: String) {
    let open = |s: &&mut Sent| s.request_id == request_id && s.came.is_none();
    if let Some(sent) = app.sent.iter_mut().rev().find(open) {
        sent.came = Some((app.now, words));
    }
}

/// A call of which nobody knew what became was answered after all: the log of what was sent says so.
fn answered_late(app: &mut App, wire: &WireView) {
    let Some(before) = app.wire.as_deref() else { return };
    let mut news = Vec::new();
    for call in wire.calls.iter().filter(|c| c.late && !c.is_agents()) {
        if before.calls.iter().any(|b| b.id == call.id && !b.late) {
            let request = call.request_id.clone().unwrap_or_default();
            let what = format!("late answer to {} {request}", call.tool).trim_end().to_owned();
            news.push((what, format!("{}: {}", call.word, call.why)));
        }
    }
    for (what, came) in news {
        let came = Some((app.now, came));
        app.sent.push(Sent { at: app.now, what, request_id: String::new(), came });
    }
}

/// A long call has ended, or a server: for the bell.
fn ring(app: &mut App, wire: &WireView) {
    let Some(before) = app.wire.as_deref().filter(|_| app.bell != Bell::Off) else { return };
    // What a recording tells of yesterday rings no bell.
    if wire.deaths() > before.deaths() && app.start.recording.is_none() {
        app.ring = Some("the server has ended".into());
    }
    let long = before.pending().filter(|c| c.sent_at.age_at(app.now) >= LONG_S);
    let ended = long.filter_map(|c| wire.calls.iter().find(|w| w.id == c.id && !w.is_pending()));
    for call in ended {
        let id = call.request_id.as_deref().unwrap_or(&call.tool);
        app.ring = Some(format!("{id}: {}", call.word));
    }
}

/// What the keys do, for the mouse too.
pub(super) fn perform(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    if app.can(action) {
        meant(app, app.context(), action, None, out);
    }
}

/// Does what a key or a click means here: at once, held back, or not at all.
fn meant(app: &mut App, context: Context, action: Action, key: Option<Key>, out: &mut Vec<Effect>) {
    match (asking::worth(app, context, action, key), key, app.standing()) {
        (None, ..) => act(app, context, action, out),
        (Some(Worth::Answer), ..) => {
            app.said = None;
            act(app, context, action, out);
        }
        (Some(Worth::Perhaps), Some(key), Some(question)) => app.answering.hold(key, question),
        _ => asking::too_early(app),
    }
}

/// The answer that was held back is one, if nothing has followed it.
fn held(app: &mut App, at: Duration, out: &mut Vec<Effect>) {
    let question = app.standing();
    if let Some(key) = app.answering.take_held(question, at) {
        let context = app.context();
        if let Some(action) = app.keymap.lookup(context, key).filter(|a| app.can(*a)) {
            act(app, context, action, out);
        }
    }
}

fn press(app: &mut App, key: Key, repeat: bool, out: &mut Vec<Effect>) {
    take_key(app, key, repeat, out);
    app.answering.pressed(key);
}

fn take_key(app: &mut App, key: Key, repeat: bool, out: &mut Vec<Effect>) {
    let context = app.context();
    // Foreign bytes can be anywhere: in every place, but where the key means something else.
    let here = app.keymap.lookup(context, key);
    if here.is_none() && app.keymap.lookup(Context::Main, key) == Some(Action::Redraw) {
        return redraw(app);
    }
    if app.is_too_small() {
        // What can't be seen can't be agreed to: only leaving works until there is room to show things.
        if let Some(a @ (Action::Quit | Action::QuitNow | Action::Close)) =
            app.keymap.lookup(context, key)
            && (a != Action::QuitNow || app.answering.after_silence())
        {
            act(app, context, a, out);
        }
        return;
    }
    match app.keymap.lookup(context, key).filter(|a| app.can(*a)) {
        // A held key moves; it never decides anything.
        Some(a) if repeat && !moves(a) => {}
        Some(a) => meant(app, context, a, Some(key), out),
        None => match context {
            Context::Filter => filter_key(app, key, out),
            Context::Reissue | Context::Arguments => dialog::type_key(app, key, out),
            Context::Search if matches!(app.overlay, Some(Overlay::Timeline)) => {
                timeline::type_key(app, key, out);
            }
            Context::Search | Context::Pick | Context::Form | Context::GoTo => {
                over::type_key(app, key);
            }
            // A key that is in the table and can't be used now says why; silence looks like a hang.
            context if context.is_screen() => {
                let action = app.keymap.lookup(context, key);
                if let Some(why) = action.and_then(|a| main::why_not(app, a)) {
                    app.said = Some((Tone::Plain, why));
                }
            }
            _ => {}
        },
    }
}

/// Draws everything anew; what is asked has to be read anew as well.
pub(super) fn redraw(app: &mut App) {
    app.redraw = true;
    app.answering.unread();
}

fn moves(action: Action) -> bool {
    use Action as A;
    matches!(action, A::Up | A::Down | A::PageUp | A::PageDown | A::NextPane | A::PrevPane)
        || matches!(action, A::Taller | A::Shorter | A::Wider | A::Narrower | A::Need | A::Again)
}

fn act(app: &mut App, context: Context, action: Action, out: &mut Vec<Effect>) {
    match context {
        context if context.is_screen() => {
            main::act(app, action, out);
        }
        Context::Filter => match action {
            Action::Details => app.overlay = None,
            Action::Back => {
                app.overlay = None;
                set_filter(app, String::new(), out);
            }
            Action::Quit => quit(app, out),
            other => scroll(app, Pane::Requests, other, out),
        },
        Context::Reissue | Context::Arguments => dialog::act(app, action, out),
        Context::Timeline => timeline::act(app, action, out),
        Context::Findings => findings::act(app, action, out),
        Context::Search if matches!(app.overlay, Some(Overlay::Timeline)) => {
            timeline::typing(app, action, out);
        }
        Context::Json | Context::Search | Context::Pick | Context::Form | Context::GoTo => {
            over::act(app, context, action, out);
        }
        Context::Reading => match action {
            Action::Close => app.overlay = None,
            Action::Quit => quit(app, out),
            Action::Search => over::search(app),
            other => read(app, other),
        },
        Context::Cancel => match action {
            Action::Cancel | Action::StopWaiting => main::give_up(app, action, out),
            Action::Quit => quit(app, out),
            Action::Close => app.overlay = None,
            other => read(app, other),
        },
        _ => match action {
            Action::QuitNow => leave(app, out),
            Action::Close => app.overlay = None,
            other => read(app, other),
        },
    }
}

fn filter_key(app: &mut App, key: Key, out: &mut Vec<Effect>) {
    let mut filter = app.requests.filter.clone();
    match (key.code, key.typed()) {
        (_, Some(c)) => filter.push(c),
        (Code::Backspace, _) => {
            filter.pop();
        }
        (Code::Char('u'), _) if key.ctrl => filter.clear(),
        _ => return,
    }
    set_filter(app, filter, out);
}

pub(super) fn set_filter(app: &mut App, filter: String, out: &mut Vec<Effect>) {
    out.extend(app.requests.set_filter(filter).map(Effect::LoadWindow));
}

fn paste(app: &mut App, text: &str, out: &mut Vec<Effect>) {
    match app.context() {
        Context::Filter => {
            let line = text.lines().next().unwrap_or_default();
            set_filter(app, format!("{}{line}", app.requests.filter), out);
        }
        Context::Reissue | Context::Arguments => dialog::paste(app, text, out),
        Context::Search if matches!(app.overlay, Some(Overlay::Timeline)) => {
            timeline::paste(app, text, out);
        }
        Context::Search | Context::Pick | Context::Form | Context::GoTo => over::paste(app, text),
        // Pasting on the main screen would press keys by accident.
        _ => {}
    }
}

pub(super) fn quit(app: &mut App, out: &mut Vec<Effect>) {
    let sending = app.dialog().is_some_and(|d| matches!(d.stage, Stage::Sending { .. }));
    let going_on = !app.in_flight().is_empty() || !app.perhaps_going_on().is_empty();
    if !going_on && app.sending.is_empty() && !sending {
        leave(app, out);
    } else {
        app.overlay = Some(Overlay::Quit);
    }
}

fn leave(app: &mut App, out: &mut Vec<Effect>) {
    app.quitting = true;
    out.push(Effect::Quit);
}
