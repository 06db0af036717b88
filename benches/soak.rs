//! A night beside a busy writer, on a clock that is driven: `cargo bench --bench soak`. The same reads and the same
//! budget as those of the screen follow a ledger that 25 requests a second are added to and finished in; rests are not
//! slept but added to the clock. Prints memory and the share of a core, and fails above 64 MB or a twentieth.
//!
//! `SOAK_HOURS` (1) and `SOAK_ROWS` (1,350,000: the last hour of eight) say how long and from where.
#![allow(clippy::print_stdout)]

use redial::inspect::Inspector;
use redial::inspect::budget::{Budget, processor_time};
use redial::judge::Rules;
use redial::ledger::Ledger;
use redial::time::Time;
use rusqlite::Connection;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const DDL: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -500;
    CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT NOT NULL, status TEXT NOT NULL, result TEXT,
        owner TEXT NOT NULL, claimed_at REAL NOT NULL);
    CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, body TEXT NOT NULL);";
/// Requests a second; each is claimed and finished, two changes.
const A_SECOND: f64 = 25.0;
/// The window is read again this often.
const WINDOW_S: f64 = 2.0;

fn main() -> ExitCode {
    let number = |name: &str, default: f64| {
        std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let (hours, rows) = (number("SOAK_HOURS", 1.0), number("SOAK_ROWS", 1_350_000.0));
    match soak(hours, rows) {
        Ok((share, most)) if share < 0.05 && most < 64 << 20 => ExitCode::SUCCESS,
        Ok(_) => {
            println!("too much: the bounds are 5 % of a core and 64 MB");
            ExitCode::FAILURE
        }
        Err(e) => {
            println!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn soak(hours: f64, rows: f64) -> Result<(f64, u64), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ledger.db");
    let db = Connection::open(&path)?;
    db.execute_batch(DDL)?;
    let (mut n, start) = (0, Instant::now());
    add(&db, &mut n, rows as u64)?;
    println!("{n} rows made in {:.1} s", start.elapsed().as_secs_f64());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inspector = Inspector::new(Some(Ledger::open(&path)), None, Rules::default());
    let (mut now, mut spent, mut passes, mut windows) = (0.0, Duration::ZERO, 0, 0);
    let mut budget = Budget::new(now);
    let (first, end) = (memory(), hours * 3600.0);
    let mut most = first;
    while now < end {
        let (cost, wall) = (processor_time(), Instant::now());
        let judging = runtime.block_on(async {
            let overview = inspector.overview(|| async {}).await?;
            Ok::<_, redial::ledger::LedgerError>(inspector.judging(overview).await)
        })?;
        let line = inspector.counts(&judging, Time::now()).headline();
        let cost = processor_time().saturating_sub(cost);
        now += wall.elapsed().as_secs_f64();
        let rest = budget.rest(now, cost).as_secs_f64().max(wall.elapsed().as_secs_f64() * 4.0);
        (spent, passes) = (spent + cost, passes + 1);
        most = most.max(memory());
        if passes % 20 == 1 {
            println!(
                "{:6.0} s  {line}  pass {:.3} s  rest {rest:.0} s  {:.1} MB  {:.2} %",
                now,
                cost.as_secs_f64(),
                memory() as f64 / 1e6,
                spent.as_secs_f64() / now * 100.0
            );
        }
        let until = now + rest;
        while now < until {
            let step = WINDOW_S.min(until - now).max(0.01);
            add(&db, &mut n, (A_SECOND * step).ceil() as u64)?;
            now += step;
            let cost = processor_time();
            let read_at = Time::now();
            let rows = inspector.ledger.as_ref().map(|l| l.read(|r| r.newest(None, 100)));
            if let Some(rows) = rows.transpose()? {
                inspector.window_lines(&rows, read_at, &judging, Time::now());
            }
            spent += processor_time().saturating_sub(cost);
            windows += 1;
        }
    }
    let share = spent.as_secs_f64() / now;
    most = most.max(memory());
    println!(
        "{:.1} h, {n} rows: {passes} passes and {windows} windows took {:.1} s, {:.2} % of a core; {:.1} MB at first, {:.1} MB at most",
        now / 3600.0,
        spent.as_secs_f64(),
        share * 100.0,
        first as f64 / 1e6,
        most as f64 / 1e6
    );
    Ok((share, most))
}

/// Requests that are claimed and finished, with their tickets.
fn add(db: &Connection, n: &mut u64, more: u64) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN")?;
    {
        let mut request = db.prepare(
            "INSERT INTO requests VALUES (?1, ?2, 'done', '{\"ok\":true}', ?3, 1.7e9 + ?4)",
        )?;
        let mut ticket =
            db.prepare("INSERT INTO tickets VALUES (?1, ?2, ?3, 'a body of some words')")?;
        for _ in 0..more {
            *n += 1;
            let id = format!("request-{n}");
            let owner = format!("owner-{}", *n / 20_000);
            request.execute((&id, format!("{:064x}", *n), owner, *n as i64))?;
            ticket.execute((format!("T-{n}"), &id, format!("Disk almost full on db-{n}")))?;
        }
    }
    db.execute_batch("COMMIT")
}

/// Bytes of this process in memory.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|s| s.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
