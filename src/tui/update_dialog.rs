//! The re-issue dialog's part of the update: open, check, answer, report. The one place from which
//! [`Effect::Reissue`] comes.

use super::app::{App, Overlay, Tone};
use super::data::{Anew, Check, Plan, Question, Report};
use super::dialog::{Dialog, Review, Stage};
use super::msg::Effect;
use crate::keys::action::Action;
use crate::keys::{Code, Key};
use crate::model::arguments::{Choice, choose, from_text, with_request_id};

/// Opens it for the selected request and asks what a repeat would be.
pub fn open(app: &mut App, out: &mut Vec<Effect>) {
    let Some(request_id) = app.requests.selected.clone() else { return };
    if app.sending.contains(&request_id) {
        app.said =
            Some((Tone::Plain, format!("{request_id} is being sent; its answer is awaited")));
        return;
    }
    app.seq += 1;
    app.overlay = Some(Overlay::Reissue(Box::new(Dialog::new(request_id.clone(), app.seq))));
    out.push(Effect::Plan { request_id, seq: app.seq });
}

fn dialog_mut(app: &mut App) -> Option<&mut Dialog> {
    match &mut app.overlay {
        Some(Overlay::Reissue(d)) => Some(d),
        _ => None,
    }
}

/// The dialog that asked question `seq`, if it is still open.
fn asker<'a>(app: &'a mut App, request_id: &str, seq: u64) -> Option<&'a mut Dialog> {
    dialog_mut(app).filter(|d| d.request_id == request_id && d.seq == seq)
}

/// What a repeat would be has been found out.
pub fn planned(app: &mut App, request_id: &str, seq: u64, plan: Result<Box<Plan>, String>) {
    let Some(dialog) = asker(app, request_id, seq) else { return };
    if !matches!(dialog.stage, Stage::Preparing) {
        return;
    }
    dialog.stage = match plan {
        Ok(plan) => Stage::Review(Box::new(Review::new(*plan))),
        Err(why) => Stage::Impossible(why),
    };
}

/// Arguments have been judged, or the facts of a standing question were read again.
pub fn checked(app: &mut App, request_id: &str, seq: u64, check: Check, out: &mut Vec<Effect>) {
    let Some(review) = asker(app, request_id, seq).and_then(Dialog::review_mut) else { return };
    review.judged(check);
    if review.rereading.take() == Some(true) {
        reread(app, out);
    }
}

/// Something changed somewhere: a question that stands is held against the facts as they are now.
pub fn reread(app: &mut App, out: &mut Vec<Effect>) {
    let Some(dialog) = dialog_mut(app) else { return };
    let (request_id, seq) = (dialog.request_id.clone(), dialog.seq);
    let Some(review) = dialog.review_mut().filter(|r| r.check.is_some()) else { return };
    // One look at a time, and another one when more has come meanwhile.
    review.rereading = Some(review.rereading.is_some());
    if review.rereading == Some(false) {
        let (tool, args) = (review.plan.tool.clone(), review.args_text());
        out.push(Effect::Check { request_id, seq, tool, args });
    }
}

/// Nothing was sent: something in the question is another thing by now. It is asked anew, where it stood; elsewhere the
/// person is told.
pub fn changed(app: &mut App, request_id: &str, anew: Anew) {
    app.sending.remove(request_id);
    let what = anew.changes.join("; ");
    super::update::came_of(app, request_id, format!("not sent: things had changed: {what}"));
    let waiting = dialog_mut(app)
        .filter(|d| d.request_id == request_id && matches!(d.stage, Stage::Sending { .. }));
    if let Some(dialog) = waiting {
        dialog.scroll = 0;
        let mut review = Review::new(*anew.plan);
        review.changes = anew.changes;
        dialog.stage = Stage::Review(Box::new(review));
        return;
    }
    app.said = Some((Tone::Bad, format!("{request_id} was not sent, things had changed: {what}")));
}

/// An answer has come, or will not.
pub fn reissued(app: &mut App, request_id: &str, report: Result<Report, String>) {
    app.sending.remove(request_id);
    let came = match &report {
        Ok(r) => {
            let effects =
                r.effects.map(|(a, b)| format!(", effects {a} → {b}")).unwrap_or_default();
            format!("{}, now {}{effects}", r.outcome, r.state_after)
        }
        Err(why) => format!("not sent: {why}"),
    };
    super::update::came_of(app, request_id, came);
    let waiting = dialog_mut(app)
        .filter(|d| d.request_id == request_id && matches!(d.stage, Stage::Sending { .. }));
    if let Some(dialog) = waiting {
        dialog.scroll = 0;
        dialog.stage = Stage::Done(Box::new(report));
        return;
    }
    app.said = Some(match report {
        Ok(r) => {
            let twice = r.ran_twice();
            let tone = if r.outcome == "ok" && !twice { Tone::Good } else { Tone::Bad };
            let effects = match r.effects {
                Some((before, after)) if twice => {
                    format!("; effects {before} → {after}: its work ran more than once")
                }
                Some((before, after)) => format!("; effects {before} → {after}"),
                None => String::new(),
            };
            (tone, format!("{request_id}: {}, now {}{effects}", r.outcome, r.state_after))
        }
        Err(why) => (Tone::Bad, format!("{request_id} was not sent: {why}")),
    });
}

/// Takes an action of the dialog.
pub fn act(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    match action {
        Action::Close => app.overlay = None,
        Action::Quit => super::update::quit(app, out),
        Action::Send => {
            let answer = match app.question() {
                Some(Question::Type) => Question::Type,
                _ => Question::Preview,
            };
            send(app, answer, out);
        }
        Action::Agree => send(app, Question::Ask, out),
        Action::EditArgs => {
            if let Some(review) = dialog_mut(app).and_then(Dialog::review_mut) {
                review.editing = !review.editing;
            }
        }
        Action::Undo => {
            edit(app, out, |review| {
                review.args.undo();
            });
        }
        _ => super::update_scroll::read(app, action),
    }
}

fn send(app: &mut App, answer: Question, out: &mut Vec<Effect>) {
    let now = app.now;
    let Some(dialog) = dialog_mut(app) else { return };
    if let Some(call) = dialog.release(answer) {
        dialog.stage = Stage::Sending { since: now };
        app.sending.insert(call.request_id.clone());
        let what = format!("{} {}", call.tool, call.request_id);
        super::update::log(app, what, &call.request_id);
        out.push(Effect::Reissue(call));
    }
}

/// A key that is no action: text for the arguments, or for the typed answer.
pub fn type_key(app: &mut App, key: Key, out: &mut Vec<Effect>) {
    // What was typed before the question could be read is no answer to it.
    let readable = app.answering.readable(app.standing());
    let Some(review) = dialog_mut(app).and_then(Dialog::review_mut) else { return };
    if review.editing {
        return edit(app, out, |review| match key.typed() {
            Some(c) => review.insert(c.encode_utf8(&mut [0; 4])),
            None => {
                review.args.input(key.to_input());
            }
        });
    }
    if readable && review.question() == Some(Question::Type) {
        match (key.code, key.typed()) {
            (_, Some(c)) => review.typed.push(c),
            (Code::Backspace, _) => {
                review.typed.pop();
            }
            (Code::Char('u'), _) if key.ctrl => review.typed.clear(),
            _ => {}
        }
    }
}

/// Pasted text goes to the arguments, never into an answer: the word has to be typed. From an agent's log the
/// arguments of this request are picked out; anything else is inserted as it is.
pub fn paste(app: &mut App, text: &str, out: &mut Vec<Effect>) {
    let Some(id) = app.dialog().map(|d| d.request_id.clone()) else { return };
    let found = from_text(text, "what was pasted", &id, &app.start.look_up);
    let detail = app.detail.as_deref().map(|d| &d.line).filter(|l| l.id() == id);
    let hash = detail.and_then(|l| l.row.args_hash.clone());
    let first = found.first().cloned();
    let spelling = detail.map(|l| l.row.id_as).unwrap_or_default();
    let right = match choose(found, hash.as_deref(), |_| Default::default(), None) {
        Choice::One(c) => Some(c),
        _ => first,
    };
    // Arguments without the request_id are this request's, as `--args` takes them.
    let whole = right.map(|c| c.args).or_else(|| with_request_id(text.trim(), &id, spelling));
    edit(app, out, |review| match whole {
        Some(args) => review.replace(&args),
        None => review.insert(text),
    });
}

/// Changes the arguments; what changed is judged again, and until then nothing can be sent.
fn edit(app: &mut App, out: &mut Vec<Effect>, change: impl FnOnce(&mut Review)) {
    let seq = app.seq + 1;
    let Some(dialog) = dialog_mut(app) else { return };
    let request_id = dialog.request_id.clone();
    let Some(review) = dialog.review_mut() else { return };
    let before = review.args_text();
    change(review);
    let args = review.args_text();
    if args == before {
        return;
    }
    review.check = None;
    review.changes.clear();
    review.rereading = None;
    review.typed.clear();
    let tool = review.plan.tool.clone();
    dialog.seq = seq;
    app.seq = seq;
    out.push(Effect::Check { request_id, seq, tool, args });
}
