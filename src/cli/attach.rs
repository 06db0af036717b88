//! `redial attach`, and `redial` at a terminal: the screen on a ledger, an endpoint, both, or the demo.

use super::args::AttachArgs;
use super::open::open_ledger;
use super::report::Done;
use crate::client::{Client, Settings};
use crate::demo::stage;
use crate::error::{Error, Result};
use crate::inspect::Inspector;
use crate::inspect::recorded::Recorded;
use crate::judge::Rules;
use crate::recording::Recording;
use crate::tui::data::DemoInfo;
use crate::tui::{Setup, run as screen};

pub async fn run(a: AttachArgs) -> Done {
    let endpoint = a.endpoint.endpoint()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let recording = a.recording.as_deref().map(Recording::open).transpose()?;
    if endpoint.is_none() && ledger.is_none() && recording.is_none() {
        return Err(Error::usage("attach needs something to attach to")
            .hint("give --ledger FILE, --recording FILE, --http URL, --server NAME, or a server to start: -- COMMAND ARGS…")
            .into());
    }
    need_terminal()?;
    // The screen lives on: it reconnects over HTTP, and a ledger that isn't there yet may come.
    let settings = Settings {
        era: a.endpoint.era(),
        start_limit_s: a.endpoint.start_timeout,
        call_limit_s: a.endpoint.call_limit(None),
        reconnect: true,
        respawn: a.respawn,
        listen: true,
        ..Settings::default()
    };
    let client = endpoint.map(|e| Client::start(e, settings));
    let mut inspector = Inspector::new(ledger, client, rules);
    inspector.look_up = a.lookup;
    inspector.read_only = a.read_only.read_only;
    inspector.recording = recording.map(Recorded::new);
    Ok(screen(Setup { inspector, demo: None, theme: None }).await?)
}

/// The demo on the screen.
pub async fn demo() -> Done {
    let program = std::env::current_exe().map_err(|e| {
        Error::usage(format!("this program can't find itself, to run its server: {e}"))
    })?;
    let demo = stage(program).await?;
    let inspector =
        Inspector::new(Some(demo.ledger.clone()), Some(demo.client.clone()), Rules::default());
    let how = "your own: redial attach --ledger FILE --http URL  (or -- COMMAND ARGS…)".to_owned();
    // The folder lives until the screen is closed; `demo` is dropped after it.
    let exit = screen(Setup { inspector, demo: Some(DemoInfo { how }), theme: None }).await;
    drop(demo);
    Ok(exit?)
}

/// Whether a screen can be opened here.
pub fn has_terminal() -> bool {
    use std::io::IsTerminal;
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

fn need_terminal() -> Result<()> {
    if has_terminal() {
        return Ok(());
    }
    Err(Error::usage("attach opens a screen, and there is no terminal here")
        .hint("without one use: redial rows, find, reissue, tools, call"))
}
