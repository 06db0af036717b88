//! The vocabulary of judgement: states, strengths, verdicts (design: "Words", "Verdicts"). Stable words.

use super::next::NextStep;
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

/// What only judgement has: who holds it has judged. It keeps everybody else, fixtures of tests first of all, from
/// writing down a verdict that no facts led to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seal;

/// From when a server lets a repeat take a running row over: a function of the ledger alone, so that it is one time
/// wherever and whenever somebody looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Takeover {
    /// From when.
    pub at: Time,
    /// The assumed stale limit in seconds that it rests on; `None`: another owner claimed then.
    pub limit_s: Option<f64>,
    /// This kind of server is known to take over; of any other nobody knows what a repeat does.
    pub known: bool,
    /// The server that was asked calls the row another's: it would let a repeat in at once.
    pub by_word: bool,
}

/// A row's state with its evidence, as judgement made it. Read everywhere, written nowhere else.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The state.
    pub(crate) state: State,
    /// How well it is known.
    pub(crate) strength: Strength,
    /// Why, in words.
    pub(crate) why: String,
    /// When a `running` row can next be judged otherwise without any change of the file (its stale limit).
    pub(crate) judge_again_at: Option<Time>,
    /// How a repeat of a running row is let in.
    pub(crate) takeover: Option<Takeover>,
    /// The claim lies in the future by this many seconds: clock skew.
    pub(crate) skew_s: Option<f64>,
    pub(super) seal: Seal,
}

impl Judged {
    /// A state that needs no second look: a stored word, or that of a request without a row.
    pub(crate) fn plain(state: State, strength: Strength, why: String) -> Judged {
        Judged {
            state,
            strength,
            why,
            judge_again_at: None,
            takeover: None,
            skew_s: None,
            seal: Seal,
        }
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How well it is known.
    pub fn strength(&self) -> Strength {
        self.strength
    }

    /// Why, in words.
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// What redial concludes for a request, in rank: worst first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Duplicate,
    EndpointMismatch,
    SeveralRows,
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
            Verdict::SeveralRows => "several rows",
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

/// All that is concluded for a request: verdicts worst first, evidence, one next step. Like [`Judged`] it is made by
/// judgement alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Never empty.
    pub(crate) verdicts: Vec<Verdict>,
    /// Why.
    pub(crate) evidence: Vec<Evidence>,
    /// The one safe next step.
    pub(crate) next: NextStep,
    pub(super) seal: Seal,
}

impl Finding {
    /// The verdicts, worst first.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Why.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// The one safe next step.
    pub fn next(&self) -> &NextStep {
        &self.next
    }
}
