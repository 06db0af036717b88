//! The re-issue dialog: the exact call, its arguments in a text area, the gate's question, then what came
//! of it. It holds the call that it will release as data, and releases nothing else.
//!
//! Pure state; asks for checks and sends nothing itself.

use super::data::{Check, Plan, Question, Reissue, Report};
use crate::judge::agreement::Total;
use crate::text;
use crate::time::Time;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};

/// What is told once others were seen to go on writing.
pub const MOVING: &str = "others go on writing: the answer is not held to the count of all effects";

/// How far it has come.
#[derive(Debug)]
pub enum Stage {
    /// Tool, arguments and gate are being found out.
    Preparing,
    /// It can't be done, and why.
    Impossible(String),
    /// The question stands.
    Review(Box<Review>),
    /// The call is out.
    Sending { since: Time },
    /// What came of it.
    Done(Box<Result<Report, String>>),
}

/// The question and what it is about.
#[derive(Debug)]
pub struct Review {
    pub plan: Plan,
    pub args: TextArea<'static>,
    /// What `args` held before a person touched it, and the exact bytes that stand for it.
    shown: String,
    /// The judgement on the arguments as they are now; `None` while it is being made.
    pub check: Option<Check>,
    /// What is another thing than in the question before; the answer to that one was void.
    pub changes: Vec<String>,
    /// The facts are being read again; `true`: and once more after that.
    pub rereading: Option<bool>,
    /// Keys go to the arguments.
    pub editing: bool,
    /// What has been typed as an answer.
    pub typed: String,
}

/// The dialog.
#[derive(Debug)]
pub struct Dialog {
    pub request_id: String,
    pub stage: Stage,
    /// The newest question about arguments; answers to older ones are dropped.
    pub seq: u64,
    pub scroll: usize,
}

impl Dialog {
    /// For one request; nothing is known yet.
    pub fn new(request_id: String, seq: u64) -> Dialog {
        Dialog { request_id, stage: Stage::Preparing, seq, scroll: 0 }
    }

    /// The question, while it stands.
    pub fn review(&self) -> Option<&Review> {
        match &self.stage {
            Stage::Review(r) => Some(r),
            _ => None,
        }
    }
    /// See [`Dialog::review`].
    pub fn review_mut(&mut self) -> Option<&mut Review> {
        match &mut self.stage {
            Stage::Review(r) => Some(r),
            _ => None,
        }
    }

    /// The call this dialog would release now, on this answer; `None` when it may not.
    pub fn release(&self, answer: Question) -> Option<Reissue> {
        let review = self.review()?;
        let check = review.check.as_ref()?;
        let gate = &check.gate;
        let agreed = match gate.question {
            Question::None | Question::Preview => answer == Question::Preview,
            Question::Ask => answer == Question::Ask,
            Question::Type => answer == Question::Type && review.typed == gate.word,
            Question::Refused => false,
        };
        agreed.then(|| Reissue {
            request_id: self.request_id.clone(),
            tool: review.plan.tool.clone(),
            args: review.args_text(),
            terms: check.terms.clone(),
            word: gate.word.clone(),
        })
    }
}

impl Review {
    /// From a plan. Where the arguments aren't known the area has the keys.
    pub fn new(plan: Plan) -> Review {
        let shown = text::visible_json(&plan.args).into_owned();
        let mut args = TextArea::new(shown.split('\n').map(str::to_owned).collect());
        args.set_wrap_mode(WrapMode::WordOrGlyph);
        args.move_cursor(CursorMove::End);
        let editing = !plan.known;
        let check = Some(plan.check.clone());
        let (typed, changes) = (String::new(), Vec::new());
        Review { plan, args, shown, check, changes, rereading: None, editing, typed }
    }

    /// Takes a new judgement. Of arguments that a person has just changed it is the first; of a question that stands
    /// it is held against that one, and where anything in it is another thing by now the question is a new one: what
    /// was typed as an answer to the old one is gone. Says whether it is.
    pub fn judged(&mut self, mut now: Check) -> bool {
        let changes = match &self.check {
            Some(standing) => standing.terms.changes(&now.terms, now.since),
            None => Vec::new(),
        };
        if let Some(standing) = &self.check {
            now.terms = Box::new((*now.terms).after(&standing.terms));
            if now.terms.total == Total::Moving {
                now.situation.push(MOVING.into());
            }
        }
        self.check = Some(now);
        if changes.is_empty() {
            return false;
        }
        self.changes = changes.into_iter().map(|c| c.words).collect();
        self.typed.clear();
        true
    }

    /// The arguments as they would be sent: the known bytes while nobody has touched them.
    pub fn args_text(&self) -> String {
        let now = self.args.lines().join("\n");
        if now == self.shown { self.plan.args.clone() } else { now }
    }

    /// A person has changed them.
    pub fn edited(&self) -> bool {
        self.args.lines().join("\n") != self.shown
    }

    /// Text for the arguments, from the keyboard or the clipboard; hidden characters become escapes.
    pub fn insert(&mut self, raw: &str) {
        self.args.insert_str(text::visible_json(raw));
    }

    /// Other arguments in place of these; undo brings them back.
    pub fn replace(&mut self, raw: &str) {
        self.args.select_all();
        self.args.insert_str(text::visible_json(raw));
    }

    /// The question, as far as it is known.
    pub fn question(&self) -> Option<Question> {
        self.check.as_ref().map(|c| c.gate.question)
    }
}
