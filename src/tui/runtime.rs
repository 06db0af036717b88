//! Does what the update asks for, and tells it what happened: the screen's hands and ears, over `inspect`.
//!
//! `facts` follows the ledger and keeps what rows are judged with, `windows` reads rows, `wire` follows the
//! journal, `acts` looks up, plans, sends and counts. Each runs on its own; answers echo their question, so
//! nothing here needs to be in step with the screen.

mod acts;
mod facts;
mod windows;
mod wire;

use super::app::{App, Start};
use super::data::{DemoInfo, Paired};
use super::msg::{Effect, Msg};
use super::run::{Port, drive};
use super::theme::Theme;
use super::wire::Reach;
use crate::client::Endpoint;
use crate::error::{Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::list::Judging;
use crate::time::Time;
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
    /// The theme; `None` takes what suits the terminal.
    pub theme: Option<Theme>,
}

/// Opens the screen and runs it until a person quits; ends the endpoint. To be polled on one thread
/// (`block_on`), in a multi-thread runtime.
///
/// # Errors
/// When there is no terminal.
pub async fn run(setup: Setup) -> Result<Exit> {
    let theme = match setup.theme {
        Some(theme) => theme,
        None => Theme::for_terminal()?,
    };
    let client = setup.inspector.client.clone();
    let start = Start {
        ledger: setup.inspector.ledger.is_some(),
        endpoint: client.as_ref().map(|c| reach(c.endpoint())),
        demo: setup.demo,
        read_only: setup.inspector.read_only,
        look_up: setup.inspector.look_up.clone(),
    };
    let (news, msgs) = mpsc::channel(MESSAGES);
    let (effects, inbox) = mpsc::unbounded_channel();
    let hands = tokio::spawn(serve(setup.inspector, start.endpoint.clone(), news, inbox));
    let app = App::new(start, Time::now(), (80, 24));
    let done = drive(app, theme, Port { msgs, effects }).await;
    hands.abort();
    tokio::time::timeout(LAST_WORDS, hands).await.ok();
    if let Some(client) = client {
        client.close().await;
    }
    done
}

/// How an endpoint is shown.
fn reach(endpoint: &Endpoint) -> Reach {
    match endpoint {
        Endpoint::Stdio { .. } => Reach::Stdio(endpoint.name()),
        Endpoint::Http { .. } => Reach::Http(endpoint.name()),
    }
}

/// What all tasks share.
#[derive(Clone)]
struct Hands {
    inspector: Inspector,
    news: mpsc::Sender<Msg>,
    /// The newest thing that rows are judged with.
    judging: watch::Sender<Arc<Judging>>,
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
    news: mpsc::Sender<Msg>,
    mut inbox: mpsc::UnboundedReceiver<Effect>,
) {
    let mut tasks = JoinSet::new();
    let (judging, _) = watch::channel(Arc::new(facts::nothing_yet(&inspector)));
    let hands = Hands { inspector, news, judging };
    // Counts what happened on the wire that bears on requests: calls sent and settled, processes ended.
    let (calls, calls_seen) = watch::channel(0);
    let (windows, windows_asked) = mpsc::unbounded_channel();
    let (selected, selected_seen) = watch::channel(None);
    if let (Some(client), Some(reach)) = (hands.inspector.client.clone(), reach) {
        tasks.spawn(wire::follow(hands.clone(), client, reach, calls));
    }
    tasks.spawn(facts::follow(hands.clone(), calls_seen));
    tasks.spawn(windows::serve(hands.clone(), windows_asked));
    tasks.spawn(acts::details(hands.clone(), selected_seen));
    hands.tell(Msg::FactsChanged).await;
    while let Some(effect) = inbox.recv().await {
        // Receivers live as long as their tasks, which live as long as this one.
        match effect {
            Effect::LoadWindow(ask) => drop(windows.send(ask)),
            Effect::LoadDetail { request_id } => drop(selected.send_replace(Some(request_id))),
            Effect::Quit => return,
            act => drop(tasks.spawn(acts::act(hands.clone(), act))),
        }
        while tasks.try_join_next().is_some() {}
    }
}
