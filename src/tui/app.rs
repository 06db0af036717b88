//! All state of the screen, and the questions asked of it (what works now, when time matters next).
//! Changed only by `update`; never does IO, never asks a clock.

use super::answer::Answering;
use super::data::{Counts, DemoInfo, Detail, Paired, Question};
use super::dialog::{Dialog, Stage};
use super::form::Form;
use super::layout::{self, Layout, Shares};
use super::list::Requests;
use super::pick::Pick;
use super::theme::Themes;
use super::tree;
use super::watch::Watch;
use super::wire::{Reach, WireView};
use crate::config::Bell;
use crate::journal::{CallId, LinkState, Outcome};
use crate::judge::State;
use crate::keys::action::{Action, Context};
use crate::keys::keymap::Keymap;
use crate::time::Time;
use ratatui::layout::Rect;
use std::collections::HashSet;
use std::sync::Arc;

/// What can have the keys on the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    Requests,
    Detail,
    Calls,
    Stderr,
    Verify,
}

impl Pane {
    /// In the order of the Tab key.
    pub const ALL: [Pane; 5] =
        [Pane::Requests, Pane::Detail, Pane::Calls, Pane::Stderr, Pane::Verify];

    /// Where its own keys are looked for.
    pub fn context(self) -> Option<Context> {
        match self {
            Pane::Requests => Some(Context::Requests),
            Pane::Detail => Some(Context::Detail),
            Pane::Calls => Some(Context::Calls),
            Pane::Verify => Some(Context::Verify),
            Pane::Stderr => None,
        }
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Requests => "requests",
            Pane::Detail => "detail",
            Pane::Calls => "calls",
            Pane::Stderr => "stderr",
            Pane::Verify => "verify",
        }
    }
}

/// What lies over the main screen.
#[derive(Debug)]
pub enum Overlay {
    /// The filter line is being typed.
    Filter,
    /// The keys.
    Help(Reading),
    Reissue(Box<Dialog>),
    /// A list to choose from.
    Pick(Pick),
    /// JSON texts, one of them shown; none while they are being read.
    Json {
        views: Vec<tree::View>,
        at: usize,
    },
    /// Every frame and event.
    Timeline,
    /// What the audit finds in the recording.
    Findings,
    /// What this run sent.
    Log {
        scroll: usize,
    },
    /// A request_id is being typed, to go to.
    GoTo(String),
    /// The first of the server's open questions.
    Form,
    /// Cancel this call?
    Cancel(CallId),
    /// Really quit?
    Quit,
}

/// Help, and what is searched in it.
#[derive(Debug, Default)]
pub struct Reading {
    pub scroll: usize,
    /// Only lines that hold this.
    pub query: String,
    /// It is being typed.
    pub typing: bool,
    /// Where help was asked for: its keys come first.
    pub place: Option<Context>,
}

/// What this run sent: when, what, what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    /// `find_request night-005`.
    pub what: String,
    /// The request it was for.
    pub request_id: String,
    /// When and what came of it; `None` while it isn't known.
    pub came: Option<(Time, String)>,
}

/// What lies under a place of the screen, for the mouse. Found by drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hit {
    /// A pane.
    Pane(Pane),
    /// A line of the requests.
    Request(String, usize),
    /// A line of the calls.
    Call(CallId),
    /// A request that verify names, by its place among them.
    Found(usize),
    /// A key of the footer.
    Key(Action),
    /// A line of a list to choose from, or of a JSON text.
    Line(usize),
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
    /// The agent's own session is attached as a recording: its file.
    pub recording: Option<String>,
    /// Where the server's stderr is read from, when that was said (`--stderr-file`).
    pub stderr_file: Option<String>,
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
    /// Rows that the first pass over the ledger has seen, while it goes on.
    pub reading: Option<u64>,
    /// The verify pane.
    pub watch: Watch,
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
    pub themes: Themes,
    pub keymap: Keymap,
    pub shares: Shares,
    /// The mouse is listened to.
    pub mouse: bool,
    pub bell: Bell,
    /// Something is to be told by the bell; whoever draws does it once, with these words.
    pub ring: Option<String>,
    /// Text for the clipboard, likewise.
    pub clipboard: Option<String>,
    /// Everything is to be drawn anew.
    pub redraw: bool,
    /// The program is to be stopped, as a shell's job.
    pub suspending: bool,
    /// What this run sent, oldest first.
    pub sent: Vec<Sent>,
    /// The server's open questions, oldest first.
    pub questions: Vec<Form>,
    pub timeline: super::timeline::Timeline,
    pub findings: super::findings::Findings,
    /// Lines of `--stderr-file`, oldest first, and how many came before them.
    pub stderr_file: Arc<FileTail>,
    /// Where the last frame put what.
    pub hits: Vec<(Rect, Hit)>,
    /// Not all of the question has been on the screen: it can't be answered.
    pub cut: bool,
    /// How far it has been read, where it is taller than its place.
    pub through: super::through::Through,
    /// When a key is an answer.
    pub answering: Answering,
    pub(super) seq: u64,
    pub quitting: bool,
}

/// The end of a followed file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileTail {
    /// The kept lines, with the time that a line carries or at which it was seen.
    pub lines: Vec<(Time, bytes::Bytes)>,
    /// Older ones that are no longer kept.
    pub dropped: u64,
    /// What there is to say about the file: it isn't there, it was rotated.
    pub remark: Option<String>,
}

impl App {
    /// Whether the terminal is too small to show anything but that.
    pub fn is_too_small(&self) -> bool {
        let (w, h) = super::layout::MIN;
        self.size.0 < w || self.size.1 < h
    }

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
            reading: None,
            watch: Watch::default(),
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
            themes: Themes::default(),
            keymap: Keymap::default(),
            shares: Shares::default(),
            mouse: false,
            bell: Bell::Off,
            ring: None,
            clipboard: None,
            redraw: false,
            suspending: false,
            sent: Vec::new(),
            questions: Vec::new(),
            timeline: super::timeline::Timeline::default(),
            findings: super::findings::Findings::default(),
            stderr_file: Arc::default(),
            hits: Vec::new(),
            cut: false,
            through: super::through::Through::default(),
            answering: Answering::default(),
            seq: 0,
            quitting: false,
        }
    }

    /// Where a key would be pressed now.
    pub fn context(&self) -> Context {
        match &self.overlay {
            None => self.pane.context().unwrap_or(Context::Main),
            Some(Overlay::Filter) => Context::Filter,
            Some(Overlay::GoTo(_)) => Context::GoTo,
            Some(Overlay::Timeline) if self.timeline.typing => Context::Search,
            Some(Overlay::Timeline) => Context::Timeline,
            Some(Overlay::Findings) => Context::Findings,
            Some(Overlay::Help(r)) if r.typing => Context::Search,
            Some(Overlay::Json { views, at }) => match views.get(*at) {
                Some(v) if v.typing => Context::Search,
                Some(_) => Context::Json,
                None => Context::Reading,
            },
            Some(Overlay::Help(_) | Overlay::Log { .. }) => Context::Reading,
            Some(Overlay::Cancel(_)) => Context::Cancel,
            Some(Overlay::Pick(_)) => Context::Pick,
            Some(Overlay::Form) => Context::Form,
            Some(Overlay::Quit) => Context::Quit,
            Some(Overlay::Reissue(d)) => match d.review() {
                Some(r) if r.editing => Context::Arguments,
                Some(_) => Context::Reissue,
                None => Context::Reading,
            },
        }
    }

    /// No overlay takes the keys.
    pub fn is_main(&self) -> bool {
        self.overlay.is_none()
    }

    /// The JSON text that is shown.
    pub fn json(&self) -> Option<&tree::View> {
        match &self.overlay {
            Some(Overlay::Json { views, at }) => views.get(*at),
            _ => None,
        }
    }
    /// See [`App::json`].
    pub fn json_mut(&mut self) -> Option<&mut tree::View> {
        match &mut self.overlay {
            Some(Overlay::Json { views, at }) => views.get_mut(*at),
            _ => None,
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

    /// The call that can be cancelled now: the one asked about, else the selected one while it waits.
    pub fn pending_call(&self) -> Option<&super::wire::CallView> {
        let id = match (&self.overlay, self.pane) {
            (Some(Overlay::Cancel(id)), _) => *id,
            (Some(_), _) => return None,
            (None, Pane::Calls) => self.call?,
            // Elsewhere it is that of the selected request.
            (None, _) => {
                let id = self.requests.selected.as_deref()?;
                let wire = self.wire.as_deref()?;
                // A look-up is over in a moment, and is not what anybody wants to give up: in calls it can be.
                self.work_of(wire, id).filter(|c| c.is_pending()).last()?.id
            }
        };
        // The agent's calls are not ours to give up.
        self.wire.as_ref()?.pending().find(|c| c.id == id && !c.is_agents())
    }

    fn work_of<'a>(
        &'a self,
        wire: &'a super::wire::WireView,
        id: &'a str,
    ) -> impl Iterator<Item = &'a super::wire::CallView> {
        let own = wire.calls_of(id).filter(|c| !c.is_agents());
        own.filter(|c| c.tool != self.start.look_up)
    }

    /// When the repeat of this request that was agreed to at `agreed` was sent: before it goes out, everything is read
    /// once more.
    pub fn sent_since(&self, id: &str, agreed: Time) -> Option<Time> {
        let wire = self.wire.as_deref()?;
        self.work_of(wire, id).map(|c| c.sent_at).filter(|at| *at >= agreed).min()
    }

    /// What goes on at the server when redial quits now: calls in flight, in words.
    pub fn in_flight(&self) -> Vec<String> {
        let pending: Vec<&super::wire::CallView> =
            self.wire.iter().flat_map(|w| w.pending()).filter(|c| !c.is_agents()).collect();
        // Agreed to a moment ago: the wire doesn't show it yet.
        let under_way = self.sent.iter().filter(|s| {
            let id = Some(s.request_id.as_str());
            s.came.is_none()
                && self.sending.contains(&s.request_id)
                && !pending.iter().any(|c| c.request_id.as_deref() == id)
        });
        let under_way = under_way.map(|s| format!("{}, being sent", s.what));
        let pending = pending.iter().map(|c| {
            let age = crate::time::span(c.sent_at.age_at(self.now));
            match &c.request_id {
                Some(id) => format!("{} {id}, sent {age} ago", c.tool),
                None => format!("{}, sent {age} ago", c.tool),
            }
        });
        pending.chain(under_way).collect()
    }

    /// What may go on at the server though nobody waits for its answer: calls whose outcome is unknown, whose server was
    /// not seen to end, and which nothing has shown to be done since.
    pub fn perhaps_going_on(&self) -> Vec<String> {
        let Some(wire) = self.wire.as_deref() else { return Vec::new() };
        let alive = |n| wire.generations.iter().any(|g| g.n == n && g.ended.is_none());
        let done = |id: &str, since: CallId| {
            let by_call = wire.calls_of(id).any(|c| c.id > since && c.status == Some("done"));
            by_call || self.requests.iter().any(|l| l.id() == id && l.judged.state == State::Done)
        };
        let open = wire.calls.iter().filter(|c| {
            c.outcome == Some(Outcome::Unknown)
                && !c.is_agents()
                && alive(c.generation)
                && !c.request_id.as_deref().is_some_and(|id| done(id, c.id))
        });
        open.map(|c| {
            let age = crate::time::span(c.sent_at.age_at(self.now));
            let id = c.request_id.as_deref().unwrap_or_default();
            format!("{} {id}, sent {age} ago: outcome unknown", c.tool)
        })
        .collect()
    }

    /// The screen's division at this size.
    pub fn layout(&self) -> Layout {
        layout::of(self.size, self.pane, self.requests.len(), self.shares)
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
        let counting = matches!(self.watch.run, super::watch::Run::Counting(_));
        if waiting || sending || pending || trouble || counting || self.reading.is_some() {
            return Some(second);
        }
        // The mark of a change goes.
        if let Some(at) = self.requests.fades_at() {
            return Some(at.max(self.now).min(second));
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
