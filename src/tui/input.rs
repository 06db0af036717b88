//! The terminal's input, read on a thread of its own.
//!
//! crossterm 0.29 by default waits for edges: a key that comes together with a change of size is lost until
//! the next key, and a terminal that is gone is read for ever, on whichever thread polls. Its `use-dev-tty`
//! source has neither fault (and, by its name, still reads standard input where that is a terminal). The
//! thread here looks for a hang-up first all the same, and whatever becomes of it, the loop lives.

use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, PipeReader, PipeWriter};
use std::time::Duration;
use tokio::sync::mpsc;

/// Events on their way to the loop; a thread that is faster waits.
const EVENTS: usize = 1024;

/// How long crossterm is given to find the event that is there. (With zero it doesn't look.)
const FIND: Duration = Duration::from_millis(1);

/// What is typed. Reading ends when this is dropped.
pub struct Input {
    events: mpsc::Receiver<Event>,
    /// Its end is what the reading thread sees of the drop.
    _stop: PipeWriter,
}

impl Input {
    /// Starts reading.
    ///
    /// # Errors
    /// When no thread or pipe can be had.
    pub fn start() -> io::Result<Input> {
        let (stopped, stop) = io::pipe()?;
        let (out, events) = mpsc::channel(EVENTS);
        std::thread::Builder::new().name("input".into()).spawn(move || {
            // Whatever went wrong with the terminal, it is over: the channel ends.
            read(&stopped, &out).ok();
        })?;
        Ok(Input { events, _stop: stop })
    }

    /// The next event; `None` when the terminal is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// An event that is there already.
    pub fn ready(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

fn read(stopped: &PipeReader, out: &mpsc::Sender<Event>) -> io::Result<()> {
    let terminal = io::stdin();
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    loop {
        let mut fds = [PollFd::new(&terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        if !fds[1].revents().is_empty() || fds[0].revents().intersects(gone) {
            return Ok(());
        }
        while event::poll(FIND)? {
            if out.blocking_send(event::read()?).is_err() {
                return Ok(());
            }
        }
    }
}
