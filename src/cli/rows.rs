//! `redial rows`: the ledger's requests, newest first, judged.

use super::args::RowsArgs;
use super::json::{document, raw_value};
use super::open::{ledger_error, ledger_remarks, open_ledger, state_role, verdict_role};
use super::plain::{Cell, Plain, Role, print_raw};
use super::report::Done;
use crate::error::{Error, Exit};
use crate::inspect::Inspector;
use crate::judge::State;
use crate::model::Line;
use crate::text::truncate;
use crate::time::{Time, span};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Rows read at once.
const WINDOW: usize = 2_000;
/// Rows shown to people unless they ask for more.
const SHOWN: usize = 1_000;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    counts: BTreeMap<String, u64>,
    effects: Option<u64>,
    suspect_pairs: u64,
    duplicates: u64,
    remarks: Vec<String>,
    rows: Vec<RowJson>,
}

/// One row as JSON; `find` shows the same.
#[derive(Serialize)]
pub struct RowJson {
    pub request_id: String,
    pub state: String,
    pub strength: &'static str,
    pub stored_status: String,
    pub why: String,
    pub owner: Option<String>,
    pub claimed_at: Option<String>,
    pub age_s: Option<f64>,
    pub args_hash: Option<String>,
    pub effects: usize,
    pub label: String,
    pub result: Option<Box<RawValue>>,
    pub verdict: Vec<String>,
    pub next: String,
}

impl RowJson {
    /// From a judged line.
    pub fn new(l: &Line, now: Time) -> RowJson {
        RowJson {
            request_id: l.row.request_id.clone(),
            state: l.judged.state.word().to_owned(),
            strength: l.judged.strength.word(),
            stored_status: l.row.status.clone(),
            why: l.judged.why.clone(),
            owner: l.row.owner.clone(),
            claimed_at: l.row.claimed_at.map(Time::rfc3339),
            age_s: l.age_s(now).map(|s| (s * 1000.0).round() / 1000.0),
            args_hash: l.row.args_hash.clone(),
            effects: l.row.effects.len(),
            label: l.label.clone(),
            result: l.row.result.as_deref().and_then(raw_value),
            verdict: l.verdict_words(),
            next: l.finding.next.clone(),
        }
    }
}

pub async fn run(a: RowsArgs) -> Done {
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let Some(ledger) = ledger else {
        return Err(Error::usage("rows needs a ledger")
            .hint("name the server's SQLite file: --ledger FILE")
            .into());
    };
    let inspector = Inspector::new(Some(ledger), None, rules);
    let overview = inspector.overview(|| async {}).await.map_err(ledger_error)?;
    let judging = inspector.judging(overview).await;
    let now = Time::now();
    let limit = a.limit.unwrap_or(if a.json { usize::MAX } else { SHOWN });
    let (lines, more) = gather(&inspector, &judging, &a.state, limit, now).await?;
    let counts = inspector.counts(&judging, now);
    let remarks = ledger_remarks(judging.overview.how.as_ref());
    if a.json {
        let doc = Doc {
            schema: "redial/rows@1",
            counts: counts.states.iter().map(|(s, n)| (s.word().to_owned(), *n)).collect(),
            effects: counts.effects,
            suspect_pairs: counts.suspect_pairs,
            duplicates: counts.duplicates,
            remarks,
            rows: lines.iter().map(|l| RowJson::new(l, now)).collect(),
        };
        print_raw(&document(&doc)).ok();
        return Ok(Exit::Good);
    }
    let mut p = Plain::default();
    p.line(Role::Strong, &counts.headline());
    for r in &remarks {
        p.line(Role::Warn, r);
    }
    if lines.is_empty() {
        p.line(
            Role::Dim,
            if a.state.is_empty() {
                "the ledger has no requests yet"
            } else {
                "no row is in that state"
            },
        );
    } else {
        p.gap();
        table(&mut p, &lines, now);
    }
    if more {
        p.line(Role::Dim, &format!("… more; the newest {} are shown (--limit N)", lines.len()));
    }
    p.print().ok();
    Ok(Exit::Good)
}

/// Judged lines in the wanted states, newest first, at most `limit`; and whether there are more.
async fn gather(
    inspector: &Inspector,
    judging: &crate::inspect::list::Judging,
    states: &[String],
    limit: usize,
    now: Time,
) -> Result<(Vec<Line>, bool), Error> {
    let Some(ledger) = &inspector.ledger else { return Ok((Vec::new(), false)) };
    let wanted =
        |s: &State| states.is_empty() || states.iter().any(|w| w.eq_ignore_ascii_case(s.word()));
    let (mut lines, mut before) = (Vec::new(), None);
    loop {
        let rows =
            ledger.read_async(move |r| r.newest(before, WINDOW)).await.map_err(ledger_error)?;
        let Some(last) = rows.last() else { return Ok((lines, false)) };
        before = Some(last.rowid);
        for line in
            inspector.lines(&rows, judging, now).into_iter().filter(|l| wanted(&l.judged.state))
        {
            if lines.len() >= limit {
                return Ok((lines, true));
            }
            lines.push(line);
        }
    }
}

/// The table of lines for people; the demo's report shows the same.
pub fn table(p: &mut Plain, lines: &[Line], now: Time) {
    let mut rows: Vec<Vec<Cell>> = vec![
        ["", "state", "request_id", "about", "age", "effects", "verdict"]
            .map(|h| (Role::Dim, h.to_owned()))
            .to_vec(),
    ];
    for l in lines {
        let role = state_role(&l.judged.state);
        let words: Vec<&str> = l.finding.verdicts.iter().map(|v| v.words()).collect();
        let role_of_verdict = l.finding.verdicts.first().map_or(Role::Text, verdict_role);
        rows.push(vec![
            (role, l.judged.state.glyph().to_owned()),
            (role, l.judged.state.word().to_owned()),
            (Role::Strong, l.row.request_id.clone()),
            (Role::Text, truncate(&crate::text::visible(&l.label), 40, "…").into_owned()),
            (Role::Dim, l.age_s(now).map_or_else(|| "–".into(), span)),
            (Role::Text, l.row.effects.len().to_string()),
            (role_of_verdict, words.join(", ")),
        ]);
    }
    p.table(&rows);
}
