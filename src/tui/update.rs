//! The one way the state changes: `update(&mut App, Msg) -> Vec<Effect>`. Pure: no IO, no clock.

use super::action::{Action, Context};
use super::app::{App, Overlay, Pane, Reading, Sent, Tone};
use super::dialog::Stage;
use super::keys::{Code, Key};
use super::layout::{Layout, SHARE, Shape, Shares};
use super::list::Sort;
use super::msg::{Effect, Msg};
use super::pick::{Kind, Pick};
use super::wire::WireView;
use super::{update_dialog as dialog, update_mouse as mouse, update_over as over};
use crate::config::Bell;
use crate::judge::Verdict;

/// A call that ends after so many seconds is worth a bell.
const LONG_S: f64 = 10.0;
/// How far a key moves a border, in percent.
const STEP: u16 = 5;

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
    effects
}

fn take(app: &mut App, msg: Msg, out: &mut Vec<Effect>) {
    match msg {
        Msg::Key { key, repeat } => press(app, key, repeat, out),
        Msg::Paste(_) | Msg::Mouse { .. } if app.is_too_small() => {}
        Msg::Paste(text) => paste(app, &text, out),
        Msg::Mouse { x, y, did } => mouse::take(app, x, y, did, out),
        Msg::Resize(w, h) => app.size = (w, h),
        Msg::Now(now) => {
            app.now = now;
            app.requests.fade(now);
        }
        Msg::Counts(counts) => app.counts = Some(*counts),
        Msg::FactsChanged => {
            out.extend(app.requests.refresh().map(Effect::LoadWindow));
            load_detail(app, out);
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
            app.wire = Some(wire);
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
                    let tone = if found.agrees == Some(false) { Tone::Bad } else { Tone::Good };
                    let agrees = match found.agrees {
                        Some(true) => ", as the ledger does",
                        Some(false) => ", the ledger says otherwise",
                        None => "",
                    };
                    (tone, format!("{request_id}: the server says {}{agrees}", found.status))
                }
                Err(why) => (Tone::Bad, format!("{request_id} could not be looked up: {why}")),
            });
            load_detail(app, out);
        }
        Msg::Planned { request_id, seq, plan } => dialog::planned(app, &request_id, seq, plan),
        Msg::Checked { request_id, seq, check } => dialog::checked(app, &request_id, seq, *check),
        Msg::Reissued { request_id, report } => dialog::reissued(app, &request_id, *report),
        Msg::Verified(report) => match &mut app.overlay {
            Some(Overlay::Verify { report: slot, .. }) => *slot = Some(report),
            _ => {
                app.said = Some(match report {
                    Ok(v) => (if v.good { Tone::Good } else { Tone::Bad }, v.sentence),
                    Err(why) => (Tone::Bad, why),
                });
            }
        },
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
        Msg::Told(text) => app.said = Some((Tone::Plain, text)),
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

/// A long call has ended, or a server: for the bell.
fn ring(app: &mut App, wire: &WireView) {
    let Some(before) = app.wire.as_deref().filter(|_| app.bell != Bell::Off) else { return };
    if wire.deaths() > before.deaths() {
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
        act(app, app.context(), action, out);
    }
}

fn press(app: &mut App, key: Key, repeat: bool, out: &mut Vec<Effect>) {
    let context = app.context();
    if app.is_too_small() {
        // What can't be seen can't be agreed to: only leaving works until there is room to show things.
        if let Some(a @ (Action::Quit | Action::QuitNow | Action::Close)) =
            app.keymap.lookup(context, key)
        {
            act(app, context, a, out);
        }
        return;
    }
    match app.keymap.lookup(context, key).filter(|a| app.can(*a)) {
        // A held key moves; it never decides anything.
        Some(a) if repeat && !moves(a) => {}
        Some(a) => act(app, context, a, out),
        None => match context {
            Context::Filter => filter_key(app, key, out),
            Context::Reissue | Context::Arguments => dialog::type_key(app, key, out),
            Context::Search | Context::Pick | Context::Form => over::type_key(app, key),
            // A key that is in the table and can't be used now says why; silence looks like a hang.
            Context::Main | Context::Requests | Context::Detail | Context::Calls => {
                let action = app.keymap.lookup(context, key);
                if let Some(why) = action.and_then(|a| why_not(app, a)) {
                    app.said = Some((Tone::Plain, why));
                }
            }
            Context::Reading | Context::Json | Context::Quit => {}
        },
    }
}

fn moves(action: Action) -> bool {
    use Action as A;
    matches!(action, A::Up | A::Down | A::PageUp | A::PageDown | A::NextPane | A::PrevPane)
        || matches!(action, A::Taller | A::Shorter | A::Wider | A::Narrower | A::Need | A::Again)
}

/// Why a key of the main screen does nothing now.
pub(super) fn why_not(app: &App, action: Action) -> Option<String> {
    let said = match action {
        Action::Next => "no key does the next step: read what it says",
        Action::Wider | Action::Narrower | Action::Taller | Action::Shorter => {
            "there is no such border at this size"
        }
        Action::Answer => "the server has no open question",
        Action::Find | Action::Reissue => match (&app.start.endpoint, &app.requests.selected) {
            (None, _) => "no endpoint is attached: a look-up or a repeat needs the server",
            (_, None) => "no request is selected",
            _ if app.is_ready() => "a look-up of this request is under way",
            _ => "the server isn't reachable now; R connects again",
        },
        Action::Reconnect if app.start.endpoint.is_none() => "no endpoint is attached",
        Action::Reconnect => "the server is connected",
        Action::Verify => "no ledger is attached: there is nothing to count",
        _ => return None,
    };
    Some(said.into())
}

fn act(app: &mut App, context: Context, action: Action, out: &mut Vec<Effect>) {
    match context {
        Context::Main | Context::Requests | Context::Detail | Context::Calls => {
            main(app, action, out);
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
        Context::Json | Context::Search | Context::Pick | Context::Form => {
            over::act(app, context, action, out);
        }
        Context::Reading => match action {
            Action::Close => app.overlay = None,
            Action::Quit => quit(app, out),
            Action::Search => over::search(app),
            other => read(app, other),
        },
        Context::Quit => match action {
            Action::QuitNow => leave(app, out),
            _ => app.overlay = None,
        },
    }
}

fn main(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    app.said = None;
    if matches!(action, Action::Find | Action::Reissue | Action::Details) {
        app.requests.choose();
    }
    match action {
        Action::Quit => quit(app, out),
        Action::Help => {
            let place = Context::of(app.pane);
            app.overlay = Some(Overlay::Help(Reading { place, ..Reading::default() }));
        }
        Action::Palette => app.overlay = Some(Overlay::Pick(Pick::new(Kind::Palette, app))),
        Action::Themes => app.overlay = Some(Overlay::Pick(Pick::new(Kind::Themes, app))),
        Action::Copy => app.overlay = Some(Overlay::Pick(Pick::new(Kind::Copy, app))),
        Action::Log => app.overlay = Some(Overlay::Log { scroll: usize::MAX }),
        Action::Answer => app.overlay = Some(Overlay::Form),
        Action::Json => {
            let call = app.call.filter(|_| app.pane == Pane::Calls);
            if let Some(request_id) =
                app.requests.selected.clone().or_else(|| call.map(|_| String::new()))
            {
                app.overlay = Some(Overlay::Json { views: Vec::new(), at: 0 });
                out.push(Effect::Json { request_id, call });
            }
        }
        Action::Next => {
            if let Some(step) = app.next_step() {
                main(app, step, out);
            }
        }
        Action::Need => {
            if !app.requests.seek(|l| l.finding.verdicts.first().is_some_and(needs_a_person)) {
                app.said = Some((Tone::Good, "no request at hand needs a person".into()));
            }
        }
        Action::Sort | Action::Turn => {
            let (sort, turned) = app.requests.sorted();
            let at = Sort::ALL.iter().position(|s| *s == sort).unwrap_or(0);
            match action {
                Action::Sort => {
                    app.requests.set_sort(Sort::ALL[(at + 1) % Sort::ALL.len()], false);
                }
                _ => app.requests.set_sort(sort, !turned),
            }
            let (sort, turned) = app.requests.sorted();
            let turned = if turned { ", turned round" } else { "" };
            app.said = Some((Tone::Plain, format!("sorted by {}{turned}", sort.word())));
        }
        Action::Follow => {
            out.extend(app.requests.follow().map(Effect::LoadWindow));
            let on = if app.requests.is_following() { "follows" } else { "no longer follows" };
            app.said = Some((Tone::Plain, format!("the selection {on} the first line")));
        }
        Action::Pause => {
            let paused = !app.requests.is_paused();
            out.extend(app.requests.pause(paused).map(Effect::LoadWindow));
            let what =
                if paused { "rows stand still; p lets them move" } else { "rows move again" };
            app.said = Some((Tone::Plain, what.into()));
        }
        Action::Zoom => app.shares.zoom = !app.shares.zoom,
        Action::Even => app.shares = Shares::default(),
        Action::Taller | Action::Shorter | Action::Wider | Action::Narrower => {
            border(app, action);
        }
        Action::Mouse => {
            app.mouse = !app.mouse;
            let on = if app.mouse { "on" } else { "off: the terminal selects text" };
            app.said = Some((Tone::Plain, format!("the mouse is {on}")));
        }
        Action::Suspend => app.suspending = true,
        Action::Filter => {
            app.pane = Pane::Requests;
            app.overlay = Some(Overlay::Filter);
        }
        Action::Verify => {
            app.overlay = Some(Overlay::Verify { report: None, scroll: 0 });
            out.push(Effect::Verify);
        }
        Action::Reconnect => {
            app.said = Some((Tone::Plain, "connecting…".into()));
            log(app, "connect again".into(), "");
            out.push(Effect::Reconnect);
        }
        Action::Find => {
            if let Some(id) = app.requests.selected.clone() {
                app.said = Some((Tone::Plain, format!("looking {id} up at the server…")));
                app.finding.insert(id.clone());
                log(app, format!("look-up of {id}"), &id);
                out.push(Effect::Find { request_id: id });
            }
        }
        Action::Reissue => dialog::open(app, out),
        Action::Details => {
            if app.pane == Pane::Calls
                && let Some(id) = app.call_request().map(str::to_owned)
            {
                app.requests.select(&id);
            }
            app.pane = Pane::Detail;
        }
        Action::Back if app.shares.zoom => app.shares.zoom = false,
        Action::Back if app.pane != Pane::Requests => app.pane = Pane::Requests,
        Action::Back => set_filter(app, String::new(), out),
        Action::NextPane | Action::PrevPane => {
            let at = Pane::ALL.iter().position(|p| *p == app.pane).unwrap_or(0);
            let by = if action == Action::NextPane { 1 } else { Pane::ALL.len() - 1 };
            app.pane = Pane::ALL[(at + by) % Pane::ALL.len()];
        }
        other => scroll(app, app.pane, other, out),
    }
}

/// Movement in a pane.
fn scroll(app: &mut App, pane: Pane, action: Action, out: &mut Vec<Effect>) {
    let page = app.layout().page(pane) as isize;
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -page,
        Action::PageDown => page,
        Action::Top => isize::MIN / 2,
        Action::Bottom => isize::MAX / 2,
        _ => return,
    };
    match pane {
        Pane::Requests => {
            let ask = match action {
                Action::Top => app.requests.jump(false),
                Action::Bottom => app.requests.jump(true),
                _ => app.requests.step(by),
            };
            out.extend(ask.map(Effect::LoadWindow));
        }
        // How far it can go depends on the text; the view says so by `clamp`.
        Pane::Detail => app.detail_scroll = app.detail_scroll.saturating_add_signed(by),
        Pane::Calls => {
            let Some(wire) = &app.wire else { return };
            let at = wire.calls.iter().position(|c| Some(c.id) == app.call).unwrap_or(0);
            let last = wire.calls.len().saturating_sub(1);
            let to = at.saturating_add_signed(by).min(last);
            app.call = wire.calls.get(to).map(|c| c.id);
        }
        Pane::Stderr => {
            let lines = match app.start.stderr_file {
                Some(_) => app.stderr_file.lines.len(),
                None => app.wire.as_ref().map_or(0, |w| w.stderr_len()),
            };
            let most = lines.saturating_sub(page as usize);
            app.stderr_up = app.stderr_up.saturating_add_signed(-by).min(most);
        }
    }
}

/// Moves the border that the key is about: under the pane, or between the two columns.
fn border(app: &mut App, action: Action) {
    let Layout { shape, requests, detail, calls, stderr, .. } = app.layout();
    let percent = |part: u16, whole: u16| part * 100 / whole.max(1);
    let by = |now: u16, more: bool| {
        let to = if more { now + STEP } else { now.saturating_sub(STEP) };
        Some(to.clamp(SHARE.0, SHARE.1))
    };
    let more = matches!(action, Action::Taller | Action::Wider);
    let whole = app.size.1.saturating_sub(4);
    match action {
        Action::Wider | Action::Narrower => {
            let now = percent(detail.map_or(0, |r| r.width), app.size.0);
            app.shares.left = by(now, more);
        }
        _ if shape == Shape::Wide && matches!(app.pane, Pane::Calls | Pane::Stderr) => {
            let (c, s) = (calls.map_or(0, |r| r.height), stderr.map_or(0, |r| r.height));
            // Under stderr is no border: the one above it moves the other way.
            app.shares.calls = by(percent(c, c + s), more == (app.pane == Pane::Calls));
        }
        _ => {
            let now = percent(requests.map_or(0, |r| r.height), whole);
            app.shares.upper = by(now, more == (app.pane == Pane::Requests));
        }
    }
}

/// Whether a verdict waits for somebody to do something.
fn needs_a_person(v: &Verdict) -> bool {
    !matches!(
        v,
        Verdict::Finished
            | Verdict::InFlight
            | Verdict::Working
            | Verdict::Waiting
            | Verdict::Cancelled
            | Verdict::NotKnown
    )
}

/// Movement in a text that is read.
fn read(app: &mut App, action: Action) {
    let page = isize::try_from(app.size.1 / 2).unwrap_or(8).max(1);
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -page,
        Action::PageDown => page,
        Action::Top => isize::MIN / 2,
        Action::Bottom => isize::MAX / 2,
        _ => return,
    };
    let scroll = match &mut app.overlay {
        Some(Overlay::Help(Reading { scroll, .. }) | Overlay::Verify { scroll, .. }) => scroll,
        Some(Overlay::Log { scroll }) => scroll,
        Some(Overlay::Reissue(d)) => &mut d.scroll,
        _ => return,
    };
    *scroll = scroll.saturating_add_signed(by);
}

/// What the view found out about how far texts can be scrolled, brought back so that the next key moves
/// from what is seen.
pub fn clamp(app: &mut App, detail: usize, overlay: usize) {
    app.detail_scroll = app.detail_scroll.min(detail);
    match &mut app.overlay {
        Some(
            Overlay::Help(Reading { scroll, .. })
            | Overlay::Verify { scroll, .. }
            | Overlay::Log { scroll },
        ) => {
            *scroll = (*scroll).min(overlay);
        }
        Some(Overlay::Reissue(d)) => d.scroll = d.scroll.min(overlay),
        _ => {}
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

fn set_filter(app: &mut App, filter: String, out: &mut Vec<Effect>) {
    out.extend(app.requests.set_filter(filter).map(Effect::LoadWindow));
}

fn paste(app: &mut App, text: &str, out: &mut Vec<Effect>) {
    match app.context() {
        Context::Filter => {
            let line = text.lines().next().unwrap_or_default();
            set_filter(app, format!("{}{line}", app.requests.filter), out);
        }
        Context::Reissue | Context::Arguments => dialog::paste(app, text, out),
        Context::Search | Context::Pick | Context::Form => over::paste(app, text),
        // Pasting on the main screen would press keys by accident.
        _ => {}
    }
}

pub(super) fn quit(app: &mut App, out: &mut Vec<Effect>) {
    let sending = app.dialog().is_some_and(|d| matches!(d.stage, Stage::Sending { .. }));
    if app.in_flight().is_empty() && app.sending.is_empty() && !sending {
        leave(app, out);
    } else {
        app.overlay = Some(Overlay::Quit);
    }
}

fn leave(app: &mut App, out: &mut Vec<Effect>) {
    app.quitting = true;
    out.push(Effect::Quit);
}
