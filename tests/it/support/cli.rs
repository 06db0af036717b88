//! Runs the real `redial` binary and reads what it said.

use redial::json::raw;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub const EXE: &str = env!("CARGO_BIN_EXE_redial");

pub struct Ran {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn from(out: Output) -> Ran {
        Ran {
            exit: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }

    /// A member of the JSON document, raw.
    pub fn get(&self, path: &[&str]) -> String {
        raw::get_path(&self.stdout, path)
            .unwrap_or_else(|| panic!("no {path:?} in {}\n{}", self.stdout, self.stderr))
            .to_owned()
    }

    /// The same, decoded.
    pub fn text(&self, path: &[&str]) -> String {
        let raw = self.get(path);
        raw::as_str(&raw).unwrap_or(raw)
    }

    /// The whole document. It is ours, so any JSON reader must do.
    pub fn doc(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.all()))
    }

    /// Everything that reached the terminal or a pipe.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Fails unless the exit status is this one and all of `words` were said.
    pub fn expect(&self, exit: i32, words: &[&str]) -> &Ran {
        let all = self.all();
        assert_eq!(self.exit, exit, "{all}");
        for w in words {
            assert!(all.contains(w), "{w:?} was not said in: {all}");
        }
        self
    }
}

thread_local! {
    /// A home that is nobody's. Each test runs in a thread of its own, and its home goes with it.
    static HOME: tempfile::TempDir = {
        let home = tempfile::Builder::new().prefix("home").tempdir().unwrap();
        // The search for a project's configuration ends here.
        std::fs::create_dir(home.path().join(".git")).unwrap();
        home
    };
}

/// The home of whatever this test starts.
pub fn home() -> PathBuf {
    HOME.with(|h| h.path().to_owned())
}

/// All that a program of these tests may know of the machine: what a person has configured, remembered or exported is
/// nothing to them.
pub fn environment() -> Vec<(&'static str, OsString)> {
    let passed = ["PATH", "TMPDIR", "TZ"].into_iter();
    let mut all: Vec<_> = passed.filter_map(|n| Some((n, std::env::var_os(n)?))).collect();
    all.push(("HOME", home().into()));
    all
}

/// Gives a program that environment and no other, in a folder where nothing is.
pub fn clean(c: &mut Command) -> &mut Command {
    c.env_clear().envs(environment()).current_dir(home())
}

/// `redial` as every test starts it.
pub fn program() -> Command {
    let mut c = Command::new(EXE);
    clean(&mut c);
    c
}

pub fn command(args: &[&str]) -> Command {
    let mut c = program();
    c.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c
}

/// Runs to the end.
pub fn redial(args: &[&str]) -> Ran {
    Ran::from(command(args).output().unwrap())
}

/// Runs to the end, started now: join it to see what it said.
pub fn redial_soon(args: &[&str]) -> std::thread::JoinHandle<Ran> {
    let child = command(args).spawn().unwrap();
    std::thread::spawn(move || Ran::from(child.wait_with_output().unwrap()))
}

/// What follows `--` to start `serve tickets` on this ledger.
pub fn tickets(ledger: &str) -> Vec<&str> {
    vec!["--", EXE, "serve", "tickets", "--ledger", ledger]
}

/// `a` and `b` as one list of arguments.
pub fn both<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<&'a str> {
    a.iter().chain(b).copied().collect()
}

/// Fails when `text` holds anything that a terminal could act on, or that changes how it is read: control
/// characters, C1 in both forms, bidi, zero width. Line feeds are the only ones that are ours.
pub fn assert_harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: no UTF-8: {e}"));
    let bad = text.chars().find(|&c| {
        (c.is_control() && c != '\n')
            || matches!(c as u32,
                0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0xFEFF | 0xE0000..=0xE007F)
    });
    assert_eq!(bad, None, "{what}: {text:?}");
}

/// A stdio server in sh that says exactly what its files say; see [`FakeStdio::new`].
pub struct FakeStdio {
    pub dir: tempfile::TempDir,
}

const SCRIPT: &str = r#"cd "$1" || exit 9
echo $$ >pid
[ -f stderr ] && cat stderr >&2
[ -f noise ] && cat noise
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed 's/^{"jsonrpc":"2.0","id":\([^,]*\),.*/\1/')
  case "$line" in
    *'"method":"initialize"'*) answer=initialize ;;
    *'"method":"tools/list"'*) answer=tools ;;
    *'"method":"tools/call"'*'"name":"find_request"'*) answer=look ;;
    *'"method":"tools/call"'*) printf '%s\n' "$line" >>calls; answer=call ;;
    *'"method":"server/discover"'*) answer=discover ;;
    *) continue ;;
  esac
  [ "$answer" = call ] && [ -f die ] && { cat die >&2; kill -9 $$; }
  [ -f "$answer" ] && sed "s/@ID@/$id/" "$answer"
done
[ -f stay ] && { trap '' TERM; while :; do sleep 1; done; }
"#;

impl FakeStdio {
    /// Files: `initialize`, `discover`, `tools`, `look`, `call` are the answers to those requests (`@ID@` stands for the
    /// id; no file: no answer), `stderr` and `noise` are said at the start, `die` before it kills itself at a call;
    /// with `stay` it outlives its stdin and SIGTERM.
    pub fn new() -> FakeStdio {
        let fake = FakeStdio { dir: tempfile::tempdir().unwrap() };
        fake.file("server.sh", SCRIPT);
        fake.file("discover", &error(-32601, "Method not found"));
        fake.file(
            "initialize",
            &result(r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}"#),
        );
        fake
    }

    pub fn file(&self, name: &str, text: &str) -> &FakeStdio {
        std::fs::write(self.dir.path().join(name), text.trim_end().to_owned() + "\n").unwrap();
        self
    }

    /// The raw array of its tools.
    pub fn tools(&self, array: &str) -> &FakeStdio {
        self.file("tools", &result(&format!(r#"{{"tools":{array}}}"#)))
    }

    /// What a tool's result says, as text.
    pub fn answers(&self, file: &str, text: &str) -> &FakeStdio {
        let text = raw::quote(text);
        self.file(file, &result(&format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its process, while it runs.
    pub fn pid(&self) -> Option<rustix::process::Pid> {
        let text = std::fs::read_to_string(self.path("pid")).ok()?;
        rustix::process::Pid::from_raw(text.trim().parse().ok()?)
    }

    /// How many `tools/call` came in, but for look-ups.
    pub fn calls(&self) -> usize {
        std::fs::read_to_string(self.path("calls")).map_or(0, |t| t.lines().count())
    }

    /// What follows `--` to start it.
    pub fn command(&self) -> Vec<String> {
        let dir = self.dir.path().to_str().unwrap();
        ["--", "sh", &format!("{dir}/server.sh"), dir].map(str::to_owned).to_vec()
    }

    /// Runs `redial ARGS -- this server`.
    pub fn run(&self, args: &[&str]) -> Ran {
        let server = self.command();
        let server: Vec<&str> = server.iter().map(String::as_str).collect();
        redial(&both(args, &server))
    }
}

/// A JSON-RPC answer with this result.
pub fn result(raw: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":@ID@,"result":{raw}}}"#)
}

/// A JSON-RPC answer with this error.
pub fn error(code: i32, message: &str) -> String {
    let message = raw::quote(message);
    format!(r#"{{"jsonrpc":"2.0","id":@ID@,"error":{{"code":{code},"message":{message}}}}}"#)
}

/// A tool that takes a request_id, with these hints (raw members).
pub fn tool(name: &str, hints: &str) -> String {
    format!(
        r#"{{"name":{},"inputSchema":{{"type":"object","properties":{{"request_id":{{"type":"string"}}}}}},"annotations":{{{hints}}}}}"#,
        raw::quote(name)
    )
}

/// Rows of the ledger's `tickets`.
pub fn count_tickets(ledger: &Path) -> usize {
    let db = rusqlite::Connection::open(ledger).unwrap();
    db.query_row("SELECT count(*) FROM tickets", [], |r| r.get::<_, i64>(0)).unwrap() as usize
}

/// Makes a ledger in the default form with these rows (SQL).
pub fn make_ledger(path: &Path, sql: &str) {
    let ddl = super::super::ledger_read::DDL;
    rusqlite::Connection::open(path).unwrap().execute_batch(&format!("{ddl} {sql}")).unwrap();
}
