//! What an audit finds: the kinds, how grave each is, and a list of them that stays bounded.

use std::collections::BTreeMap;

/// Findings kept of each kind; the rest is counted.
pub const KEPT: usize = 1_000;

/// The kinds, graver first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A later life of the server made the same value again: it names another thing now.
    HandleRebound,
    /// Made before a restart, refused after it.
    LostHandle,
    /// Another session, client or credential made it.
    ForeignHandle,
    /// Nothing in this trace made it.
    UnmintedHandle,
    /// A call without the handle that it needs.
    Missing,
    /// A tool that should return a handle and did not.
    NotReturned,
    /// The ledger has more than one effect for this call's request.
    DuplicateEffect,
    /// A call that makes state got no answer: what it made, nobody knows the name of.
    MaybeOrphanState,
    /// The same arguments under a new request_id, after a call of which nobody knew what became.
    SuspectDuplicate,
    /// The same request_id with other arguments.
    KeyReusedOtherArgs,
    /// Sent, and no answer.
    OutcomeUnknown,
    /// Answered ok, and the ledger has no row.
    AnsweredWithoutRow,
    /// The ledger says done, and no answer came.
    DoneWithoutAnswer,
    /// A JSON-RPC id used twice in one life of the server.
    DuplicateRequestId,
    /// It did differently, or failed, on a session of its own (`--fresh-sessions`).
    SessionState,
    /// Made under one name, used under another.
    WrongKind,
    /// Made before a restart, and good after it.
    HandleUsedAcrossRestart,
    /// What the session did can only be done over a connection that stays.
    NeedsConnection,
    /// A call of which nobody knew what became was looked up, or sent again under its own request_id.
    Resolved,
    /// The clock of the trace went back.
    ClockWentBack,
    /// A line that could not be read.
    BadLine,
}

/// How grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Breaks when the session goes.
    Error,
    /// Wants a look.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 21] = [
        Kind::HandleRebound,
        Kind::LostHandle,
        Kind::ForeignHandle,
        Kind::UnmintedHandle,
        Kind::Missing,
        Kind::NotReturned,
        Kind::DuplicateEffect,
        Kind::MaybeOrphanState,
        Kind::SuspectDuplicate,
        Kind::KeyReusedOtherArgs,
        Kind::OutcomeUnknown,
        Kind::AnsweredWithoutRow,
        Kind::DoneWithoutAnswer,
        Kind::DuplicateRequestId,
        Kind::SessionState,
        Kind::WrongKind,
        Kind::HandleUsedAcrossRestart,
        Kind::NeedsConnection,
        Kind::Resolved,
        Kind::ClockWentBack,
        Kind::BadLine,
    ];

    /// The stable word (JSON, JUnit).
    pub fn word(self) -> &'static str {
        match self {
            Kind::HandleRebound => "handle_rebound",
            Kind::LostHandle => "lost_handle",
            Kind::ForeignHandle => "foreign_handle",
            Kind::UnmintedHandle => "unminted_handle",
            Kind::Missing => "missing",
            Kind::NotReturned => "not_returned",
            Kind::DuplicateEffect => "duplicate_effect",
            Kind::MaybeOrphanState => "maybe_orphan_state",
            Kind::SuspectDuplicate => "suspect_duplicate",
            Kind::KeyReusedOtherArgs => "key_reused_other_args",
            Kind::OutcomeUnknown => "outcome_unknown",
            Kind::AnsweredWithoutRow => "answered_without_row",
            Kind::DoneWithoutAnswer => "done_without_answer",
            Kind::DuplicateRequestId => "duplicate_request_id",
            Kind::SessionState => "session_state",
            Kind::WrongKind => "wrong_kind",
            Kind::HandleUsedAcrossRestart => "handle_used_across_restart",
            Kind::NeedsConnection => "needs_connection",
            Kind::Resolved => "resolved",
            Kind::ClockWentBack => "clock_went_back",
            Kind::BadLine => "bad_line",
        }
    }

    /// How grave it is by its nature; what is only inferred is a warning at most.
    pub fn severity(self) -> Severity {
        match self {
            Kind::HandleRebound
            | Kind::LostHandle
            | Kind::ForeignHandle
            | Kind::UnmintedHandle
            | Kind::Missing
            | Kind::NotReturned
            | Kind::DuplicateEffect
            | Kind::AnsweredWithoutRow
            | Kind::KeyReusedOtherArgs
            | Kind::SessionState => Severity::Error,
            Kind::MaybeOrphanState
            | Kind::SuspectDuplicate
            | Kind::OutcomeUnknown
            | Kind::DoneWithoutAnswer
            | Kind::DuplicateRequestId
            | Kind::WrongKind
            | Kind::NeedsConnection
            | Kind::BadLine => Severity::Warning,
            Kind::HandleUsedAcrossRestart | Kind::Resolved | Kind::ClockWentBack => Severity::Note,
        }
    }
}

/// One finding. Texts may be foreign: faces clean them.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// How grave.
    pub severity: Severity,
    /// Which call of the trace, from 1; `None` where it is about none.
    pub call: Option<u64>,
    /// Its place in the file: a line, or an item of a list.
    pub line: u64,
    /// Its event's number in the recording, as `show` and the screen count them; 0 where there is none.
    pub seq: u64,
    /// Which life of the server, from 1; 0 where it is about none.
    pub generation: u32,
    /// The tool.
    pub tool: Option<String>,
    /// The handle's name.
    pub handle: Option<String>,
    /// The handle's value; of other kinds what they are about: a request_id, a JSON-RPC id, a line, seconds.
    pub value: Option<String>,
    /// In one sentence.
    pub message: String,
    /// It rests on a name or a value that looks like a handle, not on a contract.
    pub inferred: bool,
    /// Other calls that belong to it.
    pub calls: Vec<u64>,
}

impl Finding {
    /// With nothing but its kind and sentence.
    pub fn new(kind: Kind, message: impl Into<String>) -> Finding {
        Finding {
            kind,
            severity: kind.severity(),
            call: None,
            line: 0,
            seq: 0,
            generation: 0,
            tool: None,
            handle: None,
            value: None,
            message: message.into(),
            inferred: false,
            calls: Vec::new(),
        }
    }

    /// About a value.
    pub fn value(mut self, value: impl Into<String>) -> Finding {
        self.value = Some(value.into());
        self
    }

    /// Resting on what looks like a handle.
    pub fn inferred(mut self, inferred: bool) -> Finding {
        self.inferred = inferred;
        if inferred && self.severity == Severity::Error {
            self.severity = Severity::Warning;
        }
        self
    }

    /// Also about this call.
    pub fn with(mut self, call: u64) -> Finding {
        self.calls.push(call);
        self
    }
}

/// Findings, bounded: of each kind the first [`KEPT`] and how many there are.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<Kind, u64>,
}

impl Findings {
    /// Adds one.
    pub fn add(&mut self, finding: Finding) {
        let n = self.counts.entry(finding.kind).or_default();
        *n += 1;
        if *n <= KEPT as u64 {
            self.kept.push(finding);
        }
    }

    /// How many of each kind, kept or not.
    pub fn counts(&self) -> &BTreeMap<Kind, u64> {
        &self.counts
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Those that are kept, in the order of the trace.
    pub fn list(&self) -> &[Finding] {
        &self.kept
    }

    /// Puts them in the order of the trace.
    pub fn sort(&mut self) {
        self.kept.sort_by_key(|f| (f.line, f.call, f.kind));
    }
}
