//! Does what the update asks for, and tells it what happened: the screen's hands and ears, over `inspect`.
//!
//! `facts` follows the ledger and keeps what rows are judged with, `windows` reads rows, `wanted` filters them, `wire`
//! follows the journal, `recorded` a recording, `timeline` reads the events of either, `acts` looks up, plans and
//! sends, `counts` counts for who watches, `audit` audits the recording, `texts` makes what is copied or shown as a tree, `asked` holds the
//! server's questions, `tail` follows a file of stderr. Each runs on its own; answers echo their question, so
//! nothing here needs to be in step with the screen.

mod acts;
mod asked;
mod audit;
mod counts;
mod facts;
mod recorded;
mod tail;
mod texts;
mod timeline;
mod windows;
mod wire;

/// What was found, as the screen is told it: pure, from the values of `inspect` and `judge`.
pub mod told {
    pub use super::acts::{detailed, planned, report};
    pub use super::counts::verified;
}

use super::app::{App, Start};
use super::data::{DemoInfo, Paired};
use super::memory::Memory;
use super::msg::{Effect, Msg};
use super::run::{Port, drive};
use super::theme::Themes;
use super::wire::Reach;
use crate::client::{Client, Endpoint, Question};
use crate::config::{self, Config};
use crate::error::{Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::list::Judging;
use crate::keys::keymap::Keymap;
use crate::signals::Ends;
use crate::time::Time;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Messages on their way to the screen; whoever is faster than the screen waits.
const MESSAGES: usize = 256;
/// How long quitting waits for tasks that are just finishing.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What the screen is opened on.
pub struct Setup {
    /// Ledger, endpoint, and how to judge them.
    pub inspector: Inspector,
    /// It is the demo.
    pub demo: Option<DemoInfo>,
    /// How the screen looks and answers.
    pub looks: Looks,
    /// The server's questions, where somebody is to be asked.
    pub questions: Option<mpsc::UnboundedReceiver<Question>>,
    /// The server's stderr, as a file.
    pub stderr_file: Option<PathBuf>,
    /// How the same is opened again, for the command that is copied: flags of ledger and endpoint, without secrets.
    pub flags: Vec<String>,
}

/// How the screen looks and answers, from the configuration.
pub struct Looks {
    pub themes: Themes,
    pub keymap: Keymap,
    pub mouse: bool,
    pub bell: config::Bell,
    /// Nothing but what was remembered says which theme.
    pub theme_is_free: bool,
}

impl Looks {
    /// From the configuration; `flag` is a theme named on the command line.
    ///
    /// # Errors
    /// Exit 2 when a theme or key is wrong.
    pub fn new(config: &Config, flag: Option<&str>) -> Result<Looks> {
        let mut themes = match config::folder() {
            Some(folder) => Themes::with_folder(&folder.join("themes"))?,
            None => Themes::built_in()?,
        };
        match flag {
            Some(name) => themes.choose(name)?,
            None if config.theme_is_set => themes.choose(&config.theme)?,
            None => themes.choose_default(&config.theme)?,
        }
        Ok(Looks {
            themes: themes.for_terminal(flag.is_some()),
            keymap: Keymap::with(&config.keys)?,
            mouse: config.mouse,
            bell: config.bell,
            theme_is_free: flag.is_none() && !config.theme_is_set,
        })
    }
}

/// Opens the screen and runs it until a person quits; ends the endpoint. To be polled on one thread
/// (`block_on`), in a multi-thread runtime.
///
/// # Errors
/// When there is no terminal.
pub async fn run(setup: Setup) -> Result<Exit> {
    let Setup { inspector, demo, looks, questions, stderr_file, flags } = setup;
    let client = inspector.client.clone();
    let start = Start {
        ledger: inspector.ledger.is_some(),
        endpoint: client.as_ref().map(reach),
        demo,
        read_only: inspector.read_only,
        recording: inspector.recording.as_ref().map(|r| r.path().display().to_string()),
        stderr_file: stderr_file.as_ref().map(|f| f.display().to_string()),
        look_up: inspector.look_up.clone(),
    };
    let (news, msgs) = mpsc::channel(MESSAGES);
    let (effects, inbox) = mpsc::unbounded_channel();
    let ledger = inspector.ledger.as_ref().filter(|_| start.demo.is_none()).map(ledger_name);
    let mut app = App::new(start, Time::now(), (80, 24));
    let file = config::state_folder().map(|f| f.join("state.toml"));
    let mut memory = file.as_deref().map(Memory::load).unwrap_or_default();
    (app.themes, app.keymap) = (looks.themes, looks.keymap);
    (app.mouse, app.bell) = (looks.mouse, looks.bell);
    let free = looks.theme_is_free && app.themes.chosen().1 != "mono";
    memory.give(&mut app, free, ledger.as_deref());
    let reach = app.start.endpoint.clone();
    let how_to = app.start.demo.as_ref().map(|d| d.how.clone());
    let more = More { questions, stderr_file, flags, how_to };
    let hands = tokio::spawn(serve(inspector, reach, more, news, inbox));
    // A panic must not keep the rest from being given back: what was started here ends with this.
    let done = AssertUnwindSafe(drive(&mut app, Port { msgs, effects })).catch_unwind().await;
    memory.take(&app, ledger.as_deref());
    if let Some(file) = &file {
        memory.save(file);
    }
    hands.abort();
    tokio::time::timeout(LAST_WORDS, hands).await.ok();
    if let Some(client) = client {
        end(&client).await;
    }
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Ends the endpoint; who can't wait for that sends another signal.
async fn end(client: &Client) {
    let again = async {
        match Ends::listen() {
            Ok(mut ends) => drop(ends.next().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = client.close() => return,
        () = again => {}
    }
    client.close_now().await;
}

/// A ledger's name among those whose filter is remembered.
fn ledger_name(ledger: &crate::ledger::Ledger) -> String {
    let path = ledger.path();
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Further witnesses and words.
struct More {
    questions: Option<mpsc::UnboundedReceiver<Question>>,
    stderr_file: Option<PathBuf>,
    flags: Vec<String>,
    how_to: Option<String>,
}

/// How an endpoint is shown.
fn reach(client: &Client) -> Reach {
    match client.endpoint() {
        Endpoint::Stdio { .. } => Reach::Stdio(client.name()),
        Endpoint::Http { .. } => Reach::Http(client.name()),
    }
}

/// What all tasks share.
#[derive(Clone)]
struct Hands {
    inspector: Inspector,
    news: mpsc::Sender<Msg>,
    /// The newest thing that rows are judged with.
    judging: watch::Sender<Arc<Judging>>,
    flags: Arc<[String]>,
    /// The endpoint and the agent's session, as they are shown together.
    wires: Arc<tokio::sync::Mutex<wire::Wires>>,
    /// The demo: how to attach to what one has, said beside the remarks on the ledger.
    how_to: Option<String>,
}

impl Hands {
    /// Tells the screen; when it is gone nobody listens, and the task will be ended.
    async fn tell(&self, msg: Msg) {
        self.news.send(msg).await.ok();
    }

    async fn tell_pairing(&self, paired: &crate::model::Paired) {
        let (pairing, why) = (paired.pairing(), paired.why());
        self.tell(Msg::Paired(Paired { pairing, why })).await;
    }
}

async fn serve(
    inspector: Inspector,
    reach: Option<Reach>,
    more: More,
    news: mpsc::Sender<Msg>,
    mut inbox: mpsc::UnboundedReceiver<Effect>,
) {
    let mut tasks = JoinSet::new();
    let (judging, _) = watch::channel(Arc::new(facts::nothing_yet(&inspector)));
    let wires = Arc::default();
    let flags = more.flags.into();
    let hands = Hands { inspector, news, judging, flags, wires, how_to: more.how_to };
    let (answers, answered) = mpsc::unbounded_channel();
    if let Some(questions) = more.questions {
        tasks.spawn(asked::serve(hands.clone(), questions, answered));
    }
    if let Some(file) = more.stderr_file {
        tasks.spawn(tail::follow(hands.clone(), file));
    }
    // Counts what happened on the wire that bears on requests: calls sent and settled, processes ended.
    let (calls, calls_seen) = watch::channel(0);
    let (windows, windows_asked) = mpsc::unbounded_channel();
    let (selected, selected_seen) = watch::channel(None);
    let (time, time_asked) = mpsc::unbounded_channel();
    tasks.spawn(timeline::serve(hands.clone(), time_asked));
    if let Some(recording) = hands.inspector.recording.clone() {
        tasks.spawn(recorded::follow(hands.clone(), recording, calls.clone()));
    }
    if let (Some(client), Some(reach)) = (hands.inspector.client.clone(), reach) {
        tasks.spawn(wire::follow(hands.clone(), client, reach, calls));
    }
    let (watched, watched_seen) = watch::channel((false, 0));
    tasks.spawn(counts::follow(hands.clone(), watched_seen, calls_seen.clone()));
    let (audited, audited_seen) = watch::channel(false);
    tasks.spawn(audit::follow(hands.clone(), audited_seen));
    tasks.spawn(facts::follow(hands.clone(), calls_seen));
    tasks.spawn(windows::serve(hands.clone(), windows_asked));
    tasks.spawn(acts::details(hands.clone(), selected_seen));
    hands.tell(Msg::FactsChanged).await;
    while let Some(effect) = inbox.recv().await {
        // Receivers live as long as their tasks, which live as long as this one.
        match effect {
            Effect::LoadWindow(ask) => drop(windows.send(ask)),
            Effect::LoadDetail { request_id } => drop(selected.send_replace(Some(request_id))),
            Effect::Timeline(ask) => drop(time.send(ask)),
            Effect::Answer { id, content } => drop(answers.send((id, content))),
            Effect::Verify { on } => watched.send_modify(|w| *w = (on, w.1 + 1)),
            Effect::Audit => drop(audited.send_replace(true)),
            Effect::Quit => return,
            act => drop(tasks.spawn(acts::act(hands.clone(), act))),
        }
        while tasks.try_join_next().is_some() {}
    }
}
