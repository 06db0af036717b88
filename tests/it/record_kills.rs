//! SIGKILL at moments that a seeded generator picks, of the tap, the server and the client: the file can be read,
//! nothing hangs, the exit status is right, and no process is left.

use crate::support::cli::program;
use crate::support::until;
use redial::record::entry::{Line, decode};
use redial::recording::Recording;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Answers each line with two, of some length, and says something on stderr.
const SERVER: &str = r#"while read -r line; do n=$((n+1)); echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"result\":{\"content\":[]}}"; echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"n\":$n}}"; echo "line $n" >&2; done"#;
const ROUNDS: u64 = 12;

/// The same moments each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn kill(pid: u32) {
    Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().to_owned();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

fn server_of(out: &Path) -> Option<u32> {
    let text = std::fs::read(out).ok()?;
    text.split(|b| *b == b'\n').find_map(|l| match decode(l) {
        Line::Entry(e) => match e.event()?.kind {
            redial::journal::Kind::Opened {
                transport: redial::journal::event::Transport::Stdio { pid, .. },
            } => pid,
            _ => None,
        },
        _ => None,
    })
}

/// A client that talks without a pause, as a process of its own so that it can be killed; its stdin and stdout are
/// the tap's.
fn client(tap: &mut Child) -> Child {
    let script = r#"n=0; while :; do n=$((n+1)); echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"request_id\":\"r-$n\"}}}" || exit; read -r a <&3 || exit; read -r b <&3 || exit; done"#;
    let answers = tap.stdout.take().unwrap();
    Command::new("sh")
        .args(["-c", &format!("exec 3<&0; {script}")])
        .stdin(Stdio::from(answers))
        .stdout(Stdio::from(tap.stdin.take().unwrap()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn at_any_moment_nothing_hangs_and_the_file_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(0x5eed_7a95);
    for round in 0..ROUNDS {
        let out = dir.path().join(format!("{round}.jsonl"));
        let mut tap = program()
            .args(["record", "--out"])
            .arg(&out)
            .args(["--", "sh", "-c", SERVER])
            .env("XDG_STATE_HOME", dir.path().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut client = client(&mut tap);
        let server = until("the server is there", || server_of(&out));
        // From before the first frame to the middle of the talk.
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        let whom = ["tap", "server", "client"][(round % 3) as usize];
        match whom {
            "tap" => kill(tap.id()),
            "server" => kill(server),
            _ => kill(client.id()),
        }
        let status = until("the tap ends", || tap.try_wait().unwrap());
        until("the client ends", || client.try_wait().unwrap());
        until("no server is left", || (!alive(server)).then_some(()));
        let r = Recording::open(&out).unwrap();
        assert_eq!((r.bad.len(), r.lost), (0, 0), "round {round}: {:?}", r.bad);
        assert!(whom == "tap" || r.bad_lines().count() == 0, "round {round}");
        let ended = r.session.generation().unwrap().ended;
        let of_server =
            |e: redial::journal::generation::Ended| e.code.or(e.signal.map(|s| 128 + s));
        match whom {
            "tap" => {
                assert_eq!(status.signal(), Some(9));
                assert!(ended.is_none(), "nobody was there to write it");
            }
            "server" => {
                assert_eq!(status.code(), Some(137), "round {round}");
                assert_eq!(ended.unwrap().signal, Some(9));
            }
            // The end of its stdin ends such a server, or SIGPIPE when it was just writing: either way its status
            // is ours.
            _ => {
                assert_eq!(status.code(), of_server(ended.unwrap()), "round {round}");
                assert!(matches!(status.code(), Some(0 | 141)), "round {round}: {status}");
            }
        }
        // Every answer that the recording has was asked for in it.
        let calls = r.session.calls.len() as u64;
        assert!(r.session.strays == 0 && r.events >= calls, "round {round}");
    }
}

#[test]
fn a_killed_tap_before_http_leaves_a_readable_file_and_a_server_that_serves_on() {
    use crate::support::served::{Served, Transport};
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("l.db");
    let served = Served::start(Transport::Http, &["tickets", "--ledger", ledger.to_str().unwrap()]);
    let mut random = Random(0x5eed_4117);
    for round in 0..4 {
        let out = dir.path().join(format!("h{round}.jsonl"));
        let mut tap = program()
            .args(["record", "--http", &format!("http://{}/mcp", served.address())])
            .args(["--listen", "127.0.0.1:0", "--out"])
            .arg(&out)
            .env("XDG_STATE_HOME", dir.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(tap.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let at = line.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
        let asking = std::thread::spawn(move || {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            let mut asked = 0;
            while let Ok(mut s) = std::net::TcpStream::connect(&at) {
                let head = format!(
                    "POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                if s.write_all(head.as_bytes()).is_err() {
                    break;
                }
                std::io::copy(&mut s, &mut std::io::sink()).ok();
                asked += 1;
            }
            asked
        });
        let written = || std::fs::read_to_string(&out).ok()?.contains(r#""seq":1,"#).then_some(());
        until("something is written down", written);
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        tap.kill().unwrap();
        assert_eq!(tap.wait().unwrap().signal(), Some(9));
        assert!(asking.join().unwrap() > 0, "the client noticed and ended");
        let r = Recording::open(&out).unwrap();
        assert_eq!((r.bad.len(), r.lost), (0, 0), "round {round}: {:?}", r.bad);
        assert!(r.events > 0);
    }
    std::net::TcpStream::connect(served.address()).unwrap();
}
