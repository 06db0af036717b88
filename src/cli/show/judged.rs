//! `redial show --ledger`: what the ledger says of each request of a recording, so that `state:` and `verdict:` mean
//! something; without one they are told to match nothing.

use crate::cli::open::{ledger_error, open_ledger};
use crate::cli::plain::complain;
use crate::cli::recorded::ShowArgs;
use crate::error::Result;
use crate::filter::{Field, Filter, Subject};
use crate::inspect::Inspector;
use crate::inspect::recorded::Recorded;
use crate::time::Time;
use crate::words::next_step;
use std::borrow::Cow;
use std::collections::HashMap;

/// The judgement on one request.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The state's word.
    pub state: String,
    /// The verdicts, worst first.
    pub verdicts: Vec<String>,
    /// The one safe next step.
    pub next: String,
}

/// Judgements by request_id; empty without a ledger.
#[derive(Debug, Default)]
pub struct Judgements {
    by_id: HashMap<String, Judged>,
    /// A ledger was given.
    pub known: bool,
}

impl Judgements {
    /// Reads the ledger, when one is given; else says what a filter can't find without one.
    ///
    /// # Errors
    /// Exit 6, in the ledger's own words.
    pub async fn of(a: &ShowArgs, filter: &Filter, recorded: &Recorded) -> Result<Judgements> {
        let (ledger, rules) = open_ledger(&a.ledger)?;
        if ledger.is_none() {
            for field in [Field::State, Field::Verdict].into_iter().filter(|f| filter.names(*f)) {
                complain(&format!(
                    "{}: is a ledger's word and matches nothing here; give --ledger FILE",
                    field.name()
                ));
            }
            return Ok(Judgements::default());
        }
        let mut inspector = Inspector::new(ledger, None, rules);
        inspector.recording = Some(recorded.clone());
        let overview = inspector.overview(tokio::task::yield_now).await.map_err(ledger_error)?;
        let judging = inspector.judging(overview).await;
        let now = Time::now();
        let rows: Vec<_> =
            judging.called.values().filter_map(|r| r.as_ref().ok()?.clone()).collect();
        let mut lines = inspector.checked_lines(&rows, &judging, now);
        lines.extend(inspector.rowless_lines(&judging, now));
        let by_id = lines.into_iter().map(|l| {
            let judged = Judged {
                state: l.judged.state.word().to_owned(),
                verdicts: l.verdict_words(),
                next: next_step(&l.finding.next, now),
            };
            (l.row.request_id, judged)
        });
        Ok(Judgements { by_id: by_id.collect(), known: true })
    }

    /// That on one request.
    pub fn get(&self, request_id: Option<&str>) -> Option<&Judged> {
        self.by_id.get(request_id?)
    }
}

/// A call or a frame with the judgement on its request.
pub struct With<'a, S> {
    pub subject: &'a S,
    pub judged: Option<&'a Judged>,
}

impl<S: Subject> Subject for With<'_, S> {
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>> {
        match (field, self.judged) {
            (Field::State, Some(j)) => vec![j.state.as_str().into()],
            (Field::Verdict, Some(j)) => j.verdicts.iter().map(|v| v.as_str().into()).collect(),
            _ => self.subject.texts(field),
        }
    }
    fn number(&self, field: Field) -> Option<f64> {
        self.subject.number(field)
    }
}
