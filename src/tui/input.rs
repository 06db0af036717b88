//! The terminal's input, read on a thread of its own.
//!
//! crossterm 0.29 by default waits for edges: a key that comes together with a change of size is lost until
//! the next key, and a terminal that is gone is read for ever, on whichever thread polls. Its `use-dev-tty`
//! source has neither fault (and, by its name, still reads standard input where that is a terminal). The
//! thread here looks for a hang-up first all the same, and whatever becomes of it, the loop lives.

use ratatui::crossterm::event::{self, Event, KeyEventKind, MouseEventKind};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, PipeReader, PipeWriter};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Events on their way to the loop; a thread that is faster waits.
const EVENTS: usize = 1024;

/// How long crossterm is given to find the event that is there. (With zero it doesn't look.)
const FIND: Duration = Duration::from_millis(1);

/// The most that is taken for one heap of input.
const HEAP: usize = 256;

/// An event of the terminal, and when it was read.
pub struct Typed {
    pub event: Event,
    pub at: Instant,
    /// It was there together with others: a burst, or what waited while nobody could look.
    pub crowded: bool,
}

/// What is typed. Reading ends when this is dropped.
pub struct Input {
    events: mpsc::Receiver<Typed>,
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
    pub async fn next(&mut self) -> Option<Typed> {
        self.events.recv().await
    }

    /// An event that is there already.
    pub fn ready(&mut self) -> Option<Typed> {
        self.events.try_recv().ok()
    }
}

fn read(stopped: &PipeReader, out: &mpsc::Sender<Typed>) -> io::Result<()> {
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
        // What has come together is told as that. The time is taken here: the loop may be busy with a slow terminal.
        while event::poll(FIND)? {
            let mut heap = vec![event::read()?];
            while heap.len() < HEAP && event::poll(FIND)? {
                heap.push(event::read()?);
            }
            let at = Instant::now();
            let crowded = heap.iter().filter(|e| is_pressed(e)).count() > 1;
            for event in heap {
                if out.blocking_send(Typed { event, at, crowded }).is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// Done by a hand, and no key let go.
pub fn is_pressed(event: &Event) -> bool {
    match event {
        Event::Key(k) => k.kind != KeyEventKind::Release,
        Event::Mouse(m) => !matches!(m.kind, MouseEventKind::Up(_) | MouseEventKind::Moved),
        Event::Paste(_) => true,
        Event::Resize(..) | Event::FocusGained | Event::FocusLost => false,
    }
}
