//! `redial attach`, and `redial` at a terminal: the screen on a ledger, an endpoint, both, or the demo.

use super::args::AttachArgs;
use super::args::{RowsArgs, ToolsArgs};
use super::connect::settings;
use super::interrupt::Interrupt;
use super::open::open_ledger;
use super::plain::complain;
use super::recorded::{RedactArgs, ShowArgs};
use super::report::Done;
use super::{rows, show, tools};
use crate::client::{Answerer, Client, Settings};
use crate::config::Config;
use crate::demo::stage;
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::recorded::Recorded;
use crate::judge::Rules;
use crate::recording::Recording;
use crate::tui::data::DemoInfo;
use crate::tui::{Looks, Setup, run as screen};

pub async fn run(a: AttachArgs, config: &Config) -> Done {
    let endpoint = a.endpoint.endpoint()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let recording = a.recording.as_deref().map(begun).transpose()?;
    if endpoint.is_none() && ledger.is_none() && recording.is_none() {
        return Err(Error::usage("attach needs something to attach to")
            .hint("give --ledger FILE, --recording FILE, --http URL, --server NAME, or a server to start: -- COMMAND ARGS…")
            .into());
    }
    if is_dumb() {
        return report(a, config).await;
    }
    need_terminal()?;
    if let Some(file) = &a.stderr_file {
        crate::files::ordinary(file).map_err(|e| {
            Error::usage(format!("--stderr-file {} can't be read: {e}", file.display()))
        })?;
    }
    let looks = Looks::new(config, a.theme.as_deref())?;
    let (ask, questions) = tokio::sync::mpsc::unbounded_channel();
    // The screen lives on: it reconnects over HTTP, and a ledger that isn't there yet may come.
    a.endpoint.configure(config);
    let settings = Settings {
        reconnect: true,
        respawn: a.respawn,
        listen: true,
        progress_extends: config.server.progress_extends,
        answerer: Answerer::Ask(ask),
        ..settings(&a.endpoint, a.endpoint.call_limit(None))?
    };
    let client = endpoint.map(|e| Client::start(e, settings));
    let mut inspector = Inspector::new(ledger, client, rules);
    inspector.look_up = a.lookup;
    inspector.read_only = a.read_only.read_only;
    inspector.recording = recording.map(Recorded::new);
    inspector.hints = config.hint_overrides();
    let mut flags = match &a.ledger.ledger {
        Some(file) => vec!["--ledger".to_owned(), file.display().to_string()],
        None => Vec::new(),
    };
    flags.extend(a.ledger.effects.iter().flat_map(|t| ["--effects".to_owned(), t.clone()]));
    let questions = Some(questions);
    let stderr_file = a.stderr_file;
    Ok(screen(Setup { inspector, demo: None, looks, questions, stderr_file, flags }).await?)
}

/// What a screen would show first, for a terminal that can only print lines: the rows, what the agent called, and what the
/// server says of itself. The worse of the two exit statuses counts.
async fn report(a: AttachArgs, config: &Config) -> Done {
    let here = "this terminal can't show a screen (TERM=dumb): here is";
    let mut exit = Exit::Good;
    if a.ledger.ledger.is_some() {
        complain(&format!("{here} what the ledger holds"));
        let rows = RowsArgs {
            filter: vec![],
            state: vec![],
            limit: None,
            json: false,
            ledger: a.ledger.clone(),
        };
        exit = rows::run(rows).await?;
    }
    if let Some(file) = a.recording {
        complain(&format!("{here} what the agent called"));
        let show = ShowArgs {
            file,
            calls: true,
            filter: vec![],
            limit: None,
            follow: false,
            redact: false,
            rules: RedactArgs::default(),
            ledger: a.ledger,
            json: false,
        };
        let said = show::run(show, config).await?;
        exit = if exit == Exit::Good { said } else { exit };
    }
    if a.endpoint.endpoint()?.is_some() {
        complain(&format!("{here} what the server says of itself"));
        let tools = ToolsArgs { lookup: a.lookup, json: false, endpoint: a.endpoint };
        let said = tools::linked(tools, config).await?;
        exit = if exit == Exit::Good { said } else { exit };
    }
    Ok(exit)
}

/// Opens a recording and reads its first piece; the screen reads on.
fn begun(named: &std::path::Path) -> Result<Recording> {
    let mut r = Recording::begin(named)?;
    r.advance()?;
    r.is_one()?;
    Ok(r)
}

/// The demo on the screen.
pub async fn demo(config: &Config) -> Done {
    let looks = Looks::new(config, None)?;
    let program = std::env::current_exe().map_err(|e| {
        Error::usage(format!("this program can't find itself, to run its server: {e}"))
    })?;
    let interrupt = Interrupt::listen();
    let demo = tokio::select! {
        demo = stage(program) => demo?,
        name = interrupt.first() => return Err(Interrupt::stopped(name, Exit::Endpoint).into()),
    };
    let inspector =
        Inspector::new(Some(demo.ledger.clone()), Some(demo.client.clone()), Rules::default());
    let how = "your own: redial attach --ledger FILE --http URL  (or -- COMMAND ARGS…)".to_owned();
    // The folder lives until the screen is closed; `demo` is dropped after it.
    let flags = vec!["--ledger".to_owned(), demo.ledger.path().display().to_string()];
    let demo_info = Some(DemoInfo { how });
    let setup =
        Setup { inspector, demo: demo_info, looks, questions: None, stderr_file: None, flags };
    let exit = screen(setup).await;
    drop(demo);
    Ok(exit?)
}

/// Whether a screen can be opened here.
pub fn has_terminal() -> bool {
    use std::io::IsTerminal;
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb()
}

/// The terminal can only print lines (an editor's shell).
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|t| t == "dumb")
}

fn need_terminal() -> Result<()> {
    if has_terminal() {
        return Ok(());
    }
    Err(Error::usage("attach opens a screen, and there is no terminal here")
        .hint("without one use: redial rows, find, reissue, tools, call"))
}
