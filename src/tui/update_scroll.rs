//! Movement: in panes, in texts that are read, of borders. How far a text can be scrolled is known to the view, which
//! says so by [`clamp`].

use super::app::{App, Overlay, Pane, Reading};
use super::layout::{SHARE, Shape};
use super::msg::Effect;
use crate::keys::action::Action;

/// How far a key moves a border, in percent.
const STEP: u16 = 5;

/// How many lines a movement goes, where a page has so many; further than anything is long for the first and the last.
pub(super) fn lines_of(action: Action, page: isize) -> Option<isize> {
    Some(match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -page,
        Action::PageDown => page,
        Action::Top => isize::MIN / 2,
        Action::Bottom => isize::MAX / 2,
        _ => return None,
    })
}

/// Movement in a pane.
pub(super) fn scroll(app: &mut App, pane: Pane, action: Action, out: &mut Vec<Effect>) {
    let page = app.layout().page(pane) as isize;
    let Some(by) = lines_of(action, page) else { return };
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
        Pane::Verify => app.watch.step(by),
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
pub(super) fn border(app: &mut App, action: Action) {
    let layout = app.layout();
    let percent = |part: u16, whole: u16| part * 100 / whole.max(1);
    let by = |now: u16, more: bool| {
        let to = if more { now + STEP } else { now.saturating_sub(STEP) };
        Some(to.clamp(SHARE.0, SHARE.1))
    };
    let size = |pane| layout.pane(pane).map_or((0, 0), |r| (r.width, r.height));
    let more = matches!(action, Action::Taller | Action::Wider);
    let huge = layout.shape == Shape::Huge;
    let first = if huge { size(Pane::Requests).0 } else { 0 };
    match action {
        Action::Wider | Action::Narrower if huge && is_in(app.pane, FIRST) => {
            app.shares.first = by(percent(first, app.size.0), more);
        }
        Action::Wider | Action::Narrower => {
            let now = size(Pane::Detail).0.max(size(Pane::Verify).0 * u16::from(!huge));
            app.shares.left = by(percent(now, app.size.0 - first), more);
        }
        // Under the lower pane of a column is no border: the one above it moves the other way.
        _ if layout.shape != Shape::Stacked && is_in(app.pane, if huge { LAST } else { RIGHT }) => {
            let column: u16 = if huge { LAST } else { RIGHT }.iter().map(|p| size(*p).1).sum();
            let calls = percent(size(Pane::Calls).1, column);
            app.shares.calls = by(calls, more == (app.pane == Pane::Calls));
        }
        _ => {
            let now = percent(size(Pane::Requests).1, app.size.1.saturating_sub(4));
            app.shares.upper = by(now, more == (app.pane == Pane::Requests));
        }
    }
}

/// The panes of a column: the first and the last of three, the right one of two.
const FIRST: &[Pane] = &[Pane::Requests, Pane::Stderr];
const LAST: &[Pane] = &[Pane::Calls, Pane::Verify];
const RIGHT: &[Pane] = &[Pane::Calls, Pane::Stderr];

fn is_in(pane: Pane, column: &[Pane]) -> bool {
    column.contains(&pane)
}

/// Movement in a text that is read.
pub(super) fn read(app: &mut App, action: Action) {
    // A page of a question is what was shown of it: none of its lines is passed over.
    let page = match app.through.page {
        0 => usize::from(app.size.1 / 2).max(1),
        page => page,
    };
    let Some(by) = lines_of(action, page as isize) else { return };
    let scroll = match &mut app.overlay {
        Some(Overlay::Help(Reading { scroll, .. }) | Overlay::Log { scroll }) => scroll,
        Some(Overlay::Reissue(d)) => &mut d.scroll,
        Some(Overlay::Form | Overlay::Cancel(_) | Overlay::Quit) => {
            return app.through.scroll(by);
        }
        _ => return,
    };
    *scroll = scroll.saturating_add_signed(by);
}

/// What the view found out about how far texts can be scrolled, brought back so that the next key moves
/// from what is seen.
pub fn clamp(app: &mut App, detail: usize, overlay: usize) {
    app.detail_scroll = app.detail_scroll.min(detail);
    match &mut app.overlay {
        Some(Overlay::Help(Reading { scroll, .. }) | Overlay::Log { scroll }) => {
            *scroll = (*scroll).min(overlay);
        }
        Some(Overlay::Reissue(d)) => d.scroll = d.scroll.min(overlay),
        _ => {}
    }
}
