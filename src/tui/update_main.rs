//! What the actions of the main screen and its panes do, and why one does nothing now. Pure, like all of the update.

use super::app::{App, Overlay, Pane, Reading, Tone};
use super::layout::Shares;
use super::list::Sort;
use super::msg::Effect;
use super::pick::{Kind, Pick};
use super::update::{log, quit, set_filter};
use super::update_dialog as dialog;
use super::update_scroll::{border, scroll};
use super::watch::Run;
use crate::judge::Verdict;
use crate::keys::action::{Action, Context};

pub(super) fn act(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    app.said = None;
    if matches!(action, Action::Find | Action::Reissue | Action::Details) {
        app.requests.choose();
    }
    match action {
        Action::Quit => quit(app, out),
        Action::Help => {
            let place = app.pane.context();
            app.overlay = Some(Overlay::Help(Reading { place, ..Reading::default() }));
        }
        Action::Palette => app.overlay = Some(Overlay::Pick(Pick::new(Kind::Palette, app))),
        Action::Themes => app.overlay = Some(Overlay::Pick(Pick::new(Kind::Themes, app))),
        Action::Copy => app.overlay = Some(Overlay::Pick(Pick::new(Kind::Copy, app))),
        Action::TimeLine => super::timeline::open(app, out),
        Action::Findings => super::findings::open(app, out),
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
                act(app, step, out);
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
            let (newer, older) = app.requests.more();
            let some = match newer || older {
                true => {
                    format!(": only the {} rows at hand, the ledger has more", app.requests.len())
                }
                false => String::new(),
            };
            app.said = Some((Tone::Plain, format!("sorted by {}{turned}{some}", sort.word())));
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
        Action::Redraw => super::update::redraw(app),
        Action::GoTo => app.overlay = Some(Overlay::GoTo(String::new())),
        Action::Filter => {
            app.pane = Pane::Requests;
            app.overlay = Some(Overlay::Filter);
        }
        Action::Verify => {
            app.watch.asked = true;
            // Where it counts already, it counts again now.
            if app.watch.on {
                out.push(Effect::Verify { on: true });
            }
            app.pane = Pane::Verify;
        }
        Action::Cancel => app.overlay = app.pending_call().map(|c| Overlay::Cancel(c.id)),
        Action::StopWaiting => give_up(app, action, out),
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
            let there = match app.pane {
                Pane::Calls => app.call_request(),
                Pane::Verify => app.watch.selected(),
                _ => None,
            };
            if let Some(id) = there.map(str::to_owned) {
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

/// Why a key of the main screen does nothing now.
pub(super) fn why_not(app: &App, action: Action) -> Option<String> {
    let key = |action| app.keymap.word(Context::Main, action);
    let said = match action {
        Action::Next => "no key does the next step: read what it says",
        Action::Wider | Action::Narrower | Action::Taller | Action::Shorter => {
            "there is no such border at this size"
        }
        Action::Answer => "the server has no open question",
        Action::Cancel | Action::StopWaiting => "no call waits here for an answer",
        Action::Find | Action::Reissue => match (&app.start.endpoint, &app.requests.selected) {
            (None, _) => "no endpoint is attached: a look-up or a repeat needs the server",
            (_, None) => {
                return Some(format!(
                    "no request is selected: {} takes a request_id",
                    key(Action::GoTo)
                ));
            }
            _ if app.is_ready() => "a look-up of this request is under way",
            _ => {
                let r = key(Action::Reconnect);
                return Some(format!("the server isn't reachable now; {r} connects again"));
            }
        },
        Action::Reconnect if app.start.endpoint.is_none() => "no endpoint is attached",
        Action::Reconnect => "the server is connected",
        Action::TimeLine => "no recording and no endpoint is attached: there are no events",
        Action::Findings => "no recording is attached: --recording FILE is what can be audited",
        Action::Verify => "no ledger is attached: there is nothing to count",
        _ => return None,
    };
    Some(said.into())
}

/// Gives the pending call up: the server is told, or redial only stops waiting for it and keeps listening.
pub(super) fn give_up(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    let Some(call) = app.pending_call() else {
        app.overlay = None;
        return;
    };
    let (id, tell) = (call.id, action == Action::Cancel);
    let request = call.request_id.clone().unwrap_or_default();
    let what = format!("{} {request}", call.tool).trim_end().to_owned();
    app.overlay = None;
    let said = match tell {
        true => format!(
            "{what}: the server is told that it is no longer wanted; what became of it is unknown"
        ),
        false => format!("{what}: no longer waited for; an answer that comes is still taken"),
    };
    let done = if tell { "cancelled" } else { "stopped waiting for" };
    log(app, format!("{done}: {what}"), "");
    app.said = Some((Tone::Plain, said));
    out.push(Effect::GiveUp { call: id, tell });
}

/// The counting goes on as long as somebody who asked for it sees it.
pub(super) fn watch(app: &mut App, out: &mut Vec<Effect>) {
    let seen = app.watch.asked && app.layout().verify.is_some();
    if seen != app.watch.on {
        app.watch.on = seen;
        if !seen {
            app.watch.run = Run::Off;
        }
        out.push(Effect::Verify { on: seen });
    }
}
