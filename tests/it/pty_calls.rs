//! Calls from the screen against real servers, in a real terminal: one for a request_id that nobody knows yet, given up and
//! named when quitting; and everything that can be copied of one.

use crate::support::pty::Pty;
use crate::support::served::{Served, Transport};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const EXE: &str = env!("CARGO_BIN_EXE_redial");

fn start(folder: &Path, args: &[&str]) -> Pty {
    let (config, state) = (folder.join("config"), folder.join("state"));
    let env = [
        ("XDG_CONFIG_HOME", config.to_str().unwrap()),
        ("XDG_STATE_HOME", state.to_str().unwrap()),
    ];
    let pty = Pty::start(Path::new(EXE), args, &env, (140, 40));
    pty.wait_for("● ready");
    pty
}

/// Goes to a request_id that is typed and sends a first call of it, with the arguments as an agent's log has them.
fn send(pty: &mut Pty, id: &str) {
    pty.send("o");
    pty.wait_for("go to");
    pty.send(&format!("{id}\r"));
    pty.wait_for("not known");
    pty.send("r");
    pty.wait_for("paste or type them");
    pty.send("\x1b[200~{\"title\":\"停止\",\"body\":\"it's \\\"off\\\"\"}\x1b[201~");
    pty.wait_for("edited here");
    pty.send("\t");
    pty.wait_for(&format!("type {id} and Enter"));
    pty.answer(&format!("{id}\r"));
}

/// A call in flight: it reaches the server once `let_go` says so, however slow the machine is.
fn calling(folder: &Path) -> Pty {
    let (db, go) = (folder.join("ledger.db"), gate(folder));
    let server = format!(
        "while IFS= read -r line; do
           case $line in *create_ticket*) until [ -e '{}' ]; do sleep 0.05; done;; esac
           printf '%s\\n' \"$line\"
         done | {EXE} serve tickets --ledger '{}' --work-seconds 0",
        go.display(),
        db.display()
    );
    let args = ["attach", "--ledger", db.to_str().unwrap(), "--", "/bin/sh", "-c", &server];
    let mut pty = start(folder, &args);
    send(&mut pty, "new-1");
    pty.wait_for("Sent, waiting for the answer");
    pty.send("\x1b");
    pty.wait_for("x cancel call");
    pty
}

fn gate(folder: &Path) -> PathBuf {
    folder.join("go")
}

/// The server may do what it was asked.
fn let_go(folder: &Path) {
    fs::write(gate(folder), "").unwrap();
}

#[test]
fn a_call_is_given_up_and_named_when_quitting() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = calling(folder.path());
    // In flight: quitting would end it.
    pty.send("q");
    pty.wait_for("Quitting ends the server process");
    pty.wait_for("create_ticket new-1, sent ");
    pty.send("n");
    pty.wait_for("x cancel call");
    pty.send("x");
    pty.wait_for("Cancel it? y cancels, w stops waiting");
    pty.answer("w");
    pty.wait_for("an answer that comes is still taken");
    // Nobody waits for it any more, and it may still be going on.
    pty.wait_for("? unknown");
    pty.send("q");
    pty.wait_for("in the middle of:");
    pty.wait_for("create_ticket new-1");
    pty.wait_for("outcome unknown");
    // The whole frame: a key that follows Esc at once would be another key.
    pty.wait_for("esc stay");
    pty.send("\x1b");
    pty.wait_for("q quit");
    pty.send("L");
    pty.wait_for("sent by this run");
    pty.send("q");
    pty.wait_for("▌detail");
    pty.send("q");
    pty.wait_for("Quit? y quits");
    pty.answer("y");
    assert_eq!(pty.ended(), 0);
}

#[test]
fn an_answer_that_comes_late_stands_in_the_log_of_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = calling(folder.path());
    pty.send("x");
    pty.wait_for("Cancel it? y cancels, w stops waiting");
    pty.answer("w");
    pty.wait_for("an answer that comes is still taken");
    let_go(folder.path());
    pty.wait_for("1 request · 1 done");
    pty.send("L");
    pty.wait_for("stopped waiting for: create_ticket new-1");
    pty.wait_for("late answer to create_ticket new-1");
    pty.wait_for("ok: ");
    pty.send("q");
    pty.wait_for("▌detail");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}

#[test]
fn everything_that_can_be_copied_of_a_call_is_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("ledger's.db").display().to_string();
    let served = Served::start(Transport::Http, &["tickets", "--ledger", &db]);
    let url = format!("http://{}/mcp", served.address());
    let mut pty = start(folder.path(), &["attach", "--ledger", &db, "--http", &url]);
    pty.wait_for("ready, last heard at");
    send(&mut pty, "new-2");
    pty.wait_for("0 → 1 of this request");
    pty.send("\x1b");
    pty.wait_for("q quit");
    pty.wait_for("1 request · 1 done");
    let kept = folder.path().join("state/redial/copied.txt");
    let mut copy = |what: &str| {
        pty.send("y");
        pty.wait_for(" copy ");
        pty.send(&format!("{what}\r"));
        pty.wait_for(&format!("{what}: "));
        fs::read_to_string(&kept).unwrap()
    };
    assert_eq!(copy("request_id"), "new-2");
    let row: serde_json::Value = serde_json::from_str(&copy("the row as JSON")).unwrap();
    assert_eq!((row["state"].as_str(), row["request_id"].as_str()), (Some("done"), Some("new-2")));
    let frames = copy("the raw frames of its newest call");
    let lines: Vec<serde_json::Value> =
        frames.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((lines.len(), lines[0]["params"]["name"].as_str()), (2, Some("create_ticket")));
    assert_eq!(lines[0]["id"], lines[1]["id"]);
    let args = &lines[0]["params"]["arguments"];
    assert_eq!(
        (args["title"].as_str(), args["body"].as_str()),
        (Some("停止"), Some("it's \"off\""))
    );

    // A shell that runs the command gets the stored result, and makes no second ticket.
    let sh = |line: &str, path: &str| {
        let done = Command::new("/bin/sh").args(["-c", line]).env("PATH", path).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let command = copy("the redial command that repeats it");
    assert!(
        command.starts_with("redial reissue new-2 ")
            && command.contains(" --tool create_ticket --args "),
        "{command}"
    );
    let bin = Path::new(EXE).parent().unwrap().to_str().unwrap();
    // It holds nobody's yes: where nobody can be asked, nothing is sent.
    assert_eq!(sh(&format!("{command} --json"), bin).0, Some(3));
    let confirmed = command.replacen(" new-2 ", " new-2 --confirm new-2 ", 1);
    let (status, said) = sh(&format!("{confirmed} --json"), bin);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, said["replayed"].as_bool(), said["effects_after"].as_u64()),
        (Some(0), Some(true), Some(1))
    );

    // The shell takes the curl command apart as it was meant: the body is the frame, byte for byte.
    let curl = copy("its newest call as curl");
    let fake = folder.path().join("bin");
    fs::create_dir(&fake).unwrap();
    fs::write(fake.join("curl"), "#!/bin/sh\nfor a; do printf '%s\\0' \"$a\"; done\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(fake.join("curl"), mode).unwrap();
    let (_, words) = sh(&curl, &format!("{}:/bin:/usr/bin", fake.display()));
    let words: Vec<&str> = words.split('\0').collect();
    assert!(words.contains(&url.as_str()), "{words:?}");
    assert!(words.contains(&frames.lines().next().unwrap()), "{words:?}");
    let header = |name: &str| words.iter().any(|w| w.to_lowercase().starts_with(name));
    assert!(header("content-type: application/json") && header("accept: "), "{words:?}");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}
