//! What lies over the screen and is typed into or walked through: lists to choose from, JSON texts, searches, the
//! server's questions. Pure, like all of the update.

use super::app::{App, Overlay, Tone};
use super::form::Form;
use super::msg::Effect;
use super::pick::{Choice, Kind, Pick};
use super::tree::{Document, View};
use super::update;
use super::update_scroll::lines_of;
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use std::sync::Arc;

/// Takes an action of one of these places.
pub fn act(app: &mut App, context: Context, action: Action, out: &mut Vec<Effect>) {
    if action == Action::Quit {
        return update::quit(app, out);
    }
    match context {
        Context::Json => json(app, action, out),
        Context::Search => searching(app, action),
        Context::Pick => picking(app, action, out),
        Context::Form => asked(app, action, out),
        Context::GoTo => go_to(app, action, out),
        _ => {}
    }
}

/// A key that is no action: text.
pub fn type_key(app: &mut App, key: Key) {
    if is_unread(app) {
        return;
    }
    let clear = key.ctrl && key.code == Code::Char('u');
    match (key.typed(), key.code) {
        (Some(c), _) => edit(app, |t| t.push(c), Some(c)),
        (None, Code::Backspace) => {
            edit(app, |t| t.truncate(t.char_indices().last().map_or(0, |(i, _)| i)), None)
        }
        (None, _) if clear => edit(app, String::clear, None),
        _ => {}
    }
}

/// Pasted text, its first line.
pub fn paste(app: &mut App, text: &str) {
    let line = text.lines().next().unwrap_or_default();
    if is_unread(app) {
        return;
    }
    for c in line.chars().take(4_096) {
        edit(app, |t| t.push(c), Some(c));
    }
}

/// A server's question comes by itself: what is typed before it could be read was meant for something else.
fn is_unread(app: &App) -> bool {
    matches!(app.overlay, Some(Overlay::Form)) && !app.answering.readable(app.standing())
}

/// Changes whatever is typed into; `typed` is the character where it is one.
fn edit(app: &mut App, change: impl FnOnce(&mut String), typed: Option<char>) {
    match &mut app.overlay {
        Some(Overlay::GoTo(id)) => change(id),
        Some(Overlay::Help(r)) => {
            change(&mut r.query);
            r.scroll = 0;
        }
        Some(Overlay::Pick(pick)) => {
            change(&mut pick.query);
            pick.at = 0;
            preview(app);
        }
        Some(Overlay::Json { views, at }) => {
            if let Some(view) = views.get_mut(*at) {
                change(&mut view.query);
                view.seek(true);
            }
        }
        Some(Overlay::Form) => {
            let Some(form) = app.questions.first_mut() else { return };
            app.through.follows = true;
            match typed {
                Some(c) => form.type_char(c),
                None => {
                    if let Some(field) = form.field_mut() {
                        change(&mut field.value);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Begins to search.
pub fn search(app: &mut App) {
    if let Some(view) = app.json_mut() {
        view.typing = true;
    } else if let Some(Overlay::Help(r)) = &mut app.overlay {
        r.typing = true;
    }
}

fn searching(app: &mut App, action: Action) {
    let by = match action {
        Action::Up => -1,
        _ => 1,
    };
    if let Some(view) = app.json_mut() {
        match action {
            Action::Choose => view.typing = false,
            Action::Close => {
                view.typing = false;
                view.query.clear();
            }
            _ => view.step(by),
        }
        return;
    }
    let Some(Overlay::Help(r)) = &mut app.overlay else { return };
    match action {
        Action::Choose => r.typing = false,
        Action::Close => {
            r.typing = false;
            r.query.clear();
        }
        _ => r.scroll = r.scroll.saturating_add_signed(by),
    }
}

/// A request_id has been typed: there, whether the list has it or not.
fn go_to(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    let Some(Overlay::GoTo(id)) = app.overlay.take() else { return };
    let id = id.trim();
    if action != Action::Choose || id.is_empty() {
        return;
    }
    // A filter would take the selection back to what it shows.
    if app.requests.iter().all(|l| l.id() != id) {
        update::set_filter(app, String::new(), out);
    }
    app.requests.select(id);
    app.pane = super::app::Pane::Detail;
}

/// Texts have come.
pub fn documents(app: &mut App, documents: Vec<Arc<Document>>) {
    if let Some(Overlay::Json { views, at }) = &mut app.overlay {
        if documents.is_empty() {
            app.overlay = None;
            app.said = Some((Tone::Plain, "there is no result, answer or look-up to show".into()));
            return;
        }
        (*views, *at) = (documents.into_iter().map(View::new).collect(), 0);
    }
}

fn json(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    let page = isize::from((app.size.1 as i16 - 6).max(4));
    if action == Action::NextPane {
        if let Some(Overlay::Json { views, at }) = &mut app.overlay {
            *at = (*at + 1) % views.len().max(1);
        }
        return;
    }
    let Some(view) = app.json_mut() else { return };
    match action {
        Action::Close => app.overlay = None,
        Action::Fold => view.fold(),
        Action::FoldAll => view.fold_all(),
        Action::Raw => view.turn(),
        Action::Search => view.typing = true,
        Action::Again if !view.seek(false) => {
            app.said = Some((Tone::Plain, "it isn't in this text".into()));
        }
        Action::Copy => {
            let what = view.document.title.clone();
            out.push(Effect::Keep { what, text: view.document.text.clone() });
        }
        _ => {
            if let Some(by) = lines_of(action, page) {
                view.step(by);
            }
        }
    }
}

fn pick(app: &App) -> Option<&Pick> {
    match &app.overlay {
        Some(Overlay::Pick(p)) => Some(p),
        _ => None,
    }
}

/// Shows the theme that is selected in the list.
fn preview(app: &mut App) {
    let Some(p) = pick(app).filter(|p| p.kind == Kind::Themes) else { return };
    if let Some(Choice::Theme(at)) = p.items(app).get(p.at).map(|i| i.choice)
        && app.themes.broken(at).is_none()
    {
        app.themes.choose_at(at);
    }
}

fn picking(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    let Some(p) = pick(app) else { return };
    let (before, themes) = (p.before, p.kind == Kind::Themes);
    let items = p.items(app);
    let at = p.at;
    match action {
        Action::Up | Action::Down => {
            let last = items.len().saturating_sub(1);
            let to = match action {
                Action::Up => at.checked_sub(1).unwrap_or(last),
                _ if at >= last => 0,
                _ => at + 1,
            };
            if let Some(Overlay::Pick(p)) = &mut app.overlay {
                p.at = to;
            }
            preview(app);
        }
        Action::Choose => {
            let Some(item) = items.get(at) else { return };
            app.overlay = None;
            choose(app, item.choice, out);
        }
        _ => {
            if themes {
                app.themes.choose_at(before);
            }
            app.overlay = None;
        }
    }
}

fn choose(app: &mut App, choice: Choice, out: &mut Vec<Effect>) {
    match choice {
        Choice::Do(action) if app.can(action) => update::perform(app, action, out),
        Choice::Do(action) => {
            let why = super::update_main::why_not(app, action)
                .unwrap_or_else(|| "that can't be done now".into());
            app.said = Some((Tone::Plain, why));
        }
        Choice::Theme(at) if app.themes.broken(at).is_some() => {
            let why = app.themes.broken(at).unwrap_or_default().to_owned();
            app.said = Some((Tone::Bad, why));
        }
        Choice::Theme(at) => {
            app.themes.choose_at(at);
            app.said = Some((Tone::Plain, format!("theme {}", app.themes.chosen().1)));
        }
        Choice::Copy(what) => {
            if let Some(request_id) = app.requests.selected.clone() {
                out.push(Effect::Copy { what, request_id });
            }
        }
    }
}

/// A click on a line of a list or of a JSON text.
pub fn click(app: &mut App, line: usize, out: &mut Vec<Effect>) {
    if matches!(app.overlay, Some(Overlay::Timeline)) {
        return super::timeline::click(app, line, out);
    }
    if matches!(app.overlay, Some(Overlay::Findings)) {
        return super::findings::click(app, line, out);
    }
    if let Some(Overlay::Pick(p)) = &mut app.overlay {
        p.at = line;
        picking(app, Action::Choose, out);
    } else if let Some(view) = app.json_mut() {
        if view.at == line {
            view.fold();
        } else {
            view.at = line.min(view.len().saturating_sub(1));
        }
    } else if let (Some(Overlay::Form), Some(form)) = (&app.overlay, app.questions.first_mut()) {
        form.at = line.min(form.fields.len().saturating_sub(1));
    }
}

/// Something was put together for the clipboard.
pub fn copied(app: &mut App, what: &str, text: Result<String, String>, kept: Option<String>) {
    app.said = Some(match text {
        Ok(text) if text.len() > super::term::CLIPBOARD => match kept {
            Some(kept) => (
                Tone::Good,
                format!("{what}: too large for a terminal's clipboard, kept in {kept}"),
            ),
            None => (Tone::Bad, format!("{what}: too large for a terminal's clipboard")),
        },
        Ok(text) => {
            let kept = kept.map(|k| format!(", and kept in {k}")).unwrap_or_default();
            let said =
                format!("{what}: {} bytes to the terminal's clipboard (OSC 52){kept}", text.len());
            app.clipboard = Some(text);
            (Tone::Good, said)
        }
        Err(why) => (Tone::Bad, format!("{what} can't be copied: {why}")),
    });
}

fn asked(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    let Some(form) = app.questions.first_mut() else {
        app.overlay = None;
        return;
    };
    let n = form.fields.len().max(1);
    match action {
        Action::Up | Action::Down => {
            form.at = (form.at + if action == Action::Up { n - 1 } else { 1 }) % n;
            app.through.follows = true;
        }
        Action::Close => app.overlay = None,
        Action::Accept => match form.content() {
            Some(content) => answer(app, Some(content), out),
            None => {
                let wrong = |f: &super::form::Field| Form::wrong(f).is_some();
                form.at = form.fields.iter().position(wrong).unwrap_or(form.at);
                app.said =
                    Some((Tone::Bad, "a value is missing or wrong; nothing was sent".into()));
            }
        },
        Action::Decline => answer(app, None, out),
        other => super::update_scroll::read(app, other),
    }
}

fn answer(app: &mut App, content: Option<String>, out: &mut Vec<Effect>) {
    let form = app.questions.remove(0);
    let what = if content.is_some() { "an answer" } else { "a no" };
    update::log(app, format!("{what} to the server's question: {}", form.message), "");
    out.push(Effect::Answer { id: form.id, content });
    app.said = Some((Tone::Good, format!("{what} was sent")));
    if app.questions.is_empty() {
        app.overlay = None;
    }
}
