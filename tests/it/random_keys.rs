//! Random keys, clicks, pastes and sizes at a real terminal, against a server that dies. What was sent is counted at the
//! server: no call without its whole question on the screen for a while, with the very arguments that were sent or their
//! head and tail and the count between; no panic, nothing left behind.
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
    /// The questions of the last seconds, newest last.
    questions: Vec<Asked>,
    /// At the last look there was none.
    gone: bool,
    calls: usize,
}

/// A whole question that was seen on the screen.
struct Asked {
    /// The arguments as drawn, without spaces.
    args: String,
    since: Instant,
    last: Instant,
}

/// The arguments of the re-issue question, if the whole of it stands on the screen.
fn asked(text: &str) -> Option<String> {
    let packed = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let flat = packed(&text.replace('│', ""));
    let asks = ["Sendexactlythiscall?", "Senditallthesame?", "Tosenditallthesame,type"];
    let whole = flat.contains("tools/callcreate_ticket")
        && asks
            .iter()
            .any(|q| flat.split_once(q).is_some_and(|(_, after)| after.contains("doesn't.")));
    let lines = text.lines().filter_map(|l| l.split_once('▏')?.1.split('│').next());
    whole.then(|| packed(&lines.collect::<String>()))
}

/// Whether what was drawn shows these arguments: all of them, or both ends and how much is between.
fn shows(drawn: &str, sent: &str) -> bool {
    let sent: Vec<char> = sent.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((head, rest)) = drawn.split_once('…') else {
        return drawn.chars().eq(sent.iter().copied());
    };
    let Some((count, tail)) = rest.split_once("charactersarenotshown;Tabshowsthem…") else {
        return false;
    };
    let (head, tail): (Vec<char>, Vec<char>) = (head.chars().collect(), tail.chars().collect());
    let between = sent.len().saturating_sub(head.len() + tail.len());
    // Spaces between are counted there and not here.
    let counted = count.parse::<usize>().is_ok_and(|n| n >= between && n <= 2 * between + 8);
    counted && sent.starts_with(&head) && sent.ends_with(&tail)
}

#[derive(serde::Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(serde::Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: &'a serde_json::value::RawValue,
}

#[test]
fn a_question_shows_the_arguments_or_both_their_ends() {
    let sent = r#"{"request_id": "r-1", "title": "t r-1", "body": "b"}"#;
    assert!(shows(r#"{"request_id":"r-1","title":"tr-1","body":"b"}"#, sent));
    assert!(!shows(r#"{"request_id":"r-1","title":"tr-1","body":"c"}"#, sent));
    let cut = |n: u32| format!(r#"{{"request_id"…{n}charactersarenotshown;Tabshowsthem…"b"}}"#);
    assert!(shows(&cut(33), sent) && !shows(&cut(3), sent));
    let screen = "│ call  tools/call create_ticket │\n│▏ {\"a\": │ x\n│▏ 1}  │\n│ Send exactly this call? Enter \n│ sends it, Esc doesn't. │";
    assert_eq!(asked(screen).unwrap(), "{\"a\":1}");
    assert_eq!(asked(&screen.replace("doesn't", "")), None);
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
        Run { folder, pty, size, questions: Vec::new(), gone: true, calls: 0 }
    }

    /// The calls that have reached the server, oldest first.
    fn sent(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        // The last line may be on its way.
        let whole = log.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        let calls = whole.filter(|l| l.contains("tools/call") && l.contains("create_ticket"));
        calls.map(str::to_owned).collect()
    }

    fn group(&self) -> Option<Pid> {
        let text = std::fs::read_to_string(self.folder.path().join("pid")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    /// Looks whether the question is there, and whether what was sent had one.
    fn look(&mut self, seed: u64) {
        let text = self.pty.text();
        let now = Instant::now();
        let sent = self.sent();
        for line in sent.iter().skip(self.calls) {
            // A line that a kill cut off has no end of its own.
            let line = &line[line.rfind("{\"jsonrpc\"").unwrap_or(0)..];
            let call: Sent<'_> = serde_json::from_str(line).unwrap();
            let args = call.params.arguments.get();
            let mut seen = self.questions.iter().filter(|q| shows(&q.args, args));
            // It was seen by looks; that there was time to read it, the looks around it must allow.
            let readable = |q: &Asked| q.last.duration_since(q.since) >= Duration::from_millis(250);
            assert!(
                seen.any(readable),
                "seed {seed}: a call without its question: {line}\nasked: {:?}\n{text}",
                self.questions.iter().map(|q| (&q.args, q.last - q.since)).collect::<Vec<_>>()
            );
            // One question, one call.
            self.questions.clear();
        }
        self.calls = sent.len();
        // What was answered a moment ago may not have reached the server yet.
        self.questions.retain(|q| now.duration_since(q.last) < Duration::from_secs(5));
        let Some(args) = asked(&text) else {
            self.gone = true;
            return;
        };
        match self.questions.last_mut().filter(|q| q.args == args && !self.gone) {
            Some(q) => q.last = now,
            None => self.questions.push(Asked { args, since: now, last: now }),
        }
        self.gone = false;
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
                // A repeat needs a server that lives.
                if run.pty.text().contains("starts it again") {
                    std::thread::sleep(Duration::from_millis(300));
                    run.pty.send("R");
                    std::thread::sleep(Duration::from_millis(400));
                }
                run.look(seed);
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
            run.questions.clear();
        }
    }
    eprintln!("{} calls, {} inputs", run.calls, typed);
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
