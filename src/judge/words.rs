//! The vocabulary of judgement: states, strengths, verdicts (design: "Words", "Verdicts"). Stable words.

use crate::time::Time;

/// The state of a request, as judged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Claimed and, as far as anybody knows, being worked on.
    Running,
    /// Finished.
    Done,
    /// Its owner is gone, or presumed gone.
    Abandoned,
    /// A foreign ledger's own words.
    Waiting,
    /// See [`State::Waiting`].
    Failed,
    /// See [`State::Waiting`].
    Cancelled,
    /// See [`State::Waiting`].
    Expired,
    /// A word that no mapping names: shown as it is, never counted as done.
    Unmapped(String),
    /// The ledger was read and has no such row (JSON `unknown`).
    NoRow,
}

impl State {
    /// The stable word for JSON and lists; an unmapped word is itself (foreign text: clean it).
    pub fn word(&self) -> &str {
        match self {
            State::Running => "running",
            State::Done => "done",
            State::Abandoned => "abandoned",
            State::Waiting => "waiting",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
            State::Unmapped(w) if w.is_empty() => "no status",
            State::Unmapped(w) => w,
            State::NoRow => "unknown",
        }
    }
    /// A glyph that goes beside the word; meaning never rests on it alone.
    pub fn glyph(&self) -> &'static str {
        match self {
            State::Running => "▶",
            State::Done => "✓",
            State::Abandoned => "✗",
            State::Waiting => "…",
            State::Failed => "!",
            State::Cancelled => "⊘",
            State::Expired => "⌛",
            State::Unmapped(_) => "?",
            State::NoRow => "∅",
        }
    }
}

/// How strong the evidence for a judged state is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// A newer owner has claimed since, or the claim is older than the stale limit.
    Presumed,
    /// `find_request` said so (a second server on the file says it of rows a living one works on).
    ServerSays,
    /// The owner's process was seen to end.
    Observed,
    /// The ledger's own stored word.
    Stored,
}

impl Strength {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Strength::Presumed => "presumed",
            Strength::ServerSays => "server_says",
            Strength::Observed => "observed",
            Strength::Stored => "stored",
        }
    }
}

/// A row's state with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The state.
    pub state: State,
    /// How well it is known.
    pub strength: Strength,
    /// Why, in words.
    pub why: String,
    /// When a `running` row can next be judged otherwise without any change of the file (its stale limit).
    pub judge_again_at: Option<Time>,
    /// Since when the server lets a repeat take over, as far as redial can tell.
    pub takeover_since: Option<Time>,
    /// The assumed stale limit in seconds, where `takeover_since` (or, while there is none, `judge_again_at`) rests on it
    /// alone.
    pub takeover_limit_s: Option<f64>,
    /// The claim lies in the future by this many seconds: clock skew.
    pub skew_s: Option<f64>,
}

/// What redial concludes for a request, in rank: worst first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Duplicate,
    EndpointMismatch,
    Conflict,
    SuspectDuplicate,
    DoneWithoutEffect,
    EffectWithoutRequest,
    AnsweredWithoutRow,
    RequestPurged,
    AbandonedWithEffect,
    Abandoned,
    Stalled,
    Released,
    Rejected,
    NoClaim,
    NeverArrived,
    InFlight,
    Working,
    OutcomeUnknown,
    Failed,
    Waiting,
    Cancelled,
    Expired,
    Unmapped,
    Finished,
    NotKnown,
}

impl Verdict {
    /// The words a person reads: `suspect duplicate`.
    pub fn words(&self) -> &'static str {
        match self {
            Verdict::Duplicate => "duplicate",
            Verdict::EndpointMismatch => "endpoint mismatch",
            Verdict::Conflict => "conflict",
            Verdict::SuspectDuplicate => "suspect duplicate",
            Verdict::DoneWithoutEffect => "done without effect",
            Verdict::EffectWithoutRequest => "effect without request",
            Verdict::AnsweredWithoutRow => "answered without row",
            Verdict::RequestPurged => "request purged",
            Verdict::AbandonedWithEffect => "abandoned with effect",
            Verdict::Abandoned => "abandoned",
            Verdict::Stalled => "stalled",
            Verdict::Released => "released",
            Verdict::Rejected => "rejected",
            Verdict::NoClaim => "no claim",
            Verdict::NeverArrived => "never arrived",
            Verdict::InFlight => "in flight",
            Verdict::Working => "working",
            Verdict::OutcomeUnknown => "outcome unknown",
            Verdict::Failed => "failed",
            Verdict::Waiting => "waiting",
            Verdict::Cancelled => "cancelled",
            Verdict::Expired => "expired",
            Verdict::Unmapped => "unmapped",
            Verdict::Finished => "finished",
            Verdict::NotKnown => "not known",
        }
    }
    /// The JSON word: `suspect_duplicate`.
    pub fn json(&self) -> String {
        self.words().replace(' ', "_")
    }
}

/// One line of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// `ledger`, `wire`, `exit`, `stderr`, `server` (its own word), `hash`, `pairing`.
    pub source: &'static str,
    /// When, if it has a time.
    pub at: Option<Time>,
    /// How strong, where that applies.
    pub strength: Option<Strength>,
    /// What it says. May hold foreign text.
    pub text: String,
}

/// All that is concluded for a request: verdicts worst first, evidence, one next step.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Never empty.
    pub verdicts: Vec<Verdict>,
    /// Why.
    pub evidence: Vec<Evidence>,
    /// The one safe next step, as a sentence.
    pub next: String,
}
