//! All state of the screen, and the questions asked of it (what works now, when time matters next).
//! Changed only by `update`; never does IO, never asks a clock.

use super::action::{Action, Context};
use super::data::{Counts, DemoInfo, Detail, Paired, Question, Verified};
use super::dialog::{Dialog, Stage};
use super::layout::{self, Layout};
use super::list::Requests;
use super::wire::{Reach, WireView};
use crate::journal::{CallId, LinkState};
use crate::judge::State;
use crate::time::Time;
use std::collections::HashSet;
use std::sync::Arc;

/// What can have the keys on the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    Requests,
    Detail,
    Calls,
    Stderr,
}

impl Pane {
    /// In the order of the Tab key.
    pub const ALL: [Pane; 4] = [Pane::Requests, Pane::Detail, Pane::Calls, Pane::Stderr];
    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Requests => "requests",
            Pane::Detail => "detail",
            Pane::Calls => "calls",
            Pane::Stderr => "stderr",
        }
    }
}

/// What lies over the main screen.
#[derive(Debug)]
pub enum Overlay {
    /// The filter line is being typed.
    Filter,
    /// The keys.
    Help {
        scroll: usize,
    },
    /// The outcome of `verify`; `None` while it runs.
    Verify {
        report: Option<Result<Box<Verified>, String>>,
        scroll: usize,
    },
    Reissue(Box<Dialog>),
    /// Really quit?
    Quit,
}

/// How a line above the footer is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
}

/// What the screen needs to know from the start.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// A ledger is attached.
    pub ledger: bool,
    /// An endpoint is.
    pub endpoint: Option<Reach>,
    pub demo: Option<DemoInfo>,
    pub read_only: bool,
    /// The server's look-up tool.
    pub look_up: String,
}

/// See the module's head.
#[derive(Debug)]
pub struct App {
    pub start: Start,
    pub now: Time,
    pub size: (u16, u16),
    pub pane: Pane,
    pub overlay: Option<Overlay>,
    pub counts: Option<Counts>,
    pub requests: Requests,
    /// Of the selected request, once it is known.
    pub detail: Option<Box<Detail>>,
    /// The ledger and the wire were asked and know nothing of the selected request any more.
    pub detail_gone: bool,
    pub detail_scroll: usize,
    pub wire: Option<Arc<WireView>>,
    pub paired: Paired,
    /// The selected call, by its id.
    pub call: Option<CallId>,
    /// Lines the stderr pane is scrolled up from its end; 0 follows.
    pub stderr_up: usize,
    /// The line above the footer.
    pub said: Option<(Tone, String)>,
    /// Look-ups under way.
    pub finding: HashSet<String>,
    /// Re-issues under way, also when their dialog was left.
    pub sending: HashSet<String>,
    pub(super) seq: u64,
    pub quitting: bool,
}

impl App {
    /// An app at `now` on a terminal of this size (columns, rows).
    pub fn new(start: Start, now: Time, size: (u16, u16)) -> App {
        App {
            start,
            now,
            size,
            pane: Pane::Requests,
            overlay: None,
            counts: None,
            requests: Requests::default(),
            detail: None,
            detail_gone: false,
            detail_scroll: 0,
            wire: None,
            paired: Paired::default(),
            call: None,
            stderr_up: 0,
            said: None,
            finding: HashSet::new(),
            sending: HashSet::new(),
            seq: 0,
            quitting: false,
        }
    }

    /// Where a key would be pressed now.
    pub fn context(&self) -> Context {
        match &self.overlay {
            None => Context::Main,
            Some(Overlay::Filter) => Context::Filter,
            Some(Overlay::Help { .. } | Overlay::Verify { .. }) => Context::Reading,
            Some(Overlay::Quit) => Context::Quit,
            Some(Overlay::Reissue(d)) => match d.review() {
                Some(r) if r.editing => Context::Arguments,
                Some(_) => Context::Reissue,
                None => Context::Reading,
            },
        }
    }

    /// Whether `action` does something now. The footer shows what does.
    pub fn can(&self, action: Action) -> bool {
        let selected = self.requests.selected.is_some();
        match action {
            Action::Find => {
                selected
                    && self.is_ready()
                    && self.requests.selected.as_ref().is_some_and(|id| !self.finding.contains(id))
            }
            Action::Reissue => selected && self.is_ready(),
            Action::Details if self.context() == Context::Main => match self.pane {
                Pane::Requests => selected,
                Pane::Calls => self.call_request().is_some(),
                Pane::Detail | Pane::Stderr => false,
            },
            Action::Filter => self.start.ledger || !self.requests.is_empty(),
            Action::Verify => self.start.ledger,
            Action::Reconnect => match self.link() {
                Some(LinkState::Ready | LinkState::Connecting) => false,
                Some(_) => true,
                None => false,
            },
            Action::Back => {
                self.overlay.is_some()
                    || self.pane != Pane::Requests
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

    /// The gate's question in the open dialog.
    pub fn question(&self) -> Option<Question> {
        self.dialog().and_then(Dialog::review).and_then(|r| r.question())
    }

    /// The open re-issue dialog.
    pub fn dialog(&self) -> Option<&Dialog> {
        match &self.overlay {
            Some(Overlay::Reissue(d)) => Some(d),
            _ => None,
        }
    }

    /// Where the link stands.
    pub fn link(&self) -> Option<LinkState> {
        self.wire.as_ref()?.link.as_ref().map(|l| l.state)
    }

    /// A call could be sent.
    pub fn is_ready(&self) -> bool {
        self.link() == Some(LinkState::Ready)
    }

    /// The request of the selected call.
    pub fn call_request(&self) -> Option<&str> {
        let wire = self.wire.as_ref()?;
        wire.calls.iter().find(|c| Some(c.id) == self.call)?.request_id.as_deref()
    }

    /// What goes on at the server when redial quits now: calls in flight, in words.
    pub fn in_flight(&self) -> Vec<String> {
        let Some(wire) = &self.wire else { return Vec::new() };
        wire.pending()
            .map(|c| {
                let age = crate::time::span(c.sent_at.age_at(self.now));
                match &c.request_id {
                    Some(id) => format!("{} {id}, sent {age} ago", c.tool),
                    None => format!("{}, sent {age} ago", c.tool),
                }
            })
            .collect()
    }

    /// The screen's division at this size.
    pub fn layout(&self) -> Layout {
        layout::of(self.size, self.pane, self.requests.len())
    }

    /// When something on the screen changes by time alone; `None` while nothing moves, so that idling costs
    /// nothing.
    pub fn next_tick(&self) -> Option<Time> {
        let second = Time(self.now.0 - self.now.0.rem_euclid(1_000_000) + 1_000_000);
        let minute = Time(self.now.0 - self.now.0.rem_euclid(60_000_000) + 60_000_000);
        let waiting = matches!(self.link(), Some(LinkState::Waiting { .. }));
        let sending = self.dialog().is_some_and(|d| matches!(d.stage, Stage::Sending { .. }));
        let pending = self.wire.as_ref().is_some_and(|w| w.pending().next().is_some());
        let trouble = self.counts.as_ref().is_some_and(|c| c.trouble.is_some());
        if waiting || sending || pending || trouble {
            return Some(second);
        }
        let age = |t: Option<Time>| t.map(|t| t.age_at(self.now));
        let fresh = |l: &super::data::Line| age(l.row.claimed_at).is_some_and(|a| a < 3600.0);
        if self.requests.top.iter().any(|l| l.judged.state == State::Running && fresh(l)) {
            return Some(second);
        }
        let day = |l: &super::data::Line| age(l.row.claimed_at).is_some_and(|a| a < 86_400.0);
        self.requests.iter().any(day).then_some(minute)
    }
}
