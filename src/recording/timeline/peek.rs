//! One event as the filter language asks for it: what the index has is answered from there, the text is read only
//! when it is asked for.

use super::{Judged, Source};
use crate::filter::{Field, Subject};
use crate::record::summary::Rpc;
use crate::recording::rows::{Knows, Row};
use crate::time::Time;
use std::borrow::Cow;
use std::cell::OnceCell;

pub(super) struct Peek<'a> {
    source: &'a Source,
    i: usize,
    knows: &'a dyn Knows,
    judged: &'a Judged,
    now: Time,
    row: OnceCell<Option<Row>>,
}

impl<'a> Peek<'a> {
    pub fn new(
        source: &'a Source,
        i: usize,
        knows: &'a dyn Knows,
        judged: &'a Judged,
        now: Time,
    ) -> Peek<'a> {
        Peek { source, i, knows, judged, now, row: OnceCell::new() }
    }

    fn row(&self) -> Option<&Row> {
        self.row.get_or_init(|| self.source.row(self.i, self.knows, self.now)).as_ref()
    }

    /// The tool, or with `tool: false` the method, of a request or of the request that it answers.
    fn name(&self, tool: bool) -> Option<Cow<'_, str>> {
        let q = self.source.quick(self.i)?;
        let q = match q.rpc? {
            rpc if rpc.is_answer() => self.source.quick(q.peer?)?,
            _ => q,
        };
        match (tool, q.is_call) {
            (true, true) => Some(q.name.into()),
            (false, true) => Some("tools/call".into()),
            (true, false) => None,
            (false, false) => (!q.name.is_empty()).then(|| q.name.into()),
        }
    }
}

impl Subject for Peek<'_> {
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>> {
        let Some(q) = self.source.quick(self.i) else { return Vec::new() };
        match field {
            Field::Tool => self.name(true).into_iter().collect(),
            Field::Method => self.name(false).into_iter().collect(),
            // A frame that can't be parsed has the kind of its line.
            Field::Kind => match q.rpc {
                None => vec![q.kind.into()],
                Some(rpc) => vec![q.kind.into(), rpc.word().into()],
            },
            Field::Dir => match q.kind {
                "sent" => vec!["out".into()],
                "received" | "noise" => vec!["in".into()],
                "stderr" => vec!["err".into()],
                _ => self.row().map(|r| r.texts(field)).unwrap_or_default(),
            },
            Field::Outcome if q.rpc.is_none_or(|r| r == Rpc::Notification) => Vec::new(),
            Field::State | Field::Verdict if self.judged.is_empty() => Vec::new(),
            Field::State | Field::Verdict => {
                let id = self.row().and_then(|r| r.request_id.as_ref());
                match (id.and_then(|id| self.judged.get(id)), field) {
                    (Some((state, _)), Field::State) => vec![state.as_str().into()],
                    (Some((_, verdicts)), _) => {
                        verdicts.iter().map(|v| v.as_str().into()).collect()
                    }
                    (None, _) => Vec::new(),
                }
            }
            _ => self.row().map(|r| r.texts(field)).unwrap_or_default(),
        }
    }

    fn number(&self, field: Field) -> Option<f64> {
        let q = self.source.quick(self.i)?;
        match field {
            Field::Gen => Some(f64::from(q.generation)),
            Field::Age => Some(q.at.age_at(self.now)),
            Field::Ms if q.rpc.is_none() || (q.peer.is_none() && !q.is_call) => None,
            _ => self.row()?.number(field),
        }
    }
}
