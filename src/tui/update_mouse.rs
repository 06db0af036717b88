//! The mouse's part of the update. It selects, scrolls, presses what the footer names, and never sends: a click on a
//! key of the re-issue dialog that would is not taken.

use super::app::{App, Hit, Overlay, Pane};
use super::msg::{Effect, Mouse};
use super::update::perform;
use super::update_over as over;
use crate::keys::action::Action;
use ratatui::layout::Position;

/// Lines that the wheel moves.
const WHEEL: usize = 3;

/// Takes what the mouse did at a column and row.
pub fn take(app: &mut App, x: u16, y: u16, did: Mouse, out: &mut Vec<Effect>) {
    if !app.mouse {
        return;
    }
    let at = |r: &ratatui::layout::Rect| r.contains(Position::new(x, y));
    let under: Vec<Hit> =
        app.hits.iter().rev().filter(|(r, _)| at(r)).map(|(_, h)| h.clone()).collect();
    let action = match did {
        Mouse::Click => return click(app, &under, out),
        Mouse::ScrollUp => Action::Up,
        Mouse::ScrollDown => Action::Down,
    };
    // The wheel moves the pane under it; under a box it moves the box.
    if app.overlay.is_none()
        && let Some(pane) = under.iter().find_map(|h| match h {
            Hit::Pane(p) => Some(*p),
            _ => None,
        })
    {
        app.pane = pane;
    }
    for _ in 0..WHEEL {
        perform(app, action, out);
    }
}

fn click(app: &mut App, under: &[Hit], out: &mut Vec<Effect>) {
    let free = matches!(app.overlay, None | Some(Overlay::Filter));
    for hit in under {
        match hit {
            Hit::Key(action) => {
                // What sends is answered by the keyboard.
                if !matches!(action, Action::Send | Action::Agree | Action::Accept) {
                    perform(app, *action, out);
                }
                return;
            }
            Hit::Line(line) => return over::click(app, *line, out),
            Hit::Request(id, at) if free => {
                let again = app.requests.position() == Some(*at)
                    && app.requests.selected.as_ref() == Some(id);
                app.requests.select_at(id, *at);
                if again && app.pane == Pane::Requests {
                    perform(app, Action::Details, out);
                }
                app.pane = Pane::Requests;
                return;
            }
            Hit::Call(id) if free => {
                app.call = Some(*id);
                app.pane = Pane::Calls;
                return;
            }
            Hit::Found(at) if free => {
                let again = app.watch.at == *at && app.pane == Pane::Verify;
                (app.watch.at, app.pane) = (*at, Pane::Verify);
                if again {
                    perform(app, Action::Details, out);
                }
                return;
            }
            Hit::Pane(pane) if free => {
                app.pane = *pane;
                return;
            }
            _ => {}
        }
    }
}
