//! The terminal, taken and given back: raw mode, alternate screen, bracketed paste, cursor. Given back on
//! quit and error by `Drop`, on a panic by the hook, on SIGTERM and SIGHUP because the loop then ends.
//!
//! A panic on another thread must not tear the screen down under a loop that goes on drawing: there the
//! report is kept, the loop is woken and ends, and the report is printed when the screen is gone.

use super::app::App;
use super::view::{Seen, view};
use crate::config::Bell;
use crate::text;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{execute, style};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, BufWriter, Stdout};
use std::mem::ManuallyDrop;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::ThreadId;
use tokio::sync::Notify;

/// Clicks and the wheel, in the form without limits (xterm's modes 1000 and 1006); moving alone is not asked for.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";
/// The most that is handed to a clipboard through the terminal, in bytes; many take no more.
pub const CLIPBOARD: usize = 74_000;

/// The screen is ours.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The thread that draws.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);
/// The report of a panic, until somebody prints it; empty when it has been printed.
static PANIC: Mutex<Option<String>> = Mutex::new(None);
static WAKE: Notify = Notify::const_new();
static HOOK: Once = Once::new();

/// The screen while it is ours. Only one at a time; made and dropped on the thread that draws.
pub struct Screen {
    /// Never dropped: on its way out ratatui tells standard error what went wrong, and panics where that is the terminal
    /// that is gone. What has to be given back is given back by `leave`.
    terminal: ManuallyDrop<Taken>,
    /// The terminal says how large it is.
    told: bool,
    seen: Seen,
    mouse: bool,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When standard output is no terminal or can't be switched; it is then as it was.
    pub fn enter() -> io::Result<Screen> {
        // ratatui writes modifiers before colours, and crossterm turns colours into a reset when NO_COLOR is
        // set, which wipes them out: so colours always pass and the theme decides.
        style::force_color_output(true);
        *OWNER.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current().id());
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| on_panic(info, &*before)));
        });
        ACTIVE.store(true, Ordering::SeqCst);
        let entered = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste))
            .and_then(|()| terminal());
        match entered {
            Ok(terminal) => Ok(Screen {
                terminal: ManuallyDrop::new(terminal),
                seen: Seen::default(),
                told: told_size().is_ok_and(|t| t.1),
                mouse: false,
            }),
            Err(e) => {
                leave();
                Err(e)
            }
        }
    }

    /// Its size in columns and rows.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        told_size().map(|t| t.0)
    }

    /// Takes note of another size.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resized(&mut self) -> io::Result<(u16, u16)> {
        let (size, told) = told_size()?;
        // ratatui asks for the size by itself, but for a terminal that doesn't say it.
        if !told || !self.told {
            self.redraw()?;
        }
        Ok(size)
    }

    /// Draws everything anew, over whatever else was written there.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn redraw(&mut self) -> io::Result<()> {
        execute!(io::stdout(), Clear(ClearType::All))?;
        // A new one knows nothing of what was on the screen. (`Terminal::clear` asks the terminal for its cursor and
        // waits for the answer, which the reading thread may take.)
        self.terminal = ManuallyDrop::new(terminal()?);
        self.told = told_size()?.1;
        Ok(())
    }

    /// Draws one frame; returns what drawing found out.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, app: &App) -> io::Result<&mut Seen> {
        if self.mouse != app.mouse {
            self.mouse = app.mouse;
            let mode = if self.mouse { MOUSE_ON } else { MOUSE_OFF };
            execute!(self.terminal.backend_mut(), Print(mode))?;
        }
        execute!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        let theme = app.themes.theme();
        self.terminal.draw(|frame| view(app, theme, &mut self.seen, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Ok(&mut self.seen)
    }

    /// Hands a text to the terminal's clipboard (OSC 52). Whether it takes it, nobody can know.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Rings, as configured; the words are for a notification.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn ring(&mut self, bell: Bell, words: &str) -> io::Result<()> {
        let clean = text::visible(words);
        match bell {
            Bell::Off => Ok(()),
            Bell::Bell => execute!(self.terminal.backend_mut(), Print("\x07")),
            Bell::Notify => {
                let notice = format!("\x1b]9;redial: {}\x1b\\", text::truncate(&clean, 120, "…"));
                execute!(self.terminal.backend_mut(), Print(notice))
            }
        }
    }

    /// Gives the terminal back, stops this process as a shell's job, and takes the terminal again when it goes on.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn suspend(&mut self) -> io::Result<()> {
        leave();
        kill_process(getpid(), Signal::STOP)?;
        self.resume()
    }

    /// Takes the terminal again after a stop, whoever ordered it, and draws everything anew.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resume(&mut self) -> io::Result<()> {
        // What crossterm remembers of the mode needn't be true after a stop.
        disable_raw_mode()?;
        ACTIVE.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        self.mouse = false;
        self.redraw()
    }
}

impl Screen {
    /// Draws one frame of something that is no [`App`].
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn paint(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(draw)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }
}

type Taken = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

fn terminal() -> io::Result<Taken> {
    let backend = CrosstermBackend::new(BufWriter::new(io::stdout()));
    match told_size()? {
        (_, true) => Terminal::new(backend),
        ((w, h), false) => {
            let viewport = Viewport::Fixed(Rect::new(0, 0, w, h));
            Terminal::with_options(backend, TerminalOptions { viewport })
        }
    }
}

/// Columns and rows, and whether the terminal itself says so: a serial line, a container, or an editor's shell may say
/// 0x0, which is no size.
fn told_size() -> io::Result<((u16, u16), bool)> {
    let (w, h) = size()?;
    let told = w > 0 && h > 0;
    let (columns, lines) = assumed_size();
    Ok((if told { (w, h) } else { (columns, lines) }, told))
}

/// What a terminal that doesn't say its size is taken for: `COLUMNS` and `LINES`, else 80x24.
pub fn assumed_size() -> (u16, u16) {
    let of = |name: &str, else_: u16| {
        let value = std::env::var(name).ok().and_then(|v| v.trim().parse().ok());
        value.filter(|n| (1..=1_000).contains(n)).unwrap_or(else_)
    };
    (of("COLUMNS", 80), of("LINES", 24))
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives everything back, once. Each step is tried whatever became of the one before: after a hang-up all
/// of them fail, and nothing can be done about it.
fn leave() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        execute!(io::stdout(), EndSynchronizedUpdate).ok();
        execute!(io::stdout(), Print(MOUSE_OFF)).ok();
        execute!(io::stdout(), DisableBracketedPaste).ok();
        execute!(io::stdout(), LeaveAlternateScreen).ok();
        execute!(io::stdout(), Show).ok();
        disable_raw_mode().ok();
    }
}

fn on_panic(info: &PanicHookInfo<'_>, before: &dyn Fn(&PanicHookInfo<'_>)) {
    if !ACTIVE.load(Ordering::SeqCst) {
        return before(info);
    }
    let here = Some(std::thread::current().id());
    let ours = *OWNER.lock().unwrap_or_else(PoisonError::into_inner) == here;
    let report = if ours {
        leave();
        before(info);
        String::new()
    } else {
        let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let trace = std::backtrace::Backtrace::capture();
        match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("thread '{name}' {info}\n{trace}"),
            _ => format!("thread '{name}' {info}"),
        }
    };
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(report);
    WAKE.notify_one();
}

/// Waits until a panic was reported anywhere.
pub async fn panicked() {
    WAKE.notified().await;
}

/// Ends this thread as the reported panic, if there was one: prints the report unless it has been printed,
/// and unwinds, so that children and files are given back by their own destructors (exit status 101). To
/// be called when the screen is gone.
pub fn rethrow_panic() {
    let report = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(report) = report {
        if !report.is_empty() {
            use io::Write;
            writeln!(io::stderr(), "\n{report}").ok();
        }
        panic::resume_unwind(Box::new(report));
    }
}
