//! The ledger's handle and the one thread behind it that owns every open of the file.
//!
//! A read is a question sent to that thread, which opens, answers, closes, and only then replies. The
//! thread also watches by stat, while somebody is interested.

use super::open::{Opened, Opener, PATIENCE, READ_LIMIT};
use super::reader::Reader;
use super::salvage::{Salvage, salvage};
use super::stamp::Stamp;
use super::trouble::{LedgerError, Trouble};
use crate::time::Time;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// Between two looks at the files, at least.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A ledger, by path. Cloning gives another handle to the same thread; dropping the last one ends it and
/// waits for it (a running read is interrupted), so that private copies are gone.
///
/// Opening never fails: a file that is missing now may come.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    closing: Arc<AtomicBool>,
    questions: Option<Sender<Question>>,
    life: Arc<AtomicU64>,
    changes: watch::Sender<u64>,
    thread: Option<JoinHandle<()>>,
}

type Question = Box<dyn FnOnce(&mut Worker) + Send>;

impl Ledger {
    /// A handle for the ledger at `path`, whose effects are in the only table that can hold them.
    pub fn open(path: impl Into<PathBuf>) -> Ledger {
        Ledger::counting(path, &[])
    }

    /// The same, with effects in these tables.
    pub fn counting(path: impl Into<PathBuf>, effects: &[String]) -> Ledger {
        let path = path.into();
        let effects = effects.into();
        let closing = Arc::new(AtomicBool::new(false));
        let life = Arc::new(AtomicU64::new(0));
        let (changes, _) = watch::channel(0);
        let (questions, asked) = channel();
        let worker = Worker {
            opener: Opener {
                path: path.clone(),
                effects,
                closing: Arc::clone(&closing),
                copy: None,
            },
            salvage: None,
            locked_since: None,
            moved: None,
            life: Arc::clone(&life),
            last: None,
            marks: None,
            seen: None,
        };
        let told = changes.clone();
        // Where no thread can be had, the questions' channel is closed and every read says so.
        let thread = std::thread::Builder::new()
            .name("ledger".into())
            .spawn(move || work(worker, &asked, &told))
            .ok();
        let questions = Some(questions);
        Ledger { inner: Arc::new(Inner { path, closing, questions, life, changes, thread }) }
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// One read: `job` gets one consistent snapshot. Blocks until the file is closed again; not for
    /// async code. `job` runs again when the file changed under an unlocked read or turned out to be
    /// damaged, so it must not depend on running once.
    pub fn read<T: Send + 'static>(
        &self,
        job: impl Fn(&Reader<'_>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (reply, answer) = channel();
        self.ask(Box::new(move |worker| {
            // Nobody may be waiting any more.
            let _ = reply.send(worker.read(READ_LIMIT, &job));
        }))?;
        answer.recv().unwrap_or_else(|_| Err(self.closed()))
    }

    /// [`Ledger::read`] for async code.
    pub async fn read_async<T: Send + 'static>(
        &self,
        job: impl Fn(&Reader<'_>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.read_within(READ_LIMIT, job).await
    }

    /// [`Ledger::read_async`] for a job that passes over a large file: it may take up to `limit`, and nobody
    /// else reads meanwhile.
    pub async fn read_within<T: Send + 'static>(
        &self,
        limit: Duration,
        job: impl Fn(&Reader<'_>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Box::new(move |worker| {
            if !reply.is_closed() {
                let _ = reply.send(worker.read(limit, &job));
            }
        }))?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// What stat says now. Opens nothing.
    pub fn stamp(&self) -> Stamp {
        Stamp::of(&self.inner.path)
    }

    /// A number that grows when another ledger was found under the name, or an older state of it: what was read before
    /// says nothing of what is read now. (It may grow without need: a VACUUM looks like a restore.)
    pub fn life(&self) -> u64 {
        self.inner.life.load(Ordering::SeqCst)
    }

    /// A number that grows when the files change, looked at every 50 ms while a receiver lives.
    pub fn watch(&self) -> watch::Receiver<u64> {
        let receiver = self.inner.changes.subscribe();
        // From now on no change is missed, even if the thread is busy. Also wakes it: it sleeps while
        // nobody watches. A closed one shows at the next read.
        let now = self.stamp();
        let fresh = now.is_fresh();
        let _ = self.ask(Box::new(move |worker| {
            worker.seen.get_or_insert((now, fresh));
        }));
        receiver
    }

    fn ask(&self, question: Question) -> Result<(), LedgerError> {
        let questions = self.inner.questions.as_ref();
        questions.and_then(|q| q.send(question).ok()).ok_or_else(|| self.closed())
    }

    fn closed(&self) -> LedgerError {
        LedgerError::new(&self.inner.path, Trouble::Closed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            // A job may hold the last handle: then this is that very thread.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn work(mut worker: Worker, asked: &Receiver<Question>, changes: &watch::Sender<u64>) {
    loop {
        let question = if changes.receiver_count() == 0 {
            worker.seen = None;
            asked.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            asked.recv_timeout(LOOK_EVERY)
        };
        match question {
            Ok(question) => question(&mut worker),
            Err(RecvTimeoutError::Timeout) => {
                let now = Stamp::of(&worker.opener.path);
                let fresh = now.is_fresh();
                // After a fresh stamp the same stamp may stand for a later state: told once more.
                if worker.seen.is_some_and(|(last, was_fresh)| last != now || was_fresh) {
                    changes.send_modify(|n| *n += 1);
                }
                worker.seen = Some((now, fresh));
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// For how long it is told that the file became another.
const MOVED: Duration = Duration::from_secs(600);

/// The file was seen to become another, or an older one.
struct Moved {
    since: Instant,
    at: Time,
    /// Another one: what was read before may be of something else.
    other: bool,
    words: &'static str,
}

struct Worker {
    opener: Opener,
    salvage: Option<(Stamp, Salvage)>,
    locked_since: Option<Instant>,
    moved: Option<Moved>,
    /// See [`Ledger::life`].
    life: Arc<AtomicU64>,
    /// Which file it was at the last good read, and its size.
    last: Option<Stamp>,
    /// What SQLite counts, at the last good read.
    marks: Option<Marks>,
    /// What the last look for watchers found, and whether it was fresh.
    seen: Option<(Stamp, bool)>,
}

/// What only grows or stays in one life of a ledger.
#[derive(Clone, Copy)]
struct Marks {
    /// The header's file change counter.
    counter: u64,
    /// The schema's version: a restore through SQLite changes it, and so does a VACUUM.
    schema: i64,
    /// The stamp was so young that a further change may not show in its times.
    fresh: bool,
}

impl Marks {
    fn of(opened: &Opened) -> Option<Marks> {
        let schema = opened.conn.query_row("PRAGMA schema_version", [], |r| r.get(0)).ok()?;
        Some(Marks { counter: opened.counter, schema, fresh: opened.stamp.is_fresh() })
    }
}

/// Why what lies there now is not what was read before, if it isn't; whether it is another file.
fn moved(
    before: &Stamp,
    now: &Stamp,
    marks: Option<(Marks, Marks)>,
) -> Option<(bool, &'static str)> {
    let (was, is) = (before.file?, now.file?);
    if was.file != is.file {
        return Some((true, "another file lies under this name"));
    }
    if is.size < was.size {
        return Some((false, "the file is smaller: restored, or vacuumed"));
    }
    if is.mtime < was.mtime {
        return Some((false, "the file's time went back: restored"));
    }
    let (old, new) = marks?;
    if new.counter < old.counter {
        return Some((true, "the file counts fewer changes than before: restored"));
    }
    if new.schema != old.schema {
        return Some((false, "its schema has another version: restored, changed, or vacuumed"));
    }
    // Whoever writes through SQLite counts it, or makes a -wal for it, which shows in the folder.
    let alone = |s: &Stamp| s.wal.is_none() && s.journal.is_none();
    let counted = new.counter > old.counter;
    let past_sqlite = was.mtime != is.mtime && before.folder == now.folder && !counted;
    (past_sqlite && alone(before) && alone(now) && !old.fresh)
        .then_some((true, "the file was written over by no writer of its own: restored"))
}

/// By device and inode.
type Guards = HashMap<(u64, u64), Weak<Mutex<()>>>;

/// One connection of this process at a time for each file, whatever its name: closing a second handle
/// drops the first one's POSIX locks (fcntl(2)).
fn guard(path: &Path) -> Arc<Mutex<()>> {
    static GUARDS: Mutex<Option<Guards>> = Mutex::new(None);
    let Some(seen) = Stamp::of(path).file else { return Arc::default() };
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    let guards = guards.get_or_insert_default();
    guards.retain(|_, g| g.strong_count() > 0);
    if let Some(guard) = guards.get(&seen.file).and_then(Weak::upgrade) {
        return guard;
    }
    let guard = Arc::default();
    guards.insert(seen.file, Arc::downgrade(&guard));
    guard
}

impl Worker {
    fn read<T>(
        &mut self,
        limit: Duration,
        job: &dyn Fn(&Reader<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let start = Instant::now();
        let deadline = start + limit;
        let mut attempts = 0;
        let guard = guard(&self.opener.path);
        let _held = guard.lock().unwrap_or_else(PoisonError::into_inner);
        let result = loop {
            let attempt = self.attempt(job, deadline);
            attempts += 1;
            match attempt {
                Ok(Some(answer)) => break Ok(answer),
                // A long job is worth a second try: the -wal that spoiled the first one stays, under our lock.
                Ok(None) if start.elapsed() > PATIENCE && attempts > 3 => {
                    break Err(LedgerError::new(&self.opener.path, Trouble::Restless));
                }
                Ok(None) => sleep(Duration::from_millis(1)),
                Err(e) => break Err(e),
            }
        };
        self.remember_lock(result)
    }

    /// `None` when the file changed under the read.
    fn attempt<T>(
        &mut self,
        job: &dyn Fn(&Reader<'_>) -> Result<T, LedgerError>,
        deadline: Instant,
    ) -> Result<Option<T>, LedgerError> {
        let mut opened = self.opener.open(deadline)?;
        let marks = Marks::of(&opened);
        self.notice_move(&mut opened, marks);
        let (path, named) = (self.opener.path.clone(), self.opener.effects.clone());
        let (result, damaged) = match Reader::new(&opened.conn, &path, &opened, &named) {
            Ok(reader) => {
                let result = job(&reader);
                let damaged =
                    reader.met_damage() || result.as_ref().is_err_and(LedgerError::is_damage);
                (result, damaged)
            }
            Err(e) => (Err(e), false),
        };
        if !opened.still_true() {
            return Ok(None);
        }
        let result = if damaged { self.read_salvage(&opened, job) } else { result };
        if result.is_ok() {
            self.last = Some(opened.stamp);
            self.marks = marks;
        }
        if self.opener.closing.load(Ordering::Relaxed) {
            return Err(LedgerError::new(&path, Trouble::Closed));
        }
        match (result, opened.half_copied) {
            // What is missing explains whatever was found.
            (Err(e), Some((has, needs))) if e.is_about_content() => {
                Err(LedgerError::new(&path, Trouble::HalfCopied { has, needs }))
            }
            (result, _) => result.map(Some),
        }
    }

    fn read_salvage<T>(
        &mut self,
        opened: &Opened,
        job: &dyn Fn(&Reader<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let (path, named) = (self.opener.path.clone(), self.opener.effects.clone());
        let sqlite = |e: &rusqlite::Error| LedgerError::from_sqlite(&path, e);
        let stamp = opened.stamp.files();
        if self.salvage.as_ref().is_none_or(|(of, _)| *of != stamp || stamp.is_fresh()) {
            let schema = Reader::new(&opened.conn, &path, opened, &named)?.schema().clone();
            let salvage = salvage(&opened.conn, &schema).map_err(|e| sqlite(&e))?;
            self.salvage = Some((stamp, salvage));
        }
        let Some((_, salvage)) = &self.salvage else {
            return Err(LedgerError::new(&path, Trouble::Restless));
        };
        // An empty table would be taken for a ledger without requests.
        if salvage.requests_kept == 0 && salvage.requests_lost > 0 {
            let n = salvage.requests_lost;
            let why = format!("it had at least {n} request{}", if n == 1 { "" } else { "s" });
            return Err(LedgerError::new(&path, Trouble::Damaged(why)));
        }
        let reader = Reader::new(&salvage.conn, &path, opened, &named)?;
        reader.set_lost(salvage.requests_lost, salvage.effects_lost);
        job(&reader)
    }

    /// Whoever reads next is told, and so is everybody after them for a while: reads of many kinds go by. What was
    /// learned before is void from now on ([`Ledger::life`]).
    fn notice_move(&mut self, opened: &mut Opened, marks: Option<Marks>) {
        let found = self.last.and_then(|l| moved(&l, &opened.stamp, self.marks.zip(marks)));
        if let Some((other, words)) = found {
            self.moved = Some(Moved { since: Instant::now(), at: Time::now(), other, words });
            self.life.fetch_add(1, Ordering::SeqCst);
            // Said once, also where this read comes to nothing.
            (self.last, self.marks) = (Some(opened.stamp), marks);
        }
        if let Some(m) = self.moved.as_ref().filter(|m| m.since.elapsed() < MOVED) {
            let told = if m.other { &mut opened.warnings } else { &mut opened.infos };
            told.push(format!("since {} {}", m.at.clock(), m.words));
        }
    }

    fn remember_lock<T>(&mut self, result: Result<T, LedgerError>) -> Result<T, LedgerError> {
        match result {
            Err(LedgerError { path, trouble: Trouble::Locked { .. } }) => {
                let since = *self.locked_since.get_or_insert_with(Instant::now);
                let for_s = since.elapsed().as_secs_f64();
                Err(LedgerError { path, trouble: Trouble::Locked { for_s } })
            }
            other => {
                self.locked_since = None;
                other
            }
        }
    }
}
