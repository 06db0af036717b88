//! `redial` without a command and without a terminal: the demo as a plain report.
//!
//! What it shows ran just now, on a real server and a real ledger; the calls it makes are the ones that the
//! keys of the screen would make, through the same gate.

use super::find;
use super::interrupt::{Interrupt, watched};
use super::plain::{Plain, Role};
use super::report::Done;
use super::rows::table;
use crate::demo::{Demo, stage};
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::reissue::Wish;
use crate::inspect::release::Released;
use crate::judge::Rules;
use crate::time::Time;

pub async fn run() -> Done {
    let program = std::env::current_exe().map_err(|e| {
        Error::usage(format!("this program can't find itself, to run its server: {e}"))
    })?;
    let interrupt = Interrupt::listen();
    let demo = tokio::select! {
        demo = stage(program) => demo?,
        name = interrupt.first() => return Err(Interrupt::stopped(name, Exit::Endpoint).into()),
    };
    watched(&demo.client, &interrupt, "", report(&demo)).await
}

async fn report(demo: &Demo) -> Result<Exit> {
    let inspector =
        Inspector::new(Some(demo.ledger.clone()), Some(demo.client.clone()), Rules::default());
    let mut p = Plain::stdout();
    p.line(
        Role::Strong,
        "DEMO: a real incident, made just now on the built-in server and a fresh ledger",
    );
    p.line(Role::Dim, "The server did four tickets, was killed with SIGKILL in the middle of a fifth, and was started again.");
    p.gap();
    rows(&inspector, &mut p).await?;
    p.gap();
    generations(demo, &mut p);
    p.gap();

    p.line(Role::Strong, "1. Look it up (redial find)");
    let looked = inspector.look_up(&demo.abandoned).await?;
    let request = inspector.request(&demo.abandoned, None).await;
    let answer = looked.answer.as_ref().map(|l| l.answer.as_str());
    find::plain(&mut p, &demo.abandoned, &request, answer, looked.why.as_deref());
    p.gap();

    let wish = Wish { request_id: Some(demo.abandoned.clone()), ..Wish::default() };
    p.line(Role::Strong, "2. Repeat it with the same request_id (redial reissue --confirm)");
    repeat(&inspector, &wish, &mut p).await?;
    p.gap();
    p.line(Role::Strong, "3. Once more: the count stays");
    repeat(&inspector, &wish, &mut p).await?;
    p.gap();
    rows(&inspector, &mut p).await?;
    p.gap();
    p.line(Role::Strong, "At a terminal this is a screen. On your own server and ledger:");
    p.line(Role::Text, "  redial attach --ledger ledger.db --http http://127.0.0.1:8000/mcp");
    p.line(Role::Text, "  redial attach --ledger ledger.db -- COMMAND ARGS…");
    p.print();
    Ok(Exit::Good)
}

async fn rows(inspector: &Inspector, p: &mut Plain) -> Result<()> {
    let overview = inspector.overview(|| async {}).await.map_err(Error::from)?;
    let judging = inspector.judging(overview).await;
    let now = Time::now();
    p.line(Role::Strong, &inspector.counts(&judging, now).headline());
    if let Some(ledger) = &inspector.ledger {
        let rows = ledger.read_async(|r| r.newest(None, 50)).await.map_err(Error::from)?;
        table(p, &inspector.lines(&rows, &judging, now), now);
    }
    Ok(())
}

/// Every life of the server, with its last words and its end.
fn generations(demo: &Demo, p: &mut Plain) {
    demo.client.journal().read(|s| {
        for g in &s.generations {
            let end = g.ended.map_or_else(|| "alive".to_owned(), |e| format!("ended: {}", e.how()));
            let role = if g.ended.is_some() { Role::Bad } else { Role::Good };
            p.parts(&[
                (Role::Strong, &format!("server process, generation {}: ", g.n)),
                (role, &end),
            ]);
            for l in g.stderr.last(3) {
                p.parts(&[(Role::Dim, "  │ "), (Role::Text, &l)]);
            }
        }
    });
}

async fn repeat(inspector: &Inspector, wish: &Wish, p: &mut Plain) -> Result<()> {
    let prepared = inspector.prepare(wish).await?;
    p.field("sends", Role::Text, &format!("{} {}", prepared.tool, prepared.args));
    p.field(
        "arguments",
        Role::Text,
        &format!("{}; hash {}", prepared.source.words(), prepared.before.hash.how),
    );
    p.field(
        "gate",
        Role::Text,
        &format!("{}: {}", prepared.decision.ask.word(), prepared.decision.reasons.join("; ")),
    );
    let confirm = prepared.decision.confirm.clone();
    let released: Released = inspector.carry_out(&prepared, Some(&confirm)).await?;
    super::reissue::outcome(p, &released, &demo_witness(inspector)?);
    Ok(())
}

fn demo_witness(inspector: &Inspector) -> Result<super::report::Witness> {
    Ok(super::report::Witness::of(inspector.client()?, None))
}
