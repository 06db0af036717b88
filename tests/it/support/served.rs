//! A built-in server as a real process, and the plainest possible client for it over either transport: raw lines, raw
//! HTTP/1.1. Nothing of redial's own client is used, so that neither can hide a fault of the other.

use super::{LIMIT, until};
use redial::json::raw;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
}

pub const BOTH: [Transport; 2] = [Transport::Stdio, Transport::Http];

pub const INITIALIZE: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;

/// Starts a tap over HTTP, and where it listens by its own word; its further words go nowhere.
pub fn tap(command: &mut Command) -> (Child, SocketAddr) {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.split_once("http://").unwrap().1.split('/').next().unwrap();
    let address = address.parse().unwrap();
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    (child, address)
}

/// `redial serve …`, with a legacy session opened. Killed when dropped.
pub struct Served {
    child: Child,
    peer: Peer,
    stderr: Arc<Mutex<String>>,
    ids: AtomicU64,
}

enum Peer {
    Stdio { stdin: Mutex<Option<ChildStdin>>, out: Arc<Mutex<Out>> },
    Http { address: SocketAddr, session: String },
}

/// Lines of stdout, and whether it has ended.
#[derive(Default)]
struct Out {
    lines: Vec<String>,
    ended: bool,
}

/// A request that was sent.
pub struct Sent(Kind);

enum Kind {
    Stdio(u64, Arc<Mutex<Out>>),
    Http(JoinHandle<Option<Reply>>),
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|l| {
            let (k, v) = l.split_once(':')?;
            k.eq_ignore_ascii_case(name).then(|| v.trim())
        })
    }
}

impl Served {
    /// Starts `redial serve ARGS` and opens a session.
    pub fn start(transport: Transport, args: &[&str]) -> Served {
        let mut command = super::cli::program();
        command.arg("serve").args(args);
        if transport == Transport::Http {
            command.args(["--http", "127.0.0.1:0"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        gather(child.stderr.take().unwrap(), {
            let stderr = stderr.clone();
            move |line| {
                if let Some(line) = line {
                    *stderr.lock().unwrap() += &(line + "\n")
                }
            }
        });
        let out = Arc::new(Mutex::new(Out::default()));
        gather(child.stdout.take().unwrap(), {
            let out = out.clone();
            move |line| match line {
                Some(line) => out.lock().unwrap().lines.push(line),
                None => out.lock().unwrap().ended = true,
            }
        });
        let peer = match transport {
            Transport::Stdio => Peer::Stdio { stdin: Mutex::new(child.stdin.take()), out },
            Transport::Http => {
                let address = until("the address on stderr", || {
                    let said = stderr.lock().unwrap().clone();
                    let at = said.split_once("listening on http://")?.1;
                    Some(at.split_once("/mcp")?.0.parse().unwrap())
                });
                let opened = post(address, &[], &request(0, "initialize", INITIALIZE)).unwrap();
                let session = opened.header("mcp-session-id").unwrap().to_owned();
                Peer::Http { address, session }
            }
        };
        let served = Served { child, peer, stderr, ids: AtomicU64::new(1) };
        if transport == Transport::Stdio {
            let opened = served.ask("initialize", INITIALIZE);
            assert_eq!(
                raw::get_path(&opened, &["result", "protocolVersion"]),
                Some("\"2025-11-25\"")
            );
        }
        served.notify(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        served
    }

    /// Sends a request in the session; the answer comes later.
    pub fn begin(&self, method: &str, params: &str) -> (u64, Sent) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let text = request(id, method, params);
        let sent = match &self.peer {
            Peer::Stdio { stdin, out } => {
                write_line(stdin, &text);
                Kind::Stdio(id, out.clone())
            }
            Peer::Http { address, session } => {
                let (address, session) = (*address, session.clone());
                Kind::Http(std::thread::spawn(move || {
                    post(address, &[("Mcp-Session-Id", &session)], &text)
                }))
            }
        };
        (id, Sent(sent))
    }

    /// Begins a `tools/call`.
    pub fn begin_call(&self, tool: &str, arguments: &str) -> Sent {
        self.begin("tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#)).1
    }

    /// The answer to a request.
    pub fn ask(&self, method: &str, params: &str) -> String {
        self.begin(method, params)
            .1
            .answer()
            .unwrap_or_else(|| panic!("no answer; {}", self.stderr()))
    }

    /// The raw result of a `tools/call`.
    pub fn call(&self, tool: &str, arguments: &str) -> String {
        let answer = self
            .begin_call(tool, arguments)
            .answer()
            .unwrap_or_else(|| panic!("no answer; {}", self.stderr()));
        raw::get(&answer, "result").unwrap_or_else(|| panic!("no result: {answer}")).to_owned()
    }

    /// Sends a notification.
    pub fn notify(&self, text: &str) {
        match &self.peer {
            Peer::Stdio { stdin, .. } => write_line(stdin, text),
            Peer::Http { session, .. } => {
                let reply = self.post(&[("Mcp-Session-Id", session)], text);
                assert_eq!((reply.status, reply.body.as_str()), (202, ""));
            }
        }
    }

    /// A bare POST with these headers on top of what every POST has.
    pub fn post(&self, headers: &[(&str, &str)], body: &str) -> Reply {
        post(self.address(), headers, body).expect("an answer")
    }

    pub fn address(&self) -> SocketAddr {
        match &self.peer {
            Peer::Http { address, .. } => *address,
            Peer::Stdio { .. } => panic!("stdio has no address"),
        }
    }

    pub fn session(&self) -> &str {
        match &self.peer {
            Peer::Http { session, .. } => session,
            Peer::Stdio { .. } => panic!("stdio has no session"),
        }
    }

    /// What it has said on stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// The lines of stdout so far.
    pub fn stdout(&self) -> Vec<String> {
        match &self.peer {
            Peer::Stdio { out, .. } => out.lock().unwrap().lines.clone(),
            Peer::Http { .. } => panic!("not looked at over HTTP"),
        }
    }

    pub fn boot_id(&self) -> String {
        until("the boot id on stderr", || {
            Some(self.stderr().split_once("boot id ")?.1.split_once('\n')?.0.to_owned())
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn close_stdin(&self) {
        match &self.peer {
            Peer::Stdio { stdin, .. } => drop(stdin.lock().unwrap().take()),
            Peer::Http { .. } => panic!("HTTP doesn't look at stdin"),
        }
    }

    /// Waits for it to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        until("the server ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sent {
    /// The JSON-RPC answer; `None` when the connection ended without one.
    pub fn answer(self) -> Option<String> {
        match self.0 {
            Kind::Http(thread) => thread.join().unwrap().map(|r| r.body).filter(|b| !b.is_empty()),
            Kind::Stdio(id, out) => until("an answer or the end", || {
                let out = out.lock().unwrap();
                let id = id.to_string();
                match out.lines.iter().find(|l| raw::get(l, "id") == Some(id.as_str())) {
                    Some(line) => Some(Some(line.clone())),
                    None => out.ended.then_some(None),
                }
            }),
        }
    }
}

pub fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// POSTs to `/mcp`; `None` when the connection broke before a whole answer.
fn post(address: SocketAddr, headers: &[(&str, &str)], body: &str) -> Option<Reply> {
    let mut head =
        format!("POST /mcp HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    let host = address.to_string();
    let usual = [
        ("Host", host.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let replaced = |name: &str| headers.iter().any(|(k, _)| k.eq_ignore_ascii_case(name));
    for (k, v) in usual.into_iter().filter(|(k, _)| !replaced(k)).chain(headers.iter().copied()) {
        head += &format!("{k}: {v}\r\n");
    }
    http(address, &format!("{head}\r\n{body}"))
}

/// One HTTP exchange on a connection of its own.
pub fn http(address: SocketAddr, request: &str) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(request.as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, head: head.into(), body: body.into() })
}

fn write_line(stdin: &Mutex<Option<ChildStdin>>, text: &str) {
    let mut stdin = stdin.lock().unwrap();
    writeln!(stdin.as_mut().expect("stdin is open"), "{text}").unwrap();
}

fn gather(from: impl Read + Send + 'static, mut each: impl FnMut(Option<String>) + Send + 'static) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            each(Some(line));
        }
        each(None);
    });
}
