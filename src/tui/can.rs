//! What works now: whether an action does something in this state, and which one is the selected request's next step.
//! The footer, the help and the keys ask here; nothing is changed.

use super::app::{App, Overlay, Pane};
use super::data::Question;
use super::layout;
use crate::journal::LinkState;
use crate::judge::Act;
use crate::keys::action::{Action, Context, Entry, TABLE};

impl App {
    /// The next step of the selected request, where a key does it.
    pub fn next_step(&self) -> Option<Action> {
        let step = match self.requests.line()?.finding.next.act()? {
            Act::Send => Action::Reissue,
            Act::LookUp => Action::Find,
        };
        self.can(step).then_some(step)
    }

    /// The entries that belong in the footer now, in order: only what works.
    pub fn footer(&self) -> Vec<&'static Entry> {
        let context = self.context();
        let here = |e: &&Entry| e.context == context || Some(e.context) == context.parent();
        TABLE.iter().filter(here).filter(|e| e.footer && self.can(e.action)).collect()
    }

    /// Whether `action` does something now. The footer shows what does.
    pub fn can(&self, action: Action) -> bool {
        if matches!(self.overlay, Some(Overlay::Timeline)) {
            return self.can_in_timeline(action);
        }
        let selected = self.requests.selected.is_some();
        match action {
            Action::Find => {
                selected
                    && self.is_ready()
                    && self.requests.selected.as_ref().is_some_and(|id| !self.finding.contains(id))
            }
            Action::Reissue => selected && self.is_ready(),
            Action::Findings => self.start.recording.is_some(),
            Action::Details if matches!(self.overlay, Some(Overlay::Findings)) => {
                self.findings.selected().is_some()
            }
            Action::Details if self.is_main() => match self.pane {
                Pane::Requests => selected,
                Pane::Calls => self.call_request().is_some(),
                Pane::Verify => self.watch.selected().is_some(),
                Pane::Detail | Pane::Stderr => false,
            },
            Action::Next => self.next_step().is_some(),
            Action::Json => match self.pane {
                Pane::Calls => self.call.is_some(),
                _ => selected,
            },
            Action::Copy => selected || self.json().is_some(),
            Action::Need | Action::Follow => !self.requests.is_empty(),
            Action::Log => true,
            Action::Answer => !self.questions.is_empty(),
            Action::Search => {
                matches!(self.overlay, Some(Overlay::Help(_))) || self.json().is_some()
            }
            Action::Fold | Action::FoldAll => self.json().is_some_and(|v| !v.raw),
            Action::Raw => self.json().is_some_and(|v| v.document.is_json),
            Action::Again => self.json().is_some_and(|v| !v.query.is_empty()),
            Action::Wider | Action::Narrower => {
                matches!(self.layout().shape, layout::Shape::Wide | layout::Shape::Huge)
            }
            Action::Taller | Action::Shorter => {
                !matches!(self.layout().shape, layout::Shape::Single | layout::Shape::TooSmall)
            }
            Action::Even => !self.shares.is_own(),
            Action::Cancel | Action::StopWaiting => self.pending_call().is_some(),
            Action::Filter => self.start.ledger || !self.requests.is_empty(),
            Action::Verify => self.start.ledger,
            Action::TimeLine => self.start.recording.is_some() || self.start.endpoint.is_some(),
            Action::Reconnect => match self.link() {
                Some(LinkState::Ready | LinkState::Connecting) => false,
                Some(_) => true,
                None => false,
            },
            Action::Back => {
                self.overlay.is_some()
                    || self.pane != Pane::Requests
                    || self.shares.zoom
                    || !self.requests.filter.is_empty()
            }
            Action::Send => match self.question() {
                Some(Question::None | Question::Preview) => true,
                Some(Question::Type) => {
                    self.dialog().is_some_and(|d| d.release(Question::Type).is_some())
                }
                _ => false,
            },
            Action::Agree => self.question() == Some(Question::Ask),
            Action::EditArgs => self.question().is_some() || self.context() == Context::Arguments,
            _ => true,
        }
    }

    fn can_in_timeline(&self, action: Action) -> bool {
        let row = self.timeline.row();
        match action {
            Action::Source => self.start.recording.is_some() && self.start.endpoint.is_some(),
            Action::Details => row.is_some_and(|r| r.request_id.is_some()),
            Action::Copy => row.is_some(),
            Action::Findings => self.start.recording.is_some(),
            _ => true,
        }
    }
}
