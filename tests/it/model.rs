//! The model over a real ledger: the night that four SIGKILLs left (a copied fixture).

use super::ledger_read::night;
use redial::judge::verify::{Expected, Totals, verify};
use redial::judge::{HashCheck, OwnerView, Owners, Pairing, Rules, Verdict};
use redial::ledger::{Ledger, Survey};
use redial::model::lookup::LOOK_UP;
use redial::model::{Context, Counts, Histories, Line, ask, hash};
use redial::time::Time;

/// Three hours after the last claim.
fn later() -> Time {
    Time::from_seconds(1795963560.0 + 3.0 * 3600.0).unwrap()
}

struct Board {
    lines: Vec<Line>,
    counts: Counts,
    totals: Totals,
}

fn board(rules: Rules) -> Board {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(night(dir.path()));
    let read = ledger.read(move |r| {
        let mut pass = Survey::keeping(1000);
        while !pass.complete {
            r.survey(&mut pass, 3)?;
        }
        let owners = OwnerView::from(&pass.owners());
        let histories = Histories::default();
        let ctx = Context::new(&histories, &owners, rules, later());
        let twins = ask::Twins::new(r.same_hash_groups(100)?);
        let rows = r.newest(None, 100)?;
        let line = |row| {
            let facts = twins.facts_of(row, r.has_effects_table(), later());
            Line::new(
                &ctx.gather(&facts.row.clone().unwrap().request_id, facts, HashCheck::NotChecked),
                later(),
            )
        };
        Ok(Board {
            counts: ask::counts(r, &pass, &twins, &ctx, later())?,
            totals: ask::totals(r, &pass, &ctx)?,
            lines: rows.into_iter().map(line).collect(),
        })
    });
    read.unwrap()
}

#[test]
fn the_night_ledger_in_one_sentence_and_line_by_line() {
    let b = board(Rules::default());
    assert_eq!(
        b.counts.headline(),
        "7 requests · 5 done · 2 abandoned · 5 tickets · 1 suspect pair"
    );
    let told: Vec<_> = b
        .lines
        .iter()
        .map(|l| {
            (
                &*l.row.request_id,
                l.judged.state.word(),
                l.judged.strength.word(),
                l.verdict_words().join(" "),
            )
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
    assert_eq!(b.lines[6].label, "障害報告");
    assert!(b.lines[6].finding.next.contains("look at the pair: night-006"));
    assert!(
        b.lines[0]
            .finding
            .next
            .starts_with("may still be working; the server lets a repeat take over since ")
    );
    let v = verify(&b.totals, &Expected::default(), false);
    assert_eq!(v.sentence, "NOT exactly once: 2 unfinished, 1 suspect pair");
}

#[test]
fn with_a_limit_that_never_passes_only_a_newer_owner_speaks() {
    let b = board(Rules { stale_limit_s: 999_999_999.0, owners: Owners::Auto });
    assert_eq!(
        b.counts.headline(),
        "7 requests · 5 done · 1 running · 1 abandoned · 5 tickets · 1 suspect pair"
    );
    let of = |id: &str| b.lines.iter().find(|l| l.row.request_id == id).unwrap();
    assert_eq!(of("night-005").finding.verdicts, [Verdict::Stalled]);
    assert!(of("night-005").judged.why.contains("a newer owner has claimed since"));
    assert_eq!(of("night-007").finding.verdicts, [Verdict::Working]);
}

#[test]
fn one_request_asked_for_by_itself_and_the_recipe_proven_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(night(dir.path()));
    let (facts, proof, unknown) = ledger
        .read(|r| {
            Ok((
                ask::request(r, "night-001", later())?,
                ask::proof(r, None, LOOK_UP, "night-005")?,
                ask::request(r, "night-404", later())?,
            ))
        })
        .unwrap();
    assert_eq!(facts.twins.iter().map(|t| &*t.request_id).collect::<Vec<_>>(), ["night-006"]);
    assert_eq!(facts.row.as_ref().map(|r| r.effects.len()), Some(1));
    // Arguments that night-005 was not made from are a conflict, not a guess: the tickets prove the recipe.
    let row_hash = "9466126d7eaf049846143af37d9e6835565184b71a183d7c0ba47ea51835b91d";
    let checked =
        hash::check(Some(r#"{"title":"x","body":"y"}"#), Some(row_hash), &[], proof.as_ref());
    assert_eq!(checked.check, HashCheck::DiffersProven);
    let (owners, histories) = (OwnerView::default(), Histories::default());
    let ctx = Context::new(&histories, &owners, Rules::default(), later());
    let line = Line::new(&ctx.gather("night-404", unknown, HashCheck::NotChecked), later());
    assert_eq!(
        (line.verdict_words().join(" "), line.judged.state.word()),
        ("not_known".into(), "unknown")
    );
    assert_eq!(ctx.gather("night-001", facts, HashCheck::NotChecked).pairing, Pairing::Unproven);
}

#[test]
fn an_effect_without_its_row_is_swept_when_it_is_the_older_one() {
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
    let verdicts = Ledger::open(path)
        .read(|r| {
            let (owners, histories) = (OwnerView::default(), Histories::default());
            let ctx = Context::new(&histories, &owners, Rules::default(), later());
            ["swept", "kept", "lost", "never"]
                .map(|id| {
                    let facts = ask::request(r, id, later())?;
                    let line = Line::new(&ctx.gather(id, facts, HashCheck::NotChecked), later());
                    Ok(line.verdict_words().join(" "))
                })
                .into_iter()
                .collect::<Result<Vec<_>, redial::ledger::LedgerError>>()
        })
        .unwrap();
    assert_eq!(verdicts, ["request_purged", "finished", "effect_without_request", "not_known"]);
}
