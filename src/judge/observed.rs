//! Whose owner was seen to end: ties the owners of ledger rows to generations of the endpoint.
//!
//! An owner fits a generation when a call with that request_id was sent on it before its claim and the owner hasn't
//! changed since. Whatever speaks against it makes it unknown: a second candidate on either side, an owner that claimed
//! outside that life, another owner that held the row since the call, an answer that says that somebody else did the
//! work. That it fits proves nothing: another server may write the same file. It is proven where the owner's own value
//! was seen from that generation: said on stderr before any call came, its process id, or in the row that an answer of
//! work done there and then names (design: "`abandoned` is judged").

use super::owners::OwnerView;
use crate::journal::call::answer_object;
use crate::journal::event::Transport;
use crate::journal::{AnswerStatus, Call, Generation, Outcome};
use crate::json::raw;
use crate::ledger::{DONE, Row};
use crate::procs::{Left, Process};
use crate::time::Time;
use std::collections::BTreeMap;

/// Seconds within which a server claims what it was sent. A later claim of a call that got no answer may as well be
/// somebody else's: a takeover that nobody saw.
const PROMPT_S: f64 = 5.0;

/// A process whose end was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The generation it was.
    pub generation: u32,
    /// When its end was noticed.
    pub at: Time,
    /// How it ended: `exit code 1`, `signal 9 (SIGKILL)`.
    pub how: String,
}

impl Observed {
    /// The generation's end; `None` while it lives, where an end can't be seen (HTTP), and while something that
    /// the ended process had started may still run: that may be the server itself.
    pub fn of(generation: &Generation) -> Option<Observed> {
        let end = generation.ended?;
        Some(Observed { generation: generation.n, at: end.gone_at?, how: end.how() })
    }

    /// What a launcher had started, when that is gone: its own end was seen, that of the server was not.
    fn launched(generation: &Generation) -> Option<Observed> {
        let nobody = generation.left == Left::Nobody;
        let end = generation.ended.filter(|e| e.launcher && e.gone_at.is_none() && nobody)?;
        Some(Observed { generation: generation.n, at: end.at, how: end.how() })
    }

    /// For people.
    pub fn words(&self) -> String {
        format!(
            "its owner's process ({}) was seen to end: {}",
            crate::journal::generation::generation_name(self.generation),
            self.how
        )
    }
}

impl Observed {
    /// For people, where it was a launcher's.
    pub fn launched_words(&self) -> String {
        format!("of {} {}", crate::journal::generation::generation_name(self.generation), self.how)
    }

    /// For people, where only the times say whose it was.
    pub fn likely_words(&self) -> String {
        format!(
            "the process that was sent it just before the claim ({}) was seen to end: {}; nothing proves that it was the owner",
            crate::journal::generation::generation_name(self.generation),
            self.how
        )
    }
}

/// A process that ended, and left others behind that go on: one of them may be the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoesOn {
    /// The generation it was.
    pub generation: u32,
    /// When its end was noticed.
    pub at: Time,
    /// How it ended.
    pub how: String,
    /// What goes on.
    pub left: Vec<Process>,
}

impl GoesOn {
    /// What a generation left behind, if it is known.
    pub fn of(generation: &Generation) -> Option<GoesOn> {
        let end = generation.ended.filter(|e| e.gone_at.is_none())?;
        let Left::These(left) = &generation.left else { return None };
        let (n, left) = (generation.n, left.clone());
        Some(GoesOn { generation: n, at: end.at, how: end.words(), left })
    }

    /// Who goes on, for the end of a sentence. May hold foreign text.
    pub fn left_words(&self) -> String {
        Left::These(self.left.clone()).words()
    }

    /// For people.
    pub fn words(&self) -> String {
        let whose = crate::journal::generation::generation_name(self.generation);
        format!("its owner's process ({whose}) ended: {}, but {}", self.how, self.left_words())
    }
}

/// How the process that owns a row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerEnd {
    /// Nobody is left.
    Seen(Observed),
    /// Something that it started goes on.
    GoesOn(GoesOn),
    /// A process ended that may have been the owner: its call came just before the claim, and nothing else says so.
    Likely(Observed),
    /// A launcher ended, and later nothing was left of what it had started: how its server ended was not seen.
    Launched(Observed),
}

/// Which generation an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tie {
    /// The generation.
    pub generation: u32,
    /// The owner's own value was seen from it; otherwise only the times fit.
    pub proven: bool,
}

/// Which generation each owner is, as far as calls prove it. Any row of the ledger may prove it: one that
/// is done shows whose process its owner was. `calls` must not hold look-ups, which claim nothing.
/// `other_owner_at` gives the newest claim of this row that was seen of another owner than its present one.
pub fn owner_generations<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    calls: &[&Call],
    generations: &[Generation],
    owners: &OwnerView,
    other_owner_at: impl Fn(&Row) -> Option<Time>,
) -> BTreeMap<String, Tie> {
    // By owner: the one generation that fits all its rows, and whether an answer of it proves that.
    let mut found: BTreeMap<String, Option<(u32, bool)>> = BTreeMap::new();
    for row in rows {
        let (Some(owner), Some(claimed)) = (row.owner.as_deref(), row.claimed_at) else { continue };
        let other = other_owner_at(row);
        for g in generations {
            let mut tied = calls
                .iter()
                .filter(|c| c.generation == g.n && claimed_by(row, c))
                // A call that came before another owner's claim may have been that one's.
                .filter(|c| other.is_none_or(|at| at < c.sent_at))
                .peekable();
            let first = owners.claims_of(owner).map_or(claimed, |c| c.first.min(claimed));
            let named = is_named(g, owner, first);
            if (tied.peek().is_none() && !named)
                || !lived_through(g, claimed, claimed)
                || owners.claims_of(owner).is_some_and(|c| !lived_through(g, c.first, c.last))
            {
                continue;
            }
            let proven = named || tied.any(|c| ran_here(c) && answer_of(row, c));
            found
                .entry(owner.to_owned())
                .and_modify(|known| {
                    *known = known.filter(|(n, _)| *n == g.n).map(|(n, p)| (n, p || proven));
                })
                .or_insert(Some((g.n, proven)));
        }
    }
    let fits: Vec<(String, u32, bool)> = found
        .into_iter()
        .filter_map(|(owner, f)| f.map(|(n, proven)| (owner, n, proven)))
        .collect();
    // A process is one owner: of two that fit, only a proven one is.
    let alone = |n: u32, proven: bool| {
        let (all, sure) = fits
            .iter()
            .filter(|f| f.1 == n)
            .fold((0, 0), |(all, sure), f| (all + 1, sure + usize::from(f.2)));
        all == 1 || (proven && sure == 1)
    };
    let tie = |f: &(String, u32, bool)| (f.0.clone(), Tie { generation: f.1, proven: f.2 });
    fits.iter().filter(|f| alone(f.1, f.2)).map(tie).collect()
}

/// The shortest word that nobody says by chance.
const OWN_WORD: usize = 6;

/// Whether that generation was seen to call itself so: by what it said before it was asked anything and before that
/// owner's `first` claim, or by its process id.
pub fn is_named(g: &Generation, owner: &str, first: Time) -> bool {
    let is_pid = match &g.transport {
        Transport::Stdio { pid: Some(pid), .. } => owner == pid.to_string(),
        _ => false,
    };
    is_pid || (owner.len() >= OWN_WORD && g.named_itself(owner, first))
}

/// The answer says that this call did the work, and did not only hand a stored result back.
fn ran_here(call: &Call) -> bool {
    call.settled.as_ref().is_some_and(|s| s.answer_status == Some(AnswerStatus::Done))
        && replayed(call) == Some(false)
}

/// The finished row holds what this call was answered with: both name one thing by a word that is nobody else's.
pub fn answer_of(row: &Row, call: &Call) -> bool {
    let said = call.settled.as_ref().and_then(|s| answer_object(s.result.as_deref()?));
    let Some(said) = said.filter(|_| row.status == DONE) else { return false };
    let ids = |object: &str| -> BTreeMap<String, String> {
        let members = raw::members(object).unwrap_or_default().into_iter();
        let named = members.filter(|(name, _)| name.to_ascii_lowercase().ends_with("id"));
        let values = named.filter_map(|(name, v)| Some((name.into_owned(), raw::as_str(v)?)));
        values.filter(|(_, v)| v.len() >= OWN_WORD && *v != row.request_id).collect()
    };
    let stored = row.result.as_deref().map(ids).unwrap_or_default();
    let said = ids(&said);
    // Both name the same kind of thing, and mean two of them: another server did what the row says.
    if said.iter().any(|(name, v)| stored.get(name).is_some_and(|other| other != v)) {
        return false;
    }
    // The caller's own words are in everybody's answer.
    let args = call.args.as_deref().unwrap_or_default();
    let known: Vec<&String> = stored.values().chain(row.effects.iter().map(|e| &e.key)).collect();
    said.values().any(|v| known.contains(&v) && !args.contains(v.as_str()))
}

/// What the answer says of itself: whether it is the stored result of an earlier run.
pub fn replayed(call: &Call) -> Option<bool> {
    let object = answer_object(call.settled.as_ref()?.result.as_deref()?)?;
    raw::get(&object, "replayed").and_then(raw::as_bool)
}

/// The end of the process that owns `row`, if it was seen.
pub fn owner_end(
    row: &Row,
    owner_generations: &BTreeMap<String, Tie>,
    generations: &[Generation],
) -> Option<OwnerEnd> {
    let tie = owner_generations.get(row.owner.as_deref()?)?;
    let generation = generations.iter().find(|g| g.n == tie.generation)?;
    let seen = Observed::of(generation);
    let seen = seen.map(if tie.proven { OwnerEnd::Seen } else { OwnerEnd::Likely });
    seen.or_else(|| GoesOn::of(generation).map(OwnerEnd::GoesOn))
        .or_else(|| Observed::launched(generation).map(OwnerEnd::Launched))
}

/// A process can't claim before it was started nor after it ended.
fn lived_through(g: &Generation, first: Time, last: Time) -> bool {
    g.opened_at <= first && g.ended.and_then(|e| e.gone_at).is_none_or(|gone| last <= gone)
}

/// Whether `call` can be what made the claim that `row` holds now.
pub fn claimed_by(row: &Row, call: &Call) -> bool {
    let Some(claimed) = row.claimed_at else { return false };
    call.request_id.as_deref() == Some(row.request_id.as_str())
        && call.sent > 0
        && call.sent_at <= claimed
        && call.settled.as_ref().map_or(prompt(call, claimed), |s| match s.outcome {
            Outcome::NotSent | Outcome::Refused => false,
            // An answer that came before the claim was not this claim's; one that is of an earlier run, or
            // gave up waiting for another one, says that who answered did not claim. A result that was let go
            // may have said so.
            Outcome::Ok => {
                s.at >= claimed
                    && s.result.is_some()
                    && s.answer_status != Some(AnswerStatus::InProgress)
                    && replayed(call) != Some(true)
            }
            Outcome::ToolError | Outcome::RpcError => s.at >= claimed,
            // Given up here; the server may have claimed all the same.
            Outcome::Unknown => prompt(call, claimed),
        })
}

/// The claim followed the call's sending closely; a clock that is behind doesn't speak against it.
pub fn prompt(call: &Call, claimed: Time) -> bool {
    call.sent_at.age_at(claimed) <= PROMPT_S
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, ended, generation, row, t};
    use super::*;
    use crate::journal::AnswerStatus;

    fn observed(
        row: &Row,
        owners: &BTreeMap<String, Tie>,
        generations: &[Generation],
    ) -> Option<Observed> {
        match owner_end(row, owners, generations) {
            Some(OwnerEnd::Seen(end) | OwnerEnd::Likely(end)) => Some(end),
            _ => None,
        }
    }

    fn at(map: &BTreeMap<String, Tie>, owner: &str) -> Option<u32> {
        map.get(owner).map(|t| t.generation)
    }

    fn learn(rows: &[Row], calls: &[Call], generations: &[Generation]) -> BTreeMap<String, Tie> {
        let calls: Vec<&Call> = calls.iter().collect();
        owner_generations(rows, &calls, generations, &OwnerView::from_rows(rows), |_| None)
    }

    fn answered(id: &str, object: &str, status: AnswerStatus) -> Call {
        let mut c = call(id, 1, 9.0).ok(15.0, status);
        if let Some(s) = c.settled.as_mut() {
            s.result =
                Some(format!(r#"{{"content":[],"structuredContent":{object}}}"#).as_str().into());
        }
        c
    }

    #[test]
    fn who_answers_that_another_did_it_has_not_claimed() {
        let rows = [row("r", "done", "B", 12.0)];
        let gens = [generation(1, 0.0)];
        for (object, status, want) in [
            (r#"{"replayed":true}"#, AnswerStatus::Done, None),
            (r#"{"status":"in_progress"}"#, AnswerStatus::InProgress, None),
            (r#"{"replayed":false}"#, AnswerStatus::Done, Some(1)),
            (r#"{"ticket_id":"T-1"}"#, AnswerStatus::Done, Some(1)),
        ] {
            let map = learn(&rows, &[answered("r", object, status)], &gens);
            assert_eq!(at(&map, "B"), want, "{object}");
        }
    }

    #[test]
    fn a_process_is_one_owner_and_a_takeover_is_not_its_claim() {
        // Our child (A) lost r to another server (B), which works on it after our child has died.
        let gens = [ended(generation(1, 0.0), 20.0)];
        let lost = call("r", 1, 9.0).unknown(20.0);
        let taken = row("r", "running", "B", 12.0);
        let rows = [row("other", "running", "A", 9.1), taken.clone()];
        let calls = [call("other", 1, 9.0), lost.clone()];
        assert!(learn(&rows, &calls, &gens).is_empty(), "two owners fit one process: neither");
        // An answer that says it ran here tells which of them it is.
        let made = r#"{"ticket_id":"T-0000001"}"#;
        let done = Row { result: Some(made.into()), ..row("other", "done", "A", 9.1) };
        let rows = [done, taken.clone()];
        let ran = r#"{"ticket_id":"T-0000001","replayed":false}"#;
        let calls = [answered("other", ran, AnswerStatus::Done), lost.clone()];
        let map = learn(&rows, &calls, &gens);
        assert_eq!((at(&map, "A"), at(&map, "B")), (Some(1), None));
        // The row was seen in other hands after the call was sent.
        let view = OwnerView::from_rows([&taken]);
        let with = |other: Option<f64>| {
            owner_generations([&taken], &[&lost], &gens, &view, |_| other.map(t)).len()
        };
        assert_eq!((with(None), with(Some(9.1)), with(Some(5.0))), (1, 0, 1));
    }

    #[test]
    fn a_call_before_the_claim_ties_the_owner_to_its_generation() {
        let rows = [row("r", "running", "A", 10.0)];
        let gens = [ended(generation(1, 0.0), 20.0), generation(2, 21.0)];
        let map = learn(&rows, &[call("r", 1, 9.0)], &gens);
        assert_eq!(at(&map, "A"), Some(1));
        let seen = observed(&rows[0], &map, &gens).unwrap();
        assert_eq!((seen.generation, seen.how.as_str()), (1, "signal 9 (SIGKILL)"));
    }

    #[test]
    fn another_row_of_the_same_owner_proves_it_too() {
        let rows = [row("done-1", "done", "A", 5.0), row("r", "running", "A", 10.0)];
        let gens = [ended(generation(1, 0.0), 20.0)];
        let done = call("done-1", 1, 4.0).ok(6.0, AnswerStatus::Done);
        let map = learn(&rows, &[done], &gens);
        assert!(observed(&rows[1], &map, &gens).is_some());
    }

    #[test]
    fn what_speaks_against_it_is_heard() {
        let dead = ended(generation(1, 0.0), 20.0);
        let cases: [(&str, Vec<Row>, Vec<Call>); 7] = [
            (
                "sent after the claim",
                vec![row("r", "running", "A", 10.0)],
                vec![call("r", 1, 11.0)],
            ),
            (
                "claimed after that process ended",
                vec![row("r", "running", "A", 30.0)],
                vec![call("r", 1, 9.0)],
            ),
            (
                "the owner claimed before that process began",
                vec![row("old", "done", "A", -5.0), row("r", "running", "A", 10.0)],
                vec![call("r", 1, 9.0)],
            ),
            (
                "the owner claimed after that process ended",
                vec![row("new", "running", "A", 25.0), row("r", "running", "A", 10.0)],
                vec![call("r", 1, 9.0)],
            ),
            (
                "never left",
                vec![row("r", "running", "A", 10.0)],
                vec![call("r", 1, 9.0).not_sent(9.0)],
            ),
            (
                "answered before the claim",
                vec![row("r", "running", "A", 10.0)],
                vec![call("r", 1, 2.0).ok(3.0, AnswerStatus::InProgress)],
            ),
            (
                "no claim time",
                vec![Row { claimed_at: None, ..row("r", "running", "A", 0.0) }],
                vec![call("r", 1, 9.0)],
            ),
        ];
        for (why, rows, calls) in cases {
            let map = learn(&rows, &calls, std::slice::from_ref(&dead));
            assert_eq!(
                observed(rows.last().unwrap(), &map, std::slice::from_ref(&dead)),
                None,
                "{why}"
            );
        }
    }

    #[test]
    fn a_launcher_s_end_is_not_its_server_s_until_all_it_started_is_gone() {
        let mut gens = [ended(generation(1, 0.0), 20.0)];
        let set = |gens: &mut [Generation], gone: Option<f64>| {
            let end = gens[0].ended.as_mut().unwrap();
            end.gone_at = gone.map(super::super::testing::t);
        };
        set(&mut gens, None);
        // It goes on to claim after the launcher's end: still its owner, and alive for all we know.
        let rows = [row("r", "running", "A", 10.0), row("s", "running", "A", 25.0)];
        let calls = [call("r", 1, 9.0), call("s", 1, 19.0)];
        let map = learn(&rows, &calls, &gens);
        assert_eq!((at(&map, "A"), observed(&rows[1], &map, &gens)), (Some(1), None));
        set(&mut gens, Some(30.0));
        let map = learn(&rows, &calls, &gens);
        assert_eq!(observed(&rows[1], &map, &gens).unwrap().at, super::super::testing::t(30.0));
    }

    #[test]
    fn a_claim_long_after_an_unanswered_call_may_be_anybody_s() {
        let gens = [ended(generation(1, 0.0), 60.0)];
        for (claimed, tied) in [(13.0, true), (15.0, false)] {
            let rows = [row("r", "running", "B", claimed)];
            let map = learn(&rows, &[call("r", 1, 9.0).unknown(60.0)], &gens);
            assert_eq!(map.contains_key("B"), tied, "{claimed}");
            assert_eq!(learn(&rows, &[call("r", 1, 9.0)], &gens).contains_key("B"), tied);
        }
        // One that was answered as done here is another matter: its work took so long.
        let rows = [row("r", "done", "B", 30.0)];
        let mut late = answered("r", r#"{"replayed":false}"#, AnswerStatus::Done);
        late.settled.as_mut().unwrap().at = t(40.0);
        assert!(learn(&rows, &[late], &gens).contains_key("B"));
    }

    #[test]
    fn two_candidates_are_none_and_a_living_one_has_not_ended() {
        let rows = [row("r", "running", "A", 10.0)];
        let both = [ended(generation(1, 0.0), 20.0), generation(2, 5.0)];
        assert!(learn(&rows, &[call("r", 1, 9.0), call("r", 2, 9.0)], &both).is_empty());
        let alive = [generation(1, 0.0)];
        let map = learn(&rows, &[call("r", 1, 9.0)], &alive);
        assert_eq!((map.len(), observed(&rows[0], &map, &alive)), (1, None));
    }

    #[test]
    fn a_launcher_s_exit_code_says_nothing_of_its_server() {
        let mut g = ended(generation(1, 0.0), 20.0);
        let end = g.ended.as_mut().unwrap();
        (end.gone_at, end.launcher, end.code, end.signal) = (None, true, Some(0), None);
        let rows = [row("r", "running", "A", 10.0)];
        let map = learn(&rows, &[call("r", 1, 9.0)], std::slice::from_ref(&g));
        let Some(OwnerEnd::Launched(end)) = owner_end(&rows[0], &map, std::slice::from_ref(&g))
        else {
            panic!("{map:?}");
        };
        assert!(end.launched_words().contains("exit code 0 was its launcher's"));
        let view = OwnerView::from_rows(&rows);
        let rules = crate::judge::Rules::default();
        let end = Some(OwnerEnd::Launched(end));
        let judged = crate::judge::judge_row(&rows[0], &view, rules, end.as_ref(), None, t(21.0));
        assert_eq!(judged.strength, crate::judge::Strength::Presumed);
        // Somebody who was never seen held the pipes: not even that.
        g.left = Left::Perhaps;
        assert_eq!(owner_end(&rows[0], &map, &[g]), None);
    }

    #[test]
    fn who_left_somebody_behind_was_not_seen_to_end() {
        let mut g = ended(generation(1, 0.0), 20.0);
        g.ended.as_mut().unwrap().gone_at = None;
        g.left = Left::These(vec![Process { pid: 4711, name: "worker.py".into() }]);
        let rows = [row("r", "running", "A", 10.0)];
        let map = learn(&rows, &[call("r", 1, 9.0)], std::slice::from_ref(&g));
        let Some(OwnerEnd::GoesOn(end)) = owner_end(&rows[0], &map, std::slice::from_ref(&g))
        else {
            panic!("{map:?}");
        };
        assert!(end.words().ends_with(r#"a process it started (pid 4711, "worker.py") goes on"#));
        // Nobody could look: nothing is known of it either way.
        g.left = Left::Perhaps;
        assert_eq!(owner_end(&rows[0], &map, &[g]), None);
    }

    #[test]
    fn times_that_fit_prove_no_owner() {
        let gens = [ended(generation(1, 0.0), 20.0)];
        let end = |rows: &[Row], calls: &[Call], gens: &[Generation]| {
            let map = learn(rows, calls, gens);
            owner_end(rows.last().unwrap(), &map, gens)
        };
        let likely = |end: &Option<OwnerEnd>| matches!(end, Some(OwnerEnd::Likely(_)));
        let seen = |end: &Option<OwnerEnd>| matches!(end, Some(OwnerEnd::Seen(_)));
        // Another server on the file may have claimed what ours was asked for too.
        let lost = call("r", 1, 9.0).unknown(20.0);
        let rows = [row("r", "running", "serverB", 10.0)];
        let got = end(&rows, std::slice::from_ref(&lost), &gens);
        assert!(likely(&got), "{got:?}");

        // It said who it is before anybody had asked it anything, and before that owner's first claim.
        let boot = |at: f64, line: &str| {
            let mut g = gens[0].clone();
            g.boot.push((t(at), line.to_owned().into()));
            [g]
        };
        for (at, line, proven) in [
            (1.0, "boot id serverB", true),
            (1.0, "serverB-2 is up", false),
            (15.0, "r is claimed by serverB, waiting for it", false),
        ] {
            let got = end(&rows, std::slice::from_ref(&lost), &boot(at, line));
            assert_eq!(seen(&got), proven, "{line}: {got:?}");
        }
        // A word that anybody may say, and a process id that is its own.
        let short = [row("r", "running", "B", 10.0)];
        assert!(!seen(&end(&short, std::slice::from_ref(&lost), &boot(1.0, "plan B"))));
        let pid = [row("r", "running", "1", 10.0)];
        assert!(seen(&end(&pid, std::slice::from_ref(&lost), &gens)));

        // An earlier row that its own answer names: work done there and then.
        let stored = r#"{"ticket_id": "T-8780d74f", "title": "a", "customer_id": "customer-42", "shop_id": "shop-north"}"#;
        let done = Row { result: Some(stored.into()), ..row("old", "done", "serverB", 5.0) };
        let rows = [done, rows[0].clone()];
        let earlier = |object: &str| {
            let mut c = answered("old", object, AnswerStatus::Done);
            c.sent_at = t(4.0);
            c.args = Some(r#"{"request_id":"old","customer_id":"customer-42"}"#.into());
            c.settled.as_mut().unwrap().at = t(6.0);
            [c, lost.clone()]
        };
        for (object, proven) in [
            (r#"{"ticket_id":"T-8780d74f","title":"a","replayed":false}"#, true),
            (r#"{"ticket_id":"T-8780d74f","title":"a","replayed":true}"#, false),
            (r#"{"ticket_id":"T-8780d74f","title":"a"}"#, false),
            (r#"{"ticket_id":"T-00000000","replayed":false}"#, false),
            (r#"{"replayed":false}"#, false),
            // The caller's own words, and a word that both have beside another thing.
            (r#"{"customer_id":"customer-42","replayed":false}"#, false),
            (r#"{"ticket_id":"T-00000000","shop_id":"shop-north","replayed":false}"#, false),
        ] {
            let got = end(&rows, &earlier(object), &gens);
            assert_eq!(seen(&got), proven, "{object}: {got:?}");
        }
    }
}
