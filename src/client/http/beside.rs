//! redial's own listening stream, and what waits beside it. A server that serves one connection after the other is held
//! up by a GET that never ends: a request that gets no headers meanwhile names that stream, and it is closed before the
//! request's limit passes, since it is optional. Nothing is sent again for that.

use super::Post;
use crate::client::conn::Conn;
use crate::journal::Kind;
use crate::journal::event::Note;
use crate::time::span;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a request may wait for headers before the stream is named; a quarter of its limit where that is less.
const NAME: Duration = Duration::from_secs(2);
/// The same for its end; half of the limit where that is less.
const CLOSE: Duration = Duration::from_secs(20);
/// Requests that are no calls have limits of their own, which are shorter.
const CLOSE_FOR_OTHERS: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(200);

/// What is known of the listening stream of one connection.
pub(in crate::client) struct Beside {
    state: Mutex<State>,
    closed: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    open_since: Option<Instant>,
    heard_at: Option<Instant>,
}

impl Default for Beside {
    fn default() -> Beside {
        Beside { state: Mutex::default(), closed: watch::Sender::new(false) }
    }
}

impl Beside {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The GET goes out; `false` once it is not to be any more.
    pub fn opens(&self) -> bool {
        self.state().open_since = Some(Instant::now());
        !*self.closed.borrow()
    }

    /// It has ended.
    pub fn ended(&self) {
        self.state().open_since = None;
    }

    /// A message came on it: the server serves more than one connection.
    pub fn heard(&self) {
        self.state().heard_at = Some(Instant::now());
    }

    /// Waits until it is to be closed.
    pub async fn closing(&self) {
        if self.closed.subscribe().wait_for(|c| *c).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// For how long it is open without a word since `sent`.
    fn silent_for(&self, sent: Instant) -> Option<Duration> {
        let state = self.state();
        let spoke = state.heard_at.is_some_and(|at| at >= sent);
        state.open_since.filter(|_| !spoke).map(|at| at.elapsed())
    }

    /// Closes it for good.
    fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// Waits for the headers of an answer, and looks at the listening stream meanwhile.
pub(super) async fn headers<T>(conn: &Conn, post: &Post, sending: impl Future<Output = T>) -> T {
    let sent = Instant::now();
    let mut sending = std::pin::pin!(sending);
    let mut named = false;
    loop {
        tokio::select! {
            biased;
            done = &mut sending => return done,
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some(open) = conn.beside.silent_for(sent).filter(|_| post.id.is_some()) else {
            continue;
        };
        let call = conn.journal.read(|s| {
            s.call_on(post.exchange).map(|c| (c.id, c.live.limit_s.filter(|l| l.is_finite())))
        });
        let limit = call.and_then(|(_, limit)| limit).map(crate::client::duration);
        let most = if call.is_some() { CLOSE } else { CLOSE_FOR_OTHERS };
        let waited = sent.elapsed();
        let remark = |text: String| match call {
            Some((call, _)) => drop(conn.log(Kind::Note(Note::Remark { call, text }))),
            None => conn.note(text),
        };
        let open = span(open.as_secs_f64());
        if waited >= limit.map_or(most, |l| (l / 2).min(most)) {
            remark(format!(
                "redial closed its own GET stream, open for {open} without a word while this got no headers: a server that serves one connection at a time waits for its end. It is not opened again on this connection, and nothing was sent again"
            ));
            conn.beside.close();
        } else if !named && waited >= limit.map_or(NAME, |l| (l / 4).min(NAME)) {
            named = true;
            remark(format!(
                "no headers yet, and redial's own GET stream is open since {open}; a server that serves one connection at a time waits for its end"
            ));
        }
    }
}
