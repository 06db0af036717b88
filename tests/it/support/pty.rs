//! A program in a real pseudo-terminal, its screen kept by a virtual terminal. Everything waits for a
//! condition with a deadline; nothing sleeps and hopes.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A terminal that says no size is looked at as one of 80x80.
fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(if n == 0 { 80 } else { n }).unwrap()
}

/// What came out so far.
struct Out {
    parser: vt100::Parser,
    /// All bytes, for what a screen doesn't show.
    bytes: Vec<u8>,
    ended: bool,
    /// The terminal is to go away: stop reading.
    leaving: bool,
}

/// A running program and its terminal.
pub struct Pty {
    out: Arc<(Mutex<Out>, Condvar)>,
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
}

impl Pty {
    /// Starts `program` with `args` and `env` on a terminal of this size.
    pub fn start(
        program: &std::path::Path,
        args: &[&str],
        env: &[(&str, &str)],
        size: (u16, u16),
    ) -> Pty {
        let pty_size = PtySize { rows: size.1, cols: size.0, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(pty_size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        // What a person has configured or an earlier run has remembered is nothing to these tests; and a terminal at
        // which a person sits is no build machine: it has its own colours.
        command.env_clear();
        for (key, value) in super::cli::environment() {
            command.env(key, value);
        }
        command.cwd(super::cli::home());
        command.env("TERM", "xterm-256color");
        command.env("RUST_BACKTRACE", "0");
        for (key, value) in env {
            command.env(key, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let writer = pair.master.take_writer().unwrap();
        let out = Arc::new((
            Mutex::new(Out {
                parser: vt100::Parser::new(cells(size.1), cells(size.0), 1000),
                bytes: Vec::new(),
                ended: false,
                leaving: false,
            }),
            Condvar::new(),
        ));
        let shared = out.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            loop {
                // A pseudo-terminal whose other side is closed answers with an error on Linux.
                let n = reader.read(&mut buffer).unwrap_or(0);
                let mut out = shared.0.lock().unwrap();
                out.parser.process(&buffer[..n]);
                out.bytes.extend_from_slice(&buffer[..n]);
                out.ended |= n == 0;
                shared.1.notify_all();
                if n == 0 || out.leaving {
                    return;
                }
            }
        });
        Pty { out, master: Some(pair.master), writer: Some(writer), child }
    }

    /// Waits until `condition` holds for the screen; fails with the screen after the limit.
    pub fn wait(&self, what: &str, mut condition: impl FnMut(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + super::LIMIT;
        let mut out = self.out.0.lock().unwrap();
        while !condition(out.parser.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let over = left.is_zero() || out.ended;
            assert!(!over, "never happened: {what}\n{}", out.parser.screen().contents());
            out = self.out.1.wait_timeout(out, left.min(Duration::from_secs(1))).unwrap().0;
        }
    }

    /// Waits until the screen holds `text`.
    pub fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    /// Types raw bytes. A program that has just ended takes none.
    pub fn send(&mut self, bytes: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(bytes.as_bytes()).and_then(|()| writer.flush()).ok();
    }

    /// It has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Types an answer to a question, which has to be on the screen for a moment first: what is waited for here is time.
    pub fn answer(&mut self, bytes: &str) {
        std::thread::sleep(Duration::from_millis(600));
        self.send(bytes);
    }

    /// Changes the size.
    pub fn resize(&self, size: (u16, u16)) {
        self.out.0.lock().unwrap().parser.screen_mut().set_size(cells(size.1), cells(size.0));
        let pty_size = PtySize { rows: size.1, cols: size.0, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(pty_size).unwrap();
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.process_id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal)
            .unwrap();
    }

    /// Takes the terminal away, as a closed window does. The reader holds it open until it reads once more,
    /// so the program is made to draw.
    pub fn hang_up(&mut self) {
        self.out.0.lock().unwrap().leaving = true;
        let pty_size = PtySize { rows: 20, cols: 70, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(pty_size).unwrap();
        self.writer = None;
        self.master = None;
    }

    /// Waits for the end; its exit status.
    pub fn ended(&mut self) -> u32 {
        let deadline = Instant::now() + super::LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.exit_code();
            }
            assert!(Instant::now() < deadline, "the program never ended\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until everything the ended program wrote is on the screen.
    pub fn drained(&self) {
        let deadline = Instant::now() + super::LIMIT;
        let mut out = self.out.0.lock().unwrap();
        while !out.ended {
            assert!(Instant::now() < deadline, "the terminal never ended");
            out = self.out.1.wait_timeout(out, Duration::from_secs(1)).unwrap().0;
        }
    }

    /// All bytes so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.out.0.lock().unwrap().bytes.clone()
    }

    /// The screen's text now.
    pub fn text(&self) -> String {
        self.out.0.lock().unwrap().parser.screen().contents()
    }

    /// What `read` finds on the screen now.
    pub fn screen<T>(&self, read: impl FnOnce(&vt100::Screen) -> T) -> T {
        read(self.out.0.lock().unwrap().parser.screen())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.child.kill().ok();
    }
}
