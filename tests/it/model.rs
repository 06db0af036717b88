//! Model and judgement over real ledgers: the night that four SIGKILLs left (a copied fixture), and one
//! whose rows were swept.

use super::ledger_read::night;
use redial::inspect::Inspector;
use redial::judge::verify::Expected;
use redial::judge::{HashCheck, Owners, Rules, Verdict};
use redial::ledger::Ledger;
use redial::model::{Counts, Line, hash};
use redial::time::Time;
use redial::words::next_step;

/// Three hours after the last claim of the night.
fn later() -> Time {
    Time::from_seconds(1795963560.0 + 3.0 * 3600.0).unwrap()
}

async fn board(rules: Rules) -> (Vec<Line>, Counts) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(night(dir.path()));
    let inspector = Inspector::new(Some(ledger.clone()), None, rules);
    let judging = inspector.judging(inspector.overview(|| async {}).await.unwrap()).await;
    let rows = ledger.read_async(|r| r.newest(None, 100)).await.unwrap();
    (inspector.lines(&rows, &judging, later()), inspector.counts(&judging, later()))
}

#[tokio::test]
async fn the_night_ledger_in_one_sentence_and_line_by_line() {
    let (lines, counts) = board(Rules::default()).await;
    assert_eq!(counts.headline(), "7 requests · 5 done · 2 abandoned · 5 tickets · 1 suspect pair");
    let told: Vec<_> = lines
        .iter()
        .map(|l| {
            let verdict = l.verdict_words().join(" ");
            (&*l.row.request_id, l.judged.state().word(), l.judged.strength().word(), verdict)
        })
        .collect();
    let done = |id, verdict: &str| (id, "done", "stored", verdict.to_owned());
    let gone = |id| (id, "abandoned", "presumed", "stalled".to_owned());
    assert_eq!(
        told,
        [
            gone("night-007"),
            done("night-006", "suspect_duplicate finished"),
            gone("night-005"),
            done("night-004", "finished"),
            done("night-003", "finished"),
            done("night-002", "finished"),
            done("night-001", "suspect_duplicate finished"),
        ]
    );
    assert_eq!(lines[6].label, "障害報告");
    let next = |l: &Line| next_step(l.finding.next(), later());
    assert!(next(&lines[6]).contains("look at the pair: night-006"));
    let stalled = "may still be working; the server lets a repeat take over since ";
    assert!(next(&lines[0]).starts_with(stalled), "{}", next(&lines[0]));
}

#[tokio::test]
async fn with_a_limit_that_never_passes_only_a_newer_owner_speaks() {
    let rules = Rules { stale_limit_s: 999_999_999.0, owners: Owners::Auto };
    let (lines, counts) = board(rules).await;
    assert_eq!(
        counts.headline(),
        "7 requests · 5 done · 1 running · 1 abandoned · 5 tickets · 1 suspect pair"
    );
    let of = |id: &str| lines.iter().find(|l| l.row.request_id == id).unwrap();
    assert_eq!(of("night-005").finding.verdicts(), [Verdict::Stalled]);
    assert!(of("night-005").judged.why().contains("a newer owner has claimed since"));
    assert_eq!(of("night-007").finding.verdicts(), [Verdict::Working]);
}

#[tokio::test]
async fn other_rows_prove_the_recipe_and_make_a_difference_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let inspector = Inspector::new(Some(Ledger::open(night(dir.path()))), None, Rules::default());
    let wrong = inspector.request("night-005", Some(r#"{"title":"x","body":"y"}"#)).await;
    assert_eq!(wrong.hash.check, HashCheck::DiffersProven);
    assert_eq!(wrong.line.finding.verdicts().first(), Some(&Verdict::Conflict));
    // A done request's arguments can be made again from its ticket.
    let done = inspector.request("night-002", None).await;
    assert_eq!(done.hash.check, HashCheck::Equal);
    let row = done.facts.row.as_ref().unwrap();
    let args = &done.candidates[0].args;
    assert_eq!(args, r#"{"request_id": "night-002", "title": "請求修正", "body": "金額誤り"}"#);
    assert_eq!(
        hash::check(Some(args), row.args_hash.as_deref(), &hash::Shape::default(), None).check,
        HashCheck::Equal
    );
    let unknown = inspector.request("night-404", None).await;
    assert_eq!(unknown.line.finding.verdicts(), [Verdict::NotKnown]);
    assert_eq!(unknown.line.judged.state().word(), "unknown");
    let (_, v) = inspector.verify(&Expected::default(), false).await.unwrap();
    assert_eq!(v.sentence, "NOT exactly once: 2 unfinished, 1 suspect pair");
}

#[tokio::test]
async fn an_effect_without_its_row_is_swept_when_it_is_the_older_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT NOT NULL, status TEXT NOT NULL,
             result TEXT, owner TEXT NOT NULL, claimed_at REAL NOT NULL);
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
             body TEXT NOT NULL);
         INSERT INTO tickets VALUES ('T-1', 'swept', 'a', ''), ('T-2', 'kept', 'b', ''), ('T-3', 'lost', 'c', '');
         INSERT INTO requests VALUES ('kept', 'h', 'done', '{}', 'A', 1795963560.0);",
    )
    .unwrap();
    drop(db);
    let inspector = Inspector::new(Some(Ledger::open(path)), None, Rules::default());
    for (id, want) in [
        ("swept", "request_purged"),
        ("kept", "finished"),
        ("lost", "effect_without_request"),
        ("never", "not_known"),
    ] {
        assert_eq!(inspector.request(id, None).await.line.verdict_words(), [want], "{id}");
    }
    let (_, v) = inspector.verify(&Expected::default(), false).await.unwrap();
    assert_eq!(v.sentence, "NOT exactly once: 1 effect without request");
    let overview = inspector.overview(|| async {}).await.unwrap();
    assert_eq!(overview.how.as_ref().unwrap().warnings, [""; 0], "no WAL, no doubt about one");
    let judging = inspector.judging(overview).await;
    let headline = inspector.counts(&judging, later()).headline();
    assert!(
        headline.ends_with("3 tickets · 1 effect without request · 1 request purged"),
        "{headline}"
    );
}

#[tokio::test]
async fn newer_effects_make_a_missing_wal_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let make = |sql: &str| {
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(&format!("PRAGMA journal_mode=WAL; {} {sql}", super::ledger_read::DDL))
            .unwrap();
    };
    make(
        "INSERT INTO requests VALUES ('kept', 'h', 'done', '{}', 'A', 1795963560.0);
         INSERT INTO tickets VALUES ('T-2', 'kept', 'b', '');",
    );
    let inspector = Inspector::new(Some(Ledger::open(&path)), None, Rules::default());
    let warnings = async || {
        let overview = inspector.overview(|| async {}).await.unwrap();
        overview.how.unwrap().warnings
    };
    assert_eq!(warnings().await, [""; 0], "at rest: as it should be");
    make("INSERT INTO tickets VALUES ('T-3', 'lost', 'c', '');");
    let told = warnings().await;
    assert!(told.len() == 1 && told[0].contains("1 effect has no request"), "{told:?}");
    let request = inspector.request("lost", None).await;
    assert_eq!(request.how.unwrap().unwrap().warnings.len(), 1);
}
