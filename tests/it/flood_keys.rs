//! Keys are answered while a server floods: notifications and stderr at 100,000 lines a minute each, a big answer on its
//! way, ten thousand tools. On a real terminal, from the written byte to the screen that answers it. Prints what it
//! measured (`--nocapture`); with `REDIAL=target/release/redial` it is that program, and the answer has 50 MB.

use crate::support::pty::Pty;
use crate::support::until;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the worst may take: it also has to bear what else runs on the machine.
const WORST: Duration = Duration::from_secs(3);

/// A server in sh: what it gets on two named pipes goes to its stdout and its stderr; `find_request` is answered with
/// $2 bytes, and ten thousand tools are listed.
const SERVER: &str = r#"cd "$1"
cat frames & cat lines >&2 &
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"find_request","annotations":{"readOnlyHint":true}}' "$id"
      awk 'BEGIN { for (i = 0; i < 10000; i++) printf ",{\"name\":\"tool-%d\",\"description\":\"d\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"request_id\":{\"type\":\"string\"}}}}", i; print "]}}" }' ;;
    *'"tools/call"'*) : >asked; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
      head -c "$2" /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
  esac
done
kill %1 %2"#;

/// 100,000 a minute, in pieces of 17.
fn flood(folder: &Path, pipe: &str, line: &str, stop: &AtomicBool) {
    let mut pipe = File::options().write(true).open(folder.join(pipe)).unwrap();
    let (began, mut n) = (Instant::now(), 0_u32);
    while !stop.load(Ordering::Relaxed) {
        if pipe.write_all(line.repeat(17).as_bytes()).is_err() {
            return;
        }
        n += 1;
        std::thread::sleep((Duration::from_millis(10) * n).saturating_sub(began.elapsed()));
    }
}

/// Opens and closes the help, and says how long each key took.
fn keys(pty: &mut Pty, times: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for n in 0..2 * times {
        let (key, there) = if n % 2 == 0 { ("?", true) } else { ("\x1b", false) };
        let began = Instant::now();
        pty.send(key);
        pty.wait("the key's answer", |s| s.contents().contains("anywhere on the screen") == there);
        took.push(began.elapsed());
    }
    took.sort();
    took
}

#[expect(clippy::print_stdout, reason = "the figure is what benches/ asks for")]
fn judge(what: &str, took: &[Duration]) {
    // Without it the build may be unoptimised, and the rest of the suite runs beside it.
    let most = Duration::from_millis(if std::env::var("REDIAL").is_ok() { 50 } else { 200 });
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{what}: median {median:?}, worst {worst:?} of {} keys", took.len());
    assert!(median < most && worst < WORST, "{what}: median {median:?}, worst {worst:?}");
}

#[test]
fn keys_are_answered_through_floods_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let db = rusqlite::Connection::open(path("ledger.db")).unwrap();
    db.execute_batch(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL);
         INSERT INTO requests VALUES('night-001', 'h1', 'done', '{}', 'a', 1795963550.0);",
    )
    .unwrap();
    drop(db);
    std::fs::write(path("server.sh"), SERVER).unwrap();
    for pipe in ["frames", "lines"] {
        assert!(std::process::Command::new("mkfifo").arg(path(pipe)).status().unwrap().success());
    }
    let ledger = path("ledger.db").display().to_string();
    let (script, here) = (path("server.sh").display().to_string(), folder.path().to_str().unwrap());
    let other = std::env::var("REDIAL").ok();
    let program = other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_redial"));
    // An unoptimised build takes seconds to read 50 MB.
    let bytes = if other.is_some() { "52428800" } else { "2097152" };
    let args = ["attach", "--era", "legacy", "--ledger", &ledger, "--", "sh", &script, here, bytes];
    let mut pty = Pty::start(Path::new(program), &args, &[], (120, 40));
    pty.wait_for("night-001");
    pty.wait_for("ready");
    let stop = AtomicBool::new(false);
    /// Ends the floods, also when an assertion failed.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _stopper = Stop(&stop);
        let frame = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"working on it\"}}\n";
        for (pipe, line) in [("frames", frame), ("lines", "INFO working on it\n")] {
            let (stop, folder) = (&stop, folder.path());
            scope.spawn(move || flood(folder, pipe, line, stop));
        }
        judge("under both floods", &keys(&mut pty, 20));
    });
    // The look-up is read-only, so it goes out at a key; its answer has 50 MB.
    pty.send("f");
    until("the look-up", || path("asked").exists().then_some(()));
    judge("while a big answer arrives", &keys(&mut pty, 10));
    pty.wait("the answer", |s| !s.contents().contains("1 pending"));
    judge("with the big answer there", &keys(&mut pty, 10));
    pty.send("q");
}
