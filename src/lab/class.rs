//! The class: does a lesson's steps on real processes, and shows what each side knows: the client, the wire, the
//! server's ledger and effects. Knows no screen; what it shows is read from a watch.

mod shown;

pub use shown::{Shown, Tone};

use super::lesson::{Act, Lesson, Step, Until};
use super::policy::{self, Line};
use super::process::Server;
use super::stage::{Stage, Wish};
use crate::client::{Client, Era};
use crate::error::{Error, Result};
use crate::inspect::Inspector;
use crate::journal::event::Transport;
use crate::journal::{CallId, Kind, LinkState, Note, Outcome};
use crate::json::raw;
use crate::judge::Rules;
use crate::judge::verify::Expected;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

#[derive(Default)]
struct Known {
    client: Vec<(Tone, String)>,
    clients: Vec<Client>,
    busy: bool,
    done: usize,
    verdict: String,
    trouble: String,
    too_late: bool,
    /// The server over HTTP was killed: no connection tells.
    http_dead: bool,
}

/// A lesson being played. Dropping it ends its processes.
pub struct Class {
    acts: mpsc::UnboundedSender<(Act, Until)>,
    /// What each side knows.
    pub shown: watch::Receiver<Shown>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Class {
    /// Opens the lesson's stage; nothing is started yet.
    ///
    /// # Errors
    /// When the stage can't be made.
    pub fn open(lesson: &'static Lesson) -> Result<Class> {
        let stage = Stage::new(lesson.tool, Era::Legacy)?;
        let known: Arc<Mutex<Known>> = Arc::default();
        let (acts, todo) = mpsc::unbounded_channel();
        let (tell, shown) = watch::channel(Shown::default());
        let watcher = tokio::spawn(shown::show(Arc::clone(&known), stage.effects.clone(), tell));
        let teacher = Teacher {
            lesson,
            stage,
            known,
            line: None,
            server: None,
            last: None,
            wish: Wish::default(),
            sent: 0,
        };
        let worker = tokio::spawn(teacher.work(todo));
        Ok(Class { acts, shown, tasks: vec![watcher, worker] })
    }

    /// Makes a step happen.
    pub fn act(&self, act: Act, until: Until) {
        // The worker lives as long as this.
        self.acts.send((act, until)).ok();
    }
}

impl Drop for Class {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

struct Teacher {
    lesson: &'static Lesson,
    stage: Stage,
    known: Arc<Mutex<Known>>,
    line: Option<Line>,
    server: Option<Server>,
    last: Option<(Client, CallId)>,
    /// How the server was started.
    wish: Wish,
    /// Requests made so far: the number in the newest request_id.
    sent: u32,
}

fn lock(known: &Mutex<Known>) -> std::sync::MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Teacher {
    async fn work(mut self, mut todo: mpsc::UnboundedReceiver<(Act, Until)>) {
        if self.lesson.steps.is_empty() {
            self.step(Act::Start, Until::Settled).await;
        }
        while let Some((act, until)) = todo.recv().await {
            self.step(act, until).await;
        }
    }

    async fn step(&mut self, act: Act, until: Until) {
        {
            let mut k = lock(&self.known);
            k.busy = true;
            k.trouble.clear();
        }
        let done = self.act(act, until).await;
        let verdict = self.verdict().await;
        let asks_next = self.lesson.steps.get(lock(&self.known).done + 1);
        let too_late = matches!(asks_next, Some(Step::Ask { .. })) && !self.is_open().await;
        let mut k = lock(&self.known);
        k.busy = false;
        k.verdict = verdict;
        match done {
            Ok(()) => {
                k.done += 1;
                k.too_late = too_late;
            }
            Err(e) => k.trouble = e.what,
        }
    }

    /// Before its question every lesson needs a call of which the client can't know what became; and one whose server
    /// was killed at work, a request that is not done.
    async fn is_open(&self) -> bool {
        let Some((client, call)) = &self.last else { return false };
        let outcome = client.settled(*call).await.and_then(|c| c.outcome());
        let killed = self.lesson.steps.iter().any(|s| matches!(s, Step::Do { act: Act::Kill, .. }));
        let id = format!("lesson-{}", self.sent);
        let done = killed && self.stage.effects.stored(&id).await.is_some_and(|s| s == "done");
        outcome == Some(Outcome::Unknown) && !done
    }

    fn say(&self, tone: Tone, text: impl Into<String>) {
        lock(&self.known).client.push((tone, text.into()));
    }

    async fn act(&mut self, act: Act, until: Until) -> Result<()> {
        match act {
            Act::Start => self.start().await,
            Act::Send => {
                self.sent += 1;
                self.send(until).await
            }
            Act::SendLost => {
                self.sent += 1;
                if self.lesson.steps.is_empty() {
                    // The server takes the file away, and the answer with it.
                    std::fs::write(self.stage.path("drop"), "")
                        .map_err(|e| Error::endpoint(format!("it can't be told to: {e}")))?;
                }
                self.send(until).await
            }
            Act::RetrySame => {
                self.sent = self.sent.max(1);
                self.send(until).await
            }
            Act::RetryNew => {
                self.sent += 1;
                self.send(until).await
            }
            Act::Kill => self.kill().await,
            Act::Restart => self.restart().await,
            Act::Find => self.find().await,
            Act::GiveUp => self.give_up().await,
        }
    }

    async fn start(&mut self) -> Result<()> {
        let mut wish = Wish::work(self.lesson.work_s);
        for fault in self.lesson.faults {
            let word = if *fault == "once" { self.stage.once() } else { (*fault).to_owned() };
            wish = wish.fault(word);
        }
        if self.lesson.steps.is_empty() {
            wish = wish.fault(format!("drop-when:{}", self.stage.path("drop").display()));
        }
        self.wish = wish.clone();
        let mut line = if self.lesson.http {
            let (server, line) = self.stage.http(&wish).await?;
            self.server = Some(server);
            line
        } else {
            self.stage.stdio(&wish)
        };
        let client = line.client().await?;
        lock(&self.known).clients.push(client);
        self.line = Some(line);
        self.say(Tone::Good, "connected");
        Ok(())
    }

    /// The connection in use, ready.
    async fn client(&mut self) -> Result<Client> {
        let line = self.line.as_mut().ok_or_else(|| Error::endpoint("the server isn't started"))?;
        let client = line.client().await?;
        if !lock(&self.known).http_dead && client.ready().await.is_ok() {
            return Ok(client);
        }
        if !self.lesson.http || lock(&self.known).http_dead {
            return Err(Error::endpoint("the server is dead: restart it first"));
        }
        // The connection broke, the server lives: a new one, as any client makes.
        let client = line.fresh().await?;
        let mut k = lock(&self.known);
        k.clients.push(client.clone());
        k.client.push((Tone::Dim, "a new connection".into()));
        drop(k);
        Ok(client)
    }

    async fn send(&mut self, until: Until) -> Result<()> {
        let client = self.client().await?;
        let id = format!("lesson-{}", self.sent);
        let args = match self.stage.is_charge {
            true => r#"{"amount":100}"#.to_owned(),
            false => format!(
                r#"{{"request_id":{},"title":"障害報告","body":"ログイン不可"}}"#,
                raw::quote(&id)
            ),
        };
        let what = if self.stage.is_charge {
            "charge 100".to_owned()
        } else {
            format!("create_ticket {id}")
        };
        self.say(Tone::Plain, format!("I call {what}"));
        let call = client.call(self.lesson.tool, &args, Some(30.0)).await?;
        self.last = Some((client.clone(), call));
        let outcome = tokio::spawn(tell(client, call, Arc::clone(&self.known)));
        match until {
            // The task only waits for an end that always comes.
            Until::Settled if !self.lesson.steps.is_empty() => {
                outcome.await.ok();
                self.stage_settles().await;
            }
            Until::Settled => {}
            Until::Working => self.stage.wait_for_work(&id).await,
        }
        Ok(())
    }

    /// After a lost session the client opens a new one by itself: the next step waits for it. A server that was told
    /// to die has died before the next step.
    async fn stage_settles(&self) {
        let Some(line) = &self.line else { return };
        let Some(journal) = line.journals().pop() else { return };
        let settled = journal.wait(|s| {
            let state = s.link.as_ref().map(|l| l.state)?;
            (!matches!(state, LinkState::Connecting)).then_some(())
        });
        tokio::time::timeout(Duration::from_secs(10), settled).await.ok();
    }

    async fn kill(&mut self) -> Result<()> {
        let line = self.line.as_ref().ok_or_else(|| Error::endpoint("the server isn't started"))?;
        let Some(journal) = line.journals().pop() else {
            return Err(Error::endpoint("the server isn't started"));
        };
        if lock(&self.known).http_dead {
            return Err(Error::endpoint("the server is dead already"));
        }
        let (pid, n) = journal.read(|s| match s.generation() {
            Some(g) if g.ended.is_none() => match g.transport {
                Transport::Stdio { pid, .. } => (pid, g.n),
                Transport::Http { .. } => (self.server.as_ref().map(|s| s.pid), g.n),
            },
            _ => (None, 0),
        });
        let Some(pid) = pid else { return Err(Error::endpoint("the server is dead already")) };
        journal.append(n, Kind::Note(Note::Text("kill -9 to the server".into())));
        super::process::kill_pid(pid);
        if let Some(server) = &mut self.server {
            server.ended().await;
            lock(&self.known).http_dead = true;
        } else {
            let ended = journal.wait(|s| s.generation_n(n).and_then(|g| g.ended));
            tokio::time::timeout(Duration::from_secs(10), ended).await.ok();
        }
        if let Some((client, call)) = &self.last {
            tokio::time::timeout(Duration::from_secs(10), client.settled(*call)).await.ok();
        }
        Ok(())
    }

    async fn restart(&mut self) -> Result<()> {
        if self.lesson.http {
            return self.restart_http().await;
        }
        let line = self.line.as_mut().ok_or_else(|| Error::endpoint("the server isn't started"))?;
        let alive = line
            .journals()
            .last()
            .is_some_and(|j| j.read(|s| s.generation().is_some_and(|g| g.ended.is_none())));
        if alive {
            return Err(Error::endpoint("the server still runs: kill it first"));
        }
        let client = line.fresh().await?;
        lock(&self.known).clients.push(client);
        self.say(Tone::Good, "connected again, to a new process");
        Ok(())
    }

    async fn restart_http(&mut self) -> Result<()> {
        if !lock(&self.known).http_dead {
            return Err(Error::endpoint("the server still runs: kill it first"));
        }
        let (server, mut line) = self.stage.http(&self.wish).await?;
        self.server = Some(server);
        let client = line.client().await?;
        self.line = Some(line);
        let mut k = lock(&self.known);
        k.http_dead = false;
        k.clients.push(client);
        drop(k);
        self.say(Tone::Good, "connected again, to a new process");
        Ok(())
    }

    async fn find(&mut self) -> Result<()> {
        let client = self.client().await?;
        let args = format!(r#"{{"request_id":"lesson-{}"}}"#, self.sent.max(1));
        let (a, _) = policy::attempt(&client, "find_request", &args, 30.0).await?;
        let status = a.answer.as_deref().and_then(|o| raw::get_str(o, "status"));
        let status = status.unwrap_or_else(|| "no answer".into());
        self.say(Tone::Plain, format!("find_request: {status}"));
        Ok(())
    }

    async fn give_up(&mut self) -> Result<()> {
        let Some((client, call)) = &self.last else {
            return Err(Error::endpoint("nothing is in flight"));
        };
        client.cancel(*call);
        tokio::time::timeout(Duration::from_secs(5), client.settled(*call)).await.ok();
        Ok(())
    }

    /// What redial says of the whole ledger.
    async fn verdict(&self) -> String {
        let Some(ledger) = self.stage.ledger() else { return String::new() };
        let inspector = Inspector::new(Some(ledger.clone()), None, Rules::default());
        match inspector.verify(&Expected::default(), false).await {
            Ok((_, verified)) => verified.sentence,
            Err(_) => String::new(),
        }
    }
}

/// Waits for a call's end and says what the client makes of it.
async fn tell(client: Client, call: CallId, known: Arc<Mutex<Known>>) {
    let Some(settled) = client.settled(call).await.and_then(|c| c.settled) else { return };
    let answer = settled.result.as_deref().and_then(crate::journal::call::answer_object);
    let mut k = lock(&known);
    match settled.outcome {
        Outcome::Ok => {
            let ticket = answer.as_deref().and_then(|o| raw::get_str(o, "ticket_id"));
            let replayed = answer.as_deref().and_then(|o| raw::get(o, "replayed")) == Some("true");
            let note = if replayed { ", replayed" } else { "" };
            let what = ticket.unwrap_or_else(|| "done".into());
            k.client.push((Tone::Good, format!("answer: {what}{note}")));
        }
        Outcome::Unknown => {
            k.client.push((Tone::Doubt, "no answer. Done, or not? I can't know".into()));
            k.client.push((Tone::Dim, settled.why.to_string()));
        }
        other => {
            k.client.push((Tone::Bad, format!("{}: {}", other.word(), settled.why)));
        }
    }
}
