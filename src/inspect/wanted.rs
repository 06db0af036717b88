//! Which requests a filter lets pass: the language of `filter` on a judged row and the calls of its request.

use crate::filter::{Field, Filter, Subject, parse};
use crate::inspect::list::Judging;
use crate::judge::State;
use crate::model::Line;
use crate::time::Time;
use std::borrow::Cow;
use std::collections::HashMap;

/// A filter, and what the wire knows of requests.
pub struct Wanted {
    filter: Filter,
    /// Tool and outcome of each request's calls.
    calls: HashMap<String, Vec<(String, &'static str)>>,
    now: Time,
}

impl Wanted {
    /// The update has read the filter already: here it has no mistake.
    pub fn new(filter: &str, judging: &Judging) -> Wanted {
        let filter = parse(filter).unwrap_or_default();
        let mut calls: HashMap<String, Vec<_>> = HashMap::new();
        let all = judging.session.iter().filter(|_| !filter.is_empty());
        for c in all.flat_map(|s| s.calls.values()) {
            if let Some(id) = &c.request_id {
                calls.entry(id.clone()).or_default().push((c.tool.clone(), c.word()));
            }
        }
        Wanted { filter, calls, now: Time::now() }
    }

    /// Everything passes.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// This one passes.
    pub fn holds(&self, line: &Line) -> bool {
        self.filter.is_empty() || self.filter.matches(&Request { line, wanted: self })
    }
}

struct Request<'a> {
    line: &'a Line,
    wanted: &'a Wanted,
}

impl Request<'_> {
    fn calls(&self) -> &[(String, &'static str)] {
        self.wanted.calls.get(self.line.id()).map_or(&[], Vec::as_slice)
    }
}

impl Subject for Request<'_> {
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>> {
        let line = self.line;
        match field {
            Field::Req => vec![line.id().into()],
            Field::Text => vec![line.label.as_str().into()],
            // As it is judged and shown; what is stored of an abandoned request is that it runs.
            Field::State => {
                let shown = (line.judged.state == State::NoRow).then_some("no row");
                [line.judged.state.word()].into_iter().chain(shown).map(Cow::from).collect()
            }
            Field::Verdict => line.finding.verdicts.iter().map(|v| v.words().into()).collect(),
            Field::Tool => {
                let stored = line.row.tool.iter().map(|t| t.as_str().into());
                stored.chain(self.calls().iter().map(|(t, _)| t.as_str().into())).collect()
            }
            Field::Outcome => self.calls().iter().map(|(_, o)| (*o).into()).collect(),
            _ => Vec::new(),
        }
    }

    fn number(&self, field: Field) -> Option<f64> {
        (field == Field::Age).then(|| self.line.age_s(self.wanted.now)).flatten()
    }

    fn shown(&self) -> Vec<Cow<'_, str>> {
        vec![self.line.id().into(), self.line.label.as_str().into()]
    }

    fn words(&self) -> Vec<Cow<'_, str>> {
        let mut words = self.texts(Field::State);
        words.extend(self.texts(Field::Verdict));
        words
    }
}
