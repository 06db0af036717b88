//! The one owner of an endpoint's link: opens generations, keeps their state, takes commands.
//!
//! HTTP connects again by itself when told to; a dead child is started again only when asked, because a new
//! process is an act. A `tools/call` is sent once, when it is commanded (`calls`), and never by this loop itself.
//! What follows an end is in `recover`.

use super::conn::{Conn, Numbers};
use super::handshake::{self, Failure, Plan};
use super::offer::Offer;
use super::opening::{self, Events, misfit, no_handshake};
use super::recover::Recovery;
use super::{Endpoint, NoResult, Settings, calls, duration, listening, stdio};
use crate::journal::event::Note;
use crate::journal::{CallId, Journal, Kind, LinkState};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// What a handle asks of the driver.
pub(super) enum Command {
    /// Send one `tools/call`, on that generation and on no other; `reply` gets its id once it is in the journal.
    Call { call: calls::Asked, reply: oneshot::Sender<CallId> },
    /// Send another request; `reply` gets its raw result or words.
    Request { method: String, params: String, reply: oneshot::Sender<Result<String, NoResult>> },
    /// Send a notification; `reply` gets the word once it has left, and is dropped when it can't.
    Notify { method: String, params: String, reply: oneshot::Sender<()> },
    /// Give a call up. `note` is what the journal says; with [`Note::StoppedWaiting`] the server is not told.
    GiveUp { call: CallId, note: Note },
    /// Read the tools again.
    ListTools(oneshot::Sender<()>),
    /// Ask again who the server is and what its tools are; `reply` gets why that failed.
    LookAgain(oneshot::Sender<Result<(), String>>),
    /// Connect again now.
    Reconnect,
    /// Say why everything is about to be ended.
    Ending(String),
    /// End everything.
    Close(oneshot::Sender<()>),
}

/// What the transports tell the driver.
pub(super) enum LinkEvent {
    Exited {
        generation: u32,
        why: String,
    },
    StdoutClosed {
        generation: u32,
    },
    /// An exchange broke. `connected`: something was there to take it.
    Unreachable {
        generation: u32,
        why: String,
        connected: bool,
    },
    /// What came of looking whether the server is still there.
    Looked {
        generation: u32,
        lives: Result<(), String>,
    },
    SessionLost {
        generation: u32,
        status: u16,
    },
    EraChanged {
        generation: u32,
        why: String,
    },
    ToolsChanged {
        generation: u32,
    },
    /// A call's next round is to be sent.
    Round(Box<calls::Round>),
}

/// How a handshake ended; with the task that listens from there on, where there is one.
type Shaken = Result<Option<JoinHandle<()>>, Failure>;

pub(super) struct Driver {
    pub endpoint: Endpoint,
    pub settings: Settings,
    pub journal: Journal,
    pub offer: Arc<Offer>,
    pub numbers: Arc<Numbers>,
    pub events: Events,
    pub conn: Option<Arc<Conn>>,
    pub generation: u32,
    pub known_modern: Option<bool>,
    /// The revision to ask for from now on, once a newer one was agreed on and then refused.
    pub newest: Option<&'static str>,
    pub handshake: Option<JoinHandle<Shaken>>,
    pub listener: Option<JoinHandle<()>>,
    /// Older generations on their way out.
    pub retiring: JoinSet<()>,
    pub recovery: Recovery,
    pub relist: calls::Relist,
    pub timers: mpsc::UnboundedSender<(CallId, f64)>,
    /// The connection in use, for what follows calls.
    pub live: watch::Sender<Option<Arc<Conn>>>,
    /// True once a person is in a hurry to have it ended.
    pub hurry: watch::Receiver<bool>,
}

/// Runs until closed or until the last handle is gone.
pub(super) async fn run(
    endpoint: Endpoint,
    settings: Settings,
    journal: Journal,
    mut inbox: mpsc::UnboundedReceiver<Command>,
    hurry: watch::Receiver<bool>,
) {
    let (events, mut link) = mpsc::unbounded_channel();
    let (timers, mut expired) = mpsc::unbounded_channel();
    let offer = Arc::new(Offer::new(settings.roots.clone(), settings.answerer.clone()));
    let mut d = Driver {
        endpoint,
        settings,
        journal,
        offer,
        numbers: Arc::default(),
        events,
        conn: None,
        generation: 0,
        known_modern: None,
        newest: None,
        handshake: None,
        listener: None,
        retiring: JoinSet::new(),
        recovery: Recovery::default(),
        relist: calls::Relist::default(),
        timers,
        live: watch::Sender::new(None),
        hurry,
    };
    d.connect("starting");
    loop {
        let retry = at(d.recovery.retry_at);
        let relist = at(d.relist.at);
        let shaken = async {
            match d.handshake.as_mut() {
                Some(task) => task.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = shaken => {
                d.handshake = None;
                // A cancelled or panicked task ends like an outage: said, not hidden.
                let done = done.unwrap_or_else(|e| Err(Failure::Outage(format!("the handshake broke off: {e}"))));
                d.handshake_done(done).await;
            }
            Some(event) = link.recv() => d.link_event(event).await,
            Some((call, after_s)) = expired.recv() => d.give_up(call, Note::TimedOut { call, after_s }),
            command = inbox.recv() => match command {
                None => { d.close().await; return; }
                Some(Command::Close(reply)) => {
                    d.close().await;
                    reply.send(()).ok();
                    return;
                }
                Some(command) => d.command(command).await,
            },
            () = relist => d.relist_now(),
            () = retry => {
                d.recovery.retry_at = None;
                d.retired().await;
                d.connect("trying again");
            }
        }
    }
}

async fn at(when: Option<tokio::time::Instant>) {
    match when {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Driver {
    pub fn state(&self, state: LinkState, why: impl Into<String>) {
        self.journal.append(self.generation, Kind::State { state, why: why.into() });
    }

    pub fn note(&self, text: String) {
        self.journal.append(self.generation, Kind::Note(Note::Text(text)));
    }

    /// Opens the next generation (or goes on with one that never got through) and starts its handshake.
    pub fn connect(&mut self, why: &str) {
        self.recovery.retry_at = None;
        let name = self.settings.name(&self.endpoint);
        let limit_s = self.settings.start_limit_s;
        self.state(LinkState::Connecting, format!("{why}: {name} (start limit {limit_s} s)"));
        let fresh = self.conn.as_ref().is_none_or(|c| c.is_over() || c.protocol().is_some());
        if fresh {
            self.retire();
            self.generation += 1;
            match self.open() {
                Ok(conn) => self.conn = Some(conn),
                Err(why) => return self.state(LinkState::Closed, why),
            }
        }
        let Some(conn) = self.conn.clone() else { return };
        let plan = Plan {
            era: self.settings.era,
            known_modern: self.known_modern,
            newest: self.newest,
            probe_limit: duration(self.settings.probe_limit_s),
            start_limit: duration(limit_s),
        };
        let listen = self.settings.listen;
        self.handshake = Some(tokio::spawn(async move {
            tokio::select! {
                done = tokio::time::timeout(plan.start_limit, handshake::run(&conn, &plan)) => {
                    match done {
                        Ok(done) => done,
                        Err(_) => {
                            let told = handshake::silent_words(&conn, limit_s).await;
                            Err(Failure::Final(told.unwrap_or_else(|| no_handshake(&conn, limit_s))))
                        }
                    }
                }
                why = misfit(&conn) => Err(Failure::Final(why)),
            }?;
            Ok(if listen { listening::start(&conn).await } else { None })
        }));
    }

    fn open(&mut self) -> Result<Arc<Conn>, String> {
        let open = opening::open(&self.endpoint, self.hurry.clone())?;
        let conn = Conn::new(
            self.journal.clone(),
            self.generation,
            open.transport,
            self.events.clone(),
            self.offer.clone(),
            self.numbers.clone(),
        );
        conn.log(Kind::Opened { transport: open.opened });
        if let Some(started) = open.started {
            stdio::attach(&conn, started);
        }
        Ok(conn)
    }

    async fn handshake_done(&mut self, done: Shaken) {
        let Some(conn) = self.conn.clone() else { return };
        let auto = self.settings.era == super::Era::Auto && self.known_modern.is_none();
        match done {
            Ok(listener) => {
                self.listener = listener;
                self.ready(conn);
            }
            Err(Failure::Ended { why, probed: true }) if auto => {
                // Some servers end at a method they don't know: not a crash, a fresh process.
                self.without_probe(format!("the server ended at the probe ({why})")).await;
            }
            Err(Failure::Poisoned(why)) if auto => {
                let why = format!("the server is of no use after the probe ({why})");
                self.without_probe(why).await;
            }
            Err(Failure::StepDown { why, to }) if self.newest.is_none_or(|v| to < v) => {
                self.note(format!("{why}; trying again with {to}"));
                self.newest = Some(to);
                self.end_conn(super::recover::GRACE_IDLE).await;
                self.connect("an older revision");
            }
            Err(Failure::Ended { why, .. }) => self.dead(why),
            Err(Failure::Outage(why)) if self.settings.reconnect && self.endpoint.is_http() => {
                self.wait(&why);
            }
            Err(
                Failure::Outage(why)
                | Failure::Final(why)
                | Failure::Poisoned(why)
                | Failure::StepDown { why, .. },
            ) => {
                self.end_conn(super::recover::GRACE_IDLE).await;
                self.state(LinkState::Closed, why);
            }
        }
    }

    fn ready(&mut self, conn: Arc<Conn>) {
        self.known_modern = Some(conn.is_modern());
        self.recovery.ready_since = Some(Instant::now());
        self.tell_new_session(&conn);
        let version = conn.protocol().map(|p| p.version.clone()).unwrap_or_default();
        self.state(LinkState::Ready, format!("protocol {version}"));
        self.live.send_replace(Some(conn.clone()));
    }

    /// A fresh process that is not probed.
    async fn without_probe(&mut self, why: String) {
        self.note(format!("{why}; starting it again with initialize first"));
        self.known_modern = Some(false);
        if let Some(conn) = &self.conn {
            conn.end("started again without the probe");
        }
        // The old one may hold what the new one needs: a port, a lock.
        self.retired().await;
        self.connect("after the probe");
    }

    async fn link_event(&mut self, event: LinkEvent) {
        let current = |n: u32, d: &Driver| d.conn.as_ref().is_some_and(|c| c.generation == n);
        let settled = |n: u32, d: &Driver| current(n, d) && d.handshake.is_none();
        match event {
            LinkEvent::Exited { generation, why } if settled(generation, self) => self.dead(why),
            LinkEvent::StdoutClosed { generation } if settled(generation, self) => {
                self.dead("the server closed its stdout; its process still runs".into());
            }
            LinkEvent::Unreachable { generation, why, connected }
                if settled(generation, self) && self.recovery.retry_at.is_none() =>
            {
                match connected {
                    true => self.look(why),
                    false => self.unreachable(why),
                }
            }
            LinkEvent::Looked { generation, lives } if current(generation, self) => {
                self.looked(lives);
            }
            LinkEvent::SessionLost { generation, status } if settled(generation, self) => {
                self.session_lost(status);
            }
            LinkEvent::EraChanged { generation, why } if settled(generation, self) => {
                self.era_changed(&why);
            }
            LinkEvent::Round(round) => self.round(*round),
            LinkEvent::ToolsChanged { generation } if current(generation, self) => {
                self.relist.soon();
            }
            _ => {}
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Call { call, reply } => {
                let call = self.call(&call);
                reply.send(call).ok();
            }
            Command::Request { method, params, reply } => self.request(method, params, reply),
            Command::Notify { method, params, reply } => {
                if let Some(conn) =
                    self.conn.as_ref().filter(|c| c.protocol().is_some() && !c.is_over())
                {
                    let delivered =
                        conn.notify(&method, Some(&params), crate::journal::event::Purpose::Asked);
                    tokio::spawn(async move {
                        // Dropped, should it not leave: so is `reply` then.
                        if delivered.await.is_ok() {
                            reply.send(()).ok();
                        }
                    });
                }
            }
            Command::GiveUp { call, note } => self.give_up(call, note),
            Command::ListTools(reply) => self.list_tools(Some(reply)),
            Command::LookAgain(reply) => self.look_again(reply),
            Command::Reconnect => {
                self.recovery.attempt = 0;
                let live = self.conn.as_ref().is_some_and(|c| !c.is_over())
                    && self.recovery.retry_at.is_none();
                if self.handshake.is_some() || (live && self.journal.read(|s| s.is_ready())) {
                    return;
                }
                if !self.endpoint.is_http() && self.conn.as_ref().is_some_and(|c| !c.is_over()) {
                    let why = "asked to start it anew".to_owned();
                    self.log(Kind::Note(Note::Ending { why }));
                }
                self.end_conn(super::recover::GRACE_IDLE).await;
                self.connect("asked to");
            }
            Command::Ending(why) => drop(self.log(Kind::Note(Note::Ending { why }))),
            Command::Close(_) => {}
        }
    }
}
