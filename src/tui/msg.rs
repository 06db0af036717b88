//! What comes in to the update and what it asks to be done. Data only.

use super::app::FileTail;
use super::data::{
    Anew, Ask, Check, Counted, Counts, Detail, LookUp, Paired, Plan, Reissue, Report, Window,
};
use super::form::Form;
use super::pick::What;
use super::tree::Document;
use super::wire::WireView;
use crate::journal::CallId;
use crate::keys::Key;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key; `repeat` when it is being held.
    Key { key: Key, repeat: bool },
    /// Pasted text.
    Paste(String),
    /// The mouse, at a column and row.
    Mouse { x: u16, y: u16, did: Mouse },
    /// The terminal is this many columns and rows.
    Resize(u16, u16),
    /// The time has come to be this.
    Now(Time),
    /// What comes next was typed, pasted or clicked at `at` (monotonic); `crowded`: together with more of it.
    Input { at: Duration, crowded: bool },
    /// A frame is on the screen.
    Drawn { at: Duration },
    /// So much time has passed, and nothing was typed since the last message.
    Quiet { at: Duration },
    /// What is on the screen has to be read anew.
    Unread,
    /// The first pass over a large ledger has looked at so many rows.
    Reading(u64),
    /// The facts of the top line.
    Counts(Box<Counts>),
    /// The ledger, or calls that bear on its rows, changed: rows and detail may read differently.
    FactsChanged,
    /// An answer to [`Effect::LoadWindow`].
    Requests(Box<Window>),
    /// [`Effect::LoadWindow`] can't be answered now; what is shown stays.
    NoRequests { seq: u64 },
    /// An answer to [`Effect::LoadDetail`]; `None`: nothing is known of it any more.
    Detail { request_id: String, detail: Option<Box<Detail>> },
    /// The endpoint, as it is now.
    Wire(Arc<WireView>),
    /// Whether the endpoint writes this ledger.
    Paired(Paired),
    /// An answer to [`Effect::Find`].
    LookedUp { request_id: String, answer: Result<LookUp, String> },
    /// An answer to [`Effect::Plan`].
    Planned { request_id: String, seq: u64, plan: Result<Box<Plan>, String> },
    /// An answer to [`Effect::Check`].
    Checked { request_id: String, seq: u64, check: Box<Check> },
    /// An answer to [`Effect::Reissue`].
    Reissued { request_id: String, report: Box<Result<Report, String>> },
    /// Another answer to [`Effect::Reissue`]: nothing was sent, since something in the question is another thing.
    Changed { request_id: String, anew: Box<Anew> },
    /// News of the counting that [`Effect::Verify`] asked for.
    Counted(Counted),
    /// An answer to [`Effect::Json`]; empty when there is nothing to show.
    Documents(Vec<Arc<Document>>),
    /// An answer to [`Effect::Copy`] and [`Effect::Keep`]: text for the clipboard, and the file that holds it too.
    Copied { what: String, text: Result<String, String>, kept: Option<String> },
    /// The server asks something.
    Asked(Box<Form>),
    /// Its question is over, answered or not.
    AskedNoMore { id: u64 },
    /// The followed file, as it is now.
    StderrFile(Arc<FileTail>),
    /// An answer to [`Effect::Timeline`], or what is new since.
    Timeline(Box<super::timeline::Window>),
    /// What [`Effect::Audit`] has found so far.
    Audited(Arc<super::findings::Audited>),
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    Click,
    ScrollUp,
    ScrollDown,
}

/// Something to be done by others; answers come back as a [`Msg`] that echoes the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    LoadWindow(Ask),
    LoadDetail {
        request_id: String,
    },
    /// Run the server's look-up tool.
    Find {
        request_id: String,
    },
    /// Find out tool, arguments, hash and gate of a repeat.
    Plan {
        request_id: String,
        seq: u64,
    },
    /// Judge other arguments.
    Check {
        request_id: String,
        seq: u64,
        tool: String,
        args: String,
    },
    /// Send it. The only effect that does work at the server.
    Reissue(Reissue),
    Reconnect,
    /// Give a pending call up: tell the server so, or only stop waiting for it.
    GiveUp {
        call: CallId,
        tell: bool,
    },
    /// Count, and again with every change, until it is called off.
    Verify {
        on: bool,
    },
    /// Read texts as trees: those of a request, or of one call.
    Json {
        request_id: String,
        call: Option<CallId>,
    },
    /// Make a text for the clipboard, and keep it in a file.
    Copy {
        what: What,
        request_id: String,
    },
    /// Keep this text likewise.
    Keep {
        what: String,
        text: String,
    },
    /// Answer the server's question; without content it is declined.
    Answer {
        id: u64,
        content: Option<String>,
    },
    /// Rows of the time line; `None`: nobody looks any more.
    Timeline(Option<super::timeline::Ask>),
    /// Audit the recording, from now on.
    Audit,
    /// End the program.
    Quit,
}
