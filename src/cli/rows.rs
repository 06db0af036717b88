//! `redial rows`: the ledger's requests, judged, from the end of the table: where its places come in the order of
//! arrival the newest stand first.

use super::args::RowsArgs;
use super::failure::ErrorJson;
use super::json::{document, line, raw_value};
use super::open::{
    ledger_error, ledger_remarks, open_ledger, remarks_plain, state_role, verdict_role,
};
use super::plain::{Cell, Plain, Role, complain, print_raw};
use super::report::Done;
use crate::error::{Error, Exit};
use crate::filter::parse;
use crate::inspect::Inspector;
use crate::inspect::list::{Judging, Overview};
use crate::inspect::wanted::Wanted;
use crate::judge::agreement::version_of;
use crate::judge::{State, Verdict};
use crate::ledger::{Ledger, LedgerError, Row};
use crate::model::Line;
use crate::text::truncate;
use crate::time::{Time, span};
use crate::words::{glyph, next_step};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Rows read at once.
const WINDOW: usize = 2_000;
/// So many rows are held in memory, so that counts and rows are from one moment.
const AT_ONCE: usize = 10_000;
/// Rows shown to people unless they ask for more.
const SHOWN: usize = 1_000;
/// Next steps told to people.
const STEPS: usize = 10;
/// Bytes of JSON written at once.
const CHUNK: usize = 64 << 10;

#[derive(Serialize)]
struct Head {
    schema: &'static str,
    counts: BTreeMap<String, u64>,
    effects: Option<u64>,
    suspect_pairs: u64,
    duplicates: u64,
    effects_without_request: u64,
    requests_purged: u64,
    /// Unfinished rows that were too many to judge each.
    not_judged: u64,
    /// When it was counted; `one_moment`: all counts are of that moment.
    as_of: String,
    one_moment: bool,
    remarks: Vec<String>,
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
    /// `None`: this ledger can't show effects, or not all of them.
    pub effects: Option<u64>,
    pub label: String,
    pub result: Option<Box<RawValue>>,
    pub verdict: Vec<String>,
    pub next: String,
    /// Names what the ledger has of it, until that changes; null where it has no row.
    pub row_version: Option<String>,
    /// How many rows have this request_id, where that is more than this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_with_id: Option<u64>,
    /// What tells this row from those: columns with their values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_by: Option<BTreeMap<String, String>>,
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
            effects: l.effects,
            label: l.label.clone(),
            result: l.row.result.as_deref().and_then(raw_value),
            verdict: l.verdict_words(),
            next: next_step(&l.finding.next, now),
            row_version: (l.row.rowid != 0).then(|| version_of(&l.row.request_id, Some(&l.row), 0)),
            rows_with_id: l.row.same.as_ref().map(|s| s.rows),
            told_by: l.row.same.as_ref().map(|s| s.tells.iter().cloned().collect()),
        }
    }
}

pub async fn run(a: RowsArgs) -> Done {
    let written = a.filter.join(" ");
    parse(&written)
        .map_err(|m| Error::usage(format!("the filter has a mistake:\n{}", m.marked(&written))))?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let Some(ledger) = ledger else {
        return Err(Error::usage("rows needs a ledger")
            .hint("name the server's SQLite file: --ledger FILE")
            .into());
    };
    let inspector = Inspector::new(Some(ledger.clone()), None, rules);
    // One more than is wanted tells whether there are more.
    let wanted = a.limit.unwrap_or(if a.json { usize::MAX } else { SHOWN });
    let all = a.state.is_empty() && written.trim().is_empty();
    let wanted = if all { wanted.saturating_add(1) } else { usize::MAX };
    let (overview, held) = snapshot(&inspector, wanted).await.map_err(ledger_error)?;
    let judging = inspector.judging(overview).await;
    known_states(&a.state, inspector.counts(&judging, Time::now()).states.keys())?;
    let filter = Wanted::new(&written, &judging);
    let windows = Windows { ledger, inspector, judging, held, filter, now: Time::now() };
    if a.json { json(&a, &windows).await } else { plain(&a, &windows).await }
}

/// A state that nobody has a word for selects nothing, silently. The ledger's own words count too.
///
/// # Errors
/// Exit 2 with near words.
fn known_states<'a>(asked: &[String], there: impl Iterator<Item = &'a State>) -> Result<(), Error> {
    let mut words: Vec<&str> = STATES.iter().map(State::word).collect();
    words.extend(there.map(State::word));
    let unknown = asked.iter().find(|a| !words.iter().any(|w| w.eq_ignore_ascii_case(a)));
    let Some(asked) = unknown else { return Ok(()) };
    let error = Error::usage(format!(
        "--state {asked:?} is no state of a request, and no word of this ledger"
    ));
    let near = crate::near::near(&words, asked);
    Err(match near.is_empty() {
        true => error.hint(format!("there are: {}", words.join(", "))),
        false => error.hint(format!("did you mean {}?", near.join(" or "))),
    })
}

/// The states that a row can be in by redial's own words.
const STATES: [State; 7] = [
    State::Running,
    State::Done,
    State::Abandoned,
    State::Waiting,
    State::Failed,
    State::Cancelled,
    State::Expired,
];

/// The overview, and the newest `wanted` rows from the same read where they are few enough.
async fn snapshot(
    inspector: &Inspector,
    wanted: usize,
) -> Result<(Overview, Option<Vec<Row>>), LedgerError> {
    let most = wanted.min(AT_ONCE + 1);
    let read = inspector.overview_and(|| async {}, move |r| r.newest(None, most)).await?;
    let (mut overview, rows) = read;
    let rows = rows.filter(|rows| rows.len() <= AT_ONCE || wanted <= AT_ONCE);
    let torn = overview.how.as_ref().is_some_and(|h| !h.whole);
    if let Some(how) = overview.how.as_mut().filter(|_| torn || rows.is_none()) {
        how.infos.push(
            "read in pieces: what was written meanwhile may be in the rows and not in the counts, or the other way round".into(),
        );
    }
    Ok((overview, rows))
}

async fn json(a: &RowsArgs, windows: &Windows) -> Done {
    let counts = windows.inspector.counts(&windows.judging, windows.now);
    let head = document(&Head {
        schema: "redial/rows@1",
        counts: counts.states.iter().map(|(s, n)| (s.word().to_owned(), *n)).collect(),
        effects: counts.effects,
        suspect_pairs: counts.suspect_pairs,
        duplicates: counts.duplicates,
        effects_without_request: counts.effects_without_request,
        requests_purged: counts.requests_purged,
        not_judged: counts.not_judged,
        as_of: counts.as_of.rfc3339(),
        one_moment: !counts.about && !counts.parts_about,
        remarks: ledger_remarks(windows.judging.overview.how.as_ref()),
    });
    // Row by row: a ledger of a million rows is not held in memory to be written down.
    let mut out = format!("{},\n  \"rows\": [", head.trim_end().trim_end_matches('}').trim_end());
    let mut first = true;
    let done = windows
        .each(&a.state, a.limit.unwrap_or(usize::MAX), |line| {
            out.push_str(if first { "\n    " } else { ",\n    " });
            first = false;
            let row = document(&RowJson::new(&line, windows.now));
            out.push_str(&row.trim_end().replace('\n', "\n    "));
            out.len() < CHUNK || print_raw(&std::mem::take(&mut out))
        })
        .await;
    out.push_str(if first { "]" } else { "\n  ]" });
    let exit = match done {
        Ok(_) => Exit::Good,
        // The document is begun: it says itself that it is not whole.
        Err(e) => {
            complain(&e.to_string());
            out.push_str(",\n  \"error\": ");
            out.push_str(line(&ErrorJson::of(&e)).trim_end());
            e.exit
        }
    };
    out.push_str("\n}\n");
    print_raw(&out);
    Ok(exit)
}

async fn plain(a: &RowsArgs, windows: &Windows) -> Done {
    let mut lines = Vec::new();
    let more = windows
        .each(&a.state, a.limit.unwrap_or(SHOWN), |line| {
            lines.push(line);
            true
        })
        .await?;
    let (judging, now) = (&windows.judging, windows.now);
    let mut p = Plain::stdout();
    p.line(Role::Strong, &windows.inspector.counts(judging, now).headline());
    remarks_plain(&mut p, judging.overview.how.as_ref());
    p.gap();
    if !lines.is_empty() {
        table(&mut p, &lines, now);
    } else if judging.overview.rows == 0 {
        p.line(Role::Dim, "the ledger has no requests yet");
    } else if !windows.filter.is_empty() {
        p.line(Role::Dim, &format!("no row matches: 0 of {}", judging.overview.rows));
    } else if a.state.is_empty() {
        p.line(Role::Dim, "no row is shown (--limit 0)");
    } else {
        p.line(Role::Dim, &format!("no row is in the state {}", a.state.join(" or ")));
    }
    if !windows.filter.is_empty() && !lines.is_empty() && !more {
        p.line(Role::Dim, &format!("{} of {}", lines.len(), judging.overview.rows));
    }
    if more && !lines.is_empty() {
        p.line(Role::Dim, "… and more (--limit N)");
    }
    steps(&mut p, &lines, now);
    p.print();
    Ok(Exit::Good)
}

/// What can be done about the rows that are not simply finished.
fn steps(p: &mut Plain, lines: &[Line], now: Time) {
    let open = |l: &&Line| l.finding.verdicts.first() != Some(&Verdict::Finished);
    let (open, rest): (Vec<&Line>, usize) = {
        let all = lines.iter().filter(open).count();
        (lines.iter().filter(open).take(STEPS).collect(), all.saturating_sub(STEPS))
    };
    if open.is_empty() {
        return;
    }
    p.gap();
    p.line(Role::Strong, "what to do (redial find REQUEST_ID tells why):");
    for l in open {
        p.field(&l.name(), Role::Text, &next_step(&l.finding.next, now));
    }
    if rest > 0 {
        p.line(Role::Dim, &format!("… and {rest} more"));
    }
}

/// The ledger's rows, judged, a window at a time.
struct Windows {
    ledger: Ledger,
    inspector: Inspector,
    judging: Judging,
    /// The rows, where they were read together with the counts.
    held: Option<Vec<Row>>,
    filter: Wanted,
    now: Time,
}

impl Windows {
    /// The next rows older than `before`.
    async fn window(&self, before: Option<i64>, n: usize) -> Result<Vec<Row>, Error> {
        if let Some(held) = &self.held {
            let older = held.iter().filter(|r| before.is_none_or(|b| r.rowid < b));
            return Ok(older.take(n).cloned().collect());
        }
        self.ledger.read_async(move |r| r.newest(before, n)).await.map_err(ledger_error)
    }

    /// Hands over judged lines in the wanted states, from the end of the table, at most `limit`, until `take` has enough; says
    /// whether there are more.
    async fn each(
        &self,
        states: &[String],
        limit: usize,
        mut take: impl FnMut(Line) -> bool,
    ) -> Result<bool, Error> {
        let wanted = |s: &State| {
            states.is_empty() || states.iter().any(|w| w.eq_ignore_ascii_case(s.word()))
        };
        let (mut taken, mut before) = (0, None);
        // One more than is wanted tells whether there are more.
        let all = states.is_empty() && self.filter.is_empty();
        let window = if all { limit.saturating_add(1).min(WINDOW) } else { WINDOW };
        loop {
            let rows = self.window(before, window).await?;
            let Some(last) = rows.last() else { return Ok(false) };
            before = Some(last.rowid);
            let lines = self.inspector.lines(&rows, &self.judging, self.now);
            let passes = |l: &Line| wanted(&l.judged.state) && self.filter.holds(l);
            for line in lines.into_iter().filter(passes) {
                if taken >= limit {
                    return Ok(true);
                }
                taken += 1;
                if !take(line) {
                    return Ok(true);
                }
            }
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
            (role, glyph(&l.judged.state).to_owned()),
            (role, l.judged.state.word().to_owned()),
            (Role::Strong, l.name().into_owned()),
            (Role::Text, truncate(&crate::text::visible(&l.label), 40, "…").into_owned()),
            (Role::Dim, l.age_s(now).map_or_else(|| "–".into(), span)),
            (Role::Text, l.effects.map_or_else(|| "–".into(), |n| n.to_string())),
            (role_of_verdict, words.join(", ")),
        ]);
    }
    p.table(&rows, 3);
}
