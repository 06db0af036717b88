//! Random keys, clicks, pastes and sizes at a real terminal, against a server that dies. What was sent is counted at the
//! server: no call without its whole question on the screen for a while, no panic, nothing left behind.
//!
//! A few hundred inputs here; `REDIAL_RANDOM_KEYS=20000` makes it a long run, `REDIAL_RANDOM_SEED` the same one again.

use crate::support::cli::{EXE, redial};
use crate::support::pty::Pty;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Keys that mean something, as a terminal sends them. (Quitting has a turn of its own.)
const KEYS: [&str; 44] = [
    "j", "k", "\r", "\r", "\r", "\t", "\x1b[Z", "y", "y", "r", "r", "n", "f", "v", "z", "/", "?",
    "x", "w", "o", "L", "T", "A", "J", "R", "t", "m", ":", "s", "S", "p", "F", "G", "g", "+", "<",
    "=", "\x1b[A", "\x1b[B", "\x1b[6~", "\x7f", " ", "\x0c", "1",
];

/// xorshift64*, so that a seed is a run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
}

struct Run {
    folder: tempfile::TempDir,
    pty: Pty,
    size: (u16, u16),
    /// The whole question has been on the screen since then, and was seen there last.
    question: Option<(Instant, Instant)>,
    calls: usize,
}

fn start(folder: &Path, size: (u16, u16)) -> Pty {
    let path = |name: &str| folder.join(name).display().to_string();
    let (ledger, log, pid) = (path("ledger.db"), path("log"), path("pid"));
    // All that reaches the server is written down before it; its leader's number tells the group to be killed.
    let server = format!(
        "echo $$ > {pid}; tee -a {log} | {EXE} serve tickets --ledger {ledger} --work-seconds 0.05"
    );
    let tmp = path("tmp");
    let args = ["attach", "--ledger", &ledger, "--", "sh", "-c", &server];
    let pty = Pty::start(Path::new(EXE), &args, &[("TMPDIR", &tmp)], size);
    pty.wait_for("ready");
    pty
}

impl Run {
    fn new() -> Run {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        let ledger = folder.path().join("ledger.db").display().to_string();
        for id in ["r-1", "r-2"] {
            let args = format!(r#"{{"request_id":"{id}","title":"t {id}","body":"b"}}"#);
            let serve = ["--", EXE, "serve", "tickets", "--ledger", &ledger, "--work-seconds", "0"];
            let call = [&["call", "create_ticket", "--args", &args][..], &serve].concat();
            assert_eq!(redial(&call).exit, 0);
        }
        let size = (120, 40);
        let pty = start(folder.path(), size);
        Run { folder, pty, size, question: None, calls: 0 }
    }

    fn sent(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines().filter(|l| l.contains("tools/call") && l.contains("create_ticket")).count()
    }

    fn group(&self) -> Option<Pid> {
        let text = std::fs::read_to_string(self.folder.path().join("pid")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    /// Looks whether the question is there, and whether what was sent had one.
    fn look(&mut self, seed: u64) {
        let text = self.pty.text();
        let asked = text.contains("create_ticket")
            && (text.contains("sends it, ") || text.contains("To send it all the same"))
            && text.contains("\"request_id\"")
            && text.contains("\"title\"");
        let now = Instant::now();
        let sent = self.sent();
        if sent > self.calls {
            let (since, last) = self.question.unwrap_or_else(|| {
                panic!("seed {seed}: a call without a question\n{text}");
            });
            let shown = last.duration_since(since);
            assert!(sent == self.calls + 1, "seed {seed}: {} calls at once", sent - self.calls);
            // It was seen by looks; that there was time to read it, the looks around it must allow.
            assert!(shown >= Duration::from_millis(250), "seed {seed}: shown for {shown:?}");
            self.calls = sent;
        }
        match (&mut self.question, asked) {
            (Some((_, last)), true) => *last = now,
            (none @ None, true) => *none = Some((now, now)),
            // What was answered a moment ago may not have reached the server yet.
            (Some((_, last)), false) if now.duration_since(*last) > Duration::from_secs(5) => {
                self.question = None;
            }
            _ => {}
        }
    }

    fn over(&mut self) -> bool {
        self.pty.has_ended()
    }

    /// After its end: a good one, and nobody is left.
    fn ended_well(&mut self, seed: u64) {
        let status = self.pty.ended();
        assert_eq!(status, 0, "seed {seed}\n{}", self.pty.text());
        let start = Instant::now();
        while self.group().is_some_and(|g| test_kill_process_group(g).is_ok()) {
            assert!(start.elapsed().as_secs() < 10, "seed {seed}: the server's group is left");
            std::thread::sleep(Duration::from_millis(10));
        }
        let left: Vec<PathBuf> = std::fs::read_dir(self.folder.path().join("tmp"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
    }
}

#[test]
fn whatever_is_typed_sends_nothing_that_was_not_asked_and_leaves_nothing_behind() {
    let from = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let keys: u64 = from("REDIAL_RANDOM_KEYS").unwrap_or(400);
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed: u64 = from("REDIAL_RANDOM_SEED").unwrap_or(clock.as_micros() as u64) | 1;
    eprintln!("REDIAL_RANDOM_SEED={seed}");
    let mut dice = Dice(seed);
    let mut run = Run::new();
    let mut typed = 0;
    while typed < keys {
        let key = |d: &mut Dice| KEYS[d.below(KEYS.len() as u64) as usize];
        match dice.below(100) {
            // A burst, as of a held key or of somebody in a hurry.
            0..55 => {
                let n = 1 + dice.below(25);
                let held = (dice.below(3) == 0).then(|| key(&mut dice));
                let text: String = (0..n).map(|_| held.unwrap_or_else(|| key(&mut dice))).collect();
                run.pty.send(&text);
                typed += n;
            }
            55..75 => {
                run.pty.send(key(&mut dice));
                typed += 1;
            }
            // The way to a question, and an answer after a look at it.
            75..83 => {
                run.pty.send("\x1b");
                std::thread::sleep(Duration::from_millis(60));
                run.pty.send("\x1b");
                std::thread::sleep(Duration::from_millis(60));
                run.pty.send("r");
                for _ in 0..4 {
                    std::thread::sleep(Duration::from_millis(120));
                    run.look(seed);
                }
                run.pty.send(if dice.below(2) == 0 { "\r" } else { "y" });
                typed += 4;
            }
            83..89 => {
                let (x, y) = (1 + dice.below(140), 1 + dice.below(45));
                run.pty.send(&format!("\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m"));
                typed += 1;
            }
            89..93 => {
                let text = ["y\r", "{\"title\":\"x\"}", "r-1\r", "\r\r\r"][dice.below(4) as usize];
                run.pty.send(&format!("\x1b[200~{text}\x1b[201~"));
                typed += 1;
            }
            93..96 => {
                run.size = (20 + dice.below(140) as u16, 6 + dice.below(45) as u16);
                run.pty.resize(run.size);
                typed += 1;
            }
            96..99 => {
                if let Some(group) = run.group() {
                    kill_process_group(group, Signal::KILL).ok();
                }
                typed += 1;
            }
            _ => {
                run.pty.send(if dice.below(2) == 0 { "q" } else { "\x03" });
                typed += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(8));
        run.look(seed);
        if run.over() {
            run.ended_well(seed);
            run.size = (120, 40);
            run.pty = start(run.folder.path(), run.size);
            run.question = None;
        }
    }
    // Out of whatever it is in.
    run.pty.resize((120, 40));
    let start = Instant::now();
    while !run.over() {
        assert!(start.elapsed().as_secs() < 30, "seed {seed}: it never ends\n{}", run.pty.text());
        run.pty.send("\x03");
        std::thread::sleep(Duration::from_millis(700));
        run.look(seed);
    }
    run.ended_well(seed);
}
