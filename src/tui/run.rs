//! The loop: one owner of the state, one `select!`, input first. Any number of messages make one frame: at
//! once after a key, else at most 60 a second; nothing moves, nothing is drawn.
//!
//! Knows the terminal and the clock; what effects do is somebody else's at the other end of the port.

use super::app::App;
use super::input::{self, Input, Typed};
use super::msg::{Effect, Mouse, Msg};
use super::term::{self, Screen};
use super::update::update;
use crate::error::{Error, Exit, Result};
use crate::keys::Key;
use crate::signals::Ends;
use crate::time::Time;
use ratatui::crossterm::event::{Event, MouseButton, MouseEventKind};
use rustix::process::{Signal as Sig, kill_current_process_group};
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// The time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(16);
/// Messages and keys taken in before a frame is drawn.
const BATCH: usize = 256;

/// Where effects go and messages come from.
pub struct Port {
    /// Answers and news. Bounded by whoever made it.
    pub msgs: mpsc::Receiver<Msg>,
    /// What is to be done. People's keys set its pace.
    pub effects: mpsc::UnboundedSender<Effect>,
}

/// Runs the screen until a person quits or the program is told to end; the terminal is then given back.
/// Has to be polled on one thread (`block_on`), the one that owns the terminal. A panic anywhere ends it
/// and goes on unwinding from here.
///
/// # Errors
/// When there is no terminal.
pub async fn drive(app: &mut App, mut port: Port) -> Result<Exit> {
    let no_terminal = |e: io::Error| Error::usage(format!("the terminal can't be used: {e}"));
    let mut signals = Signals::new().map_err(no_terminal)?;
    let mut screen = Screen::enter().map_err(no_terminal)?;
    let size = screen.size().map_err(no_terminal)?;
    take(app, &port, Msg::Resize(size.0, size.1));
    let done = turn(app, &mut port, &mut screen, &mut signals).await;
    drop(screen);
    term::rethrow_panic();
    match done {
        // A terminal that went away is a hang-up, not a fault.
        Ok(()) | Err(_) => Ok(Exit::Good),
    }
}

async fn turn(
    app: &mut App,
    port: &mut Port,
    screen: &mut Screen,
    signals: &mut Signals,
) -> io::Result<()> {
    let mut input = Input::start()?;
    let mut batch = Vec::with_capacity(BATCH);
    let began = Instant::now();
    let mut drawn = began;
    let (mut dirty, mut urgent, mut open) = (true, true, true);
    while !app.quitting {
        if std::mem::take(&mut app.redraw) {
            screen.redraw()?;
            (dirty, urgent) = (true, true);
        }
        if let Some(text) = app.clipboard.take() {
            screen.copy(&text)?;
        }
        if let Some(words) = app.ring.take() {
            screen.ring(app.bell, &words)?;
        }
        if dirty && (urgent || drawn.elapsed() >= FRAME) {
            let seen = screen.draw(app)?;
            app.drew(seen);
            (dirty, urgent, drawn) = (false, false, Instant::now());
            take(app, port, Msg::Drawn { at: drawn - began });
        }
        let tick = app.next_tick().map(|at| {
            let left = u64::try_from(at.0 - Time::now().0).unwrap_or(0);
            Instant::now() + Duration::from_micros(left)
        });
        let held = app.answering.held_until().map(|at| began + at);
        tokio::select! { biased;
            () = term::panicked() => return Ok(()),
            signal = signals.next() => match signal {
                Told::End => return Ok(()),
                Told::Resized => {
                    let (w, h) = screen.resized()?;
                    take(app, port, Msg::Resize(w, h));
                    dirty = true;
                }
                Told::Stop => {
                    screen.suspend()?;
                    (dirty, urgent) = (true, true);
                }
                Told::GoOn => {
                    screen.resume()?;
                    let (w, h) = screen.size()?;
                    take(app, port, Msg::Resize(w, h));
                    (dirty, urgent) = (true, true);
                }
            },
            event = input.next() => {
                let Some(event) = event else { return Ok(()) };
                take(app, port, Msg::Now(Time::now()));
                terminal_event(app, port, event, began);
                // What is there already: a paste or a held key makes one frame.
                while let Some(event) = input.ready().filter(|_| !app.quitting) {
                    terminal_event(app, port, event, began);
                }
                (dirty, urgent) = (true, true);
                if std::mem::take(&mut app.suspending) {
                    // The whole job stops, whatever started this process; it stops itself when the signal comes.
                    kill_current_process_group(Sig::TSTP)?;
                }
            }
            n = port.msgs.recv_many(&mut batch, BATCH), if open => {
                open = n > 0;
                take(app, port, Msg::Now(Time::now()));
                for msg in batch.drain(..) {
                    take(app, port, msg);
                }
                dirty = true;
            }
            () = sleep_until(drawn + FRAME), if dirty => {}
            () = at(held), if held.is_some() => {
                take(app, port, Msg::Quiet { at: began.elapsed() });
                (dirty, urgent) = (true, true);
            }
            () = at(tick), if tick.is_some() => {
                take(app, port, Msg::Now(Time::now()));
                dirty = true;
            }
        }
    }
    Ok(())
}

pub(super) async fn at(tick: Option<Instant>) {
    match tick {
        Some(t) => sleep_until(t).await,
        None => std::future::pending().await,
    }
}

fn terminal_event(app: &mut App, port: &Port, typed: Typed, began: Instant) {
    let Typed { event, at, crowded } = typed;
    if input::is_pressed(&event) {
        take(app, port, Msg::Input { at: Instant::from_std(at) - began, crowded });
    }
    match event {
        Event::Key(event) => {
            if let Some((key, repeat)) = Key::from_event(event) {
                take(app, port, Msg::Key { key, repeat });
            }
        }
        Event::Paste(text) => take(app, port, Msg::Paste(text)),
        Event::Resize(w, h) => take(app, port, Msg::Resize(w, h)),
        Event::Mouse(m) => {
            let did = match m.kind {
                MouseEventKind::Down(MouseButton::Left) => Mouse::Click,
                MouseEventKind::ScrollUp => Mouse::ScrollUp,
                MouseEventKind::ScrollDown => Mouse::ScrollDown,
                _ => return,
            };
            take(app, port, Msg::Mouse { x: m.column, y: m.row, did });
        }
        Event::FocusGained | Event::FocusLost => {}
    }
}

fn take(app: &mut App, port: &Port, msg: Msg) {
    for effect in update(app, msg) {
        // Nobody at the other end: the program is ending.
        port.effects.send(effect).ok();
    }
}

/// What a signal says.
enum Told {
    /// End: told by somebody, or the terminal is gone.
    End,
    /// The terminal has another size.
    Resized,
    /// Stop, as a job of a shell.
    Stop,
    /// It was stopped and goes on.
    GoOn,
}

struct Signals {
    end: Ends,
    resized: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        let other = |s: Sig| signal(SignalKind::from_raw(s.as_raw()));
        Ok(Signals {
            end: Ends::listen()?,
            resized: signal(SignalKind::window_change())?,
            stop: other(Sig::TSTP)?,
            go_on: other(Sig::CONT)?,
        })
    }
    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.end.next() => Told::End,
            _ = self.resized.recv() => Told::Resized,
            _ = self.stop.recv() => Told::Stop,
            _ = self.go_on.recv() => Told::GoOn,
        }
    }
}
