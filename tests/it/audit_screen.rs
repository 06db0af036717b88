//! The audit on the screen, as a whole program in a real terminal: findings of an attached recording, live, and the
//! frames they are about marked in the time line.

use crate::support::pty::Pty;
use redial::journal::Kind;
use redial::journal::event::{Purpose, Transport};
use redial::record::entry::{self, Entry, Header, What};
use redial::time::Time;
use std::io::Write;
use std::path::Path;

const EXE: &str = env!("CARGO_BIN_EXE_redial");

/// A recording that grows as its server is used.
struct Growing {
    file: std::fs::File,
    seq: u64,
    generation: u32,
}

impl Growing {
    fn new(path: &Path) -> Growing {
        let mut file = std::fs::File::create(path).unwrap();
        file.write_all(entry::header(&Header { run: "x".into(), ..Header::default() }).as_bytes())
            .unwrap();
        Growing { file, seq: 0, generation: 0 }
    }

    fn put(&mut self, kind: Kind) {
        self.seq += 1;
        let at = Time(1_795_963_550_000_000 + self.seq as i64 * 1000);
        let e = Entry::new(self.seq, at, self.seq * 1000, self.generation, What::Event(kind));
        self.file.write_all(entry::line(&e).as_bytes()).unwrap();
    }

    fn starts(&mut self) {
        self.generation += 1;
        let transport = Transport::Stdio { command: vec!["server".into()], pid: Some(7) };
        self.put(Kind::Opened { transport });
    }

    fn call(&mut self, tool: &str, args: &str, result: &str) {
        let id = self.seq;
        let ask = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{args}}}}}"#
        );
        self.put(Kind::Sent { raw: ask.into(), exchange: None, purpose: Purpose::Asked });
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        self.put(Kind::Received { raw: answer.into(), exchange: None });
    }
}

#[test]
fn findings_appear_while_the_recording_grows_and_lead_to_their_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut r = Growing::new(&path);
    r.starts();
    r.call("create_basket", "{}", r#"{"content":[],"structuredContent":{"basket_id":"bsk_a1"}}"#);
    r.call("add_item", r#"{"basket_id":"bsk_a1"}"#, r#"{"content":[]}"#);
    let (config, state) = (folder.path().join("config"), folder.path().join("state"));
    let env = [
        ("XDG_CONFIG_HOME", config.to_str().unwrap()),
        ("XDG_STATE_HOME", state.to_str().unwrap()),
    ];
    let mut pty = Pty::start(
        Path::new(EXE),
        &["attach", "--recording", path.to_str().unwrap()],
        &env,
        (120, 36),
    );
    pty.wait_for("add_item");
    pty.send("A");
    pty.wait_for("Nothing found.");
    pty.wait_for("create_basket → basket_id");
    // The server is killed and started again: the basket is gone.
    r.put(Kind::Exit { code: None, signal: Some(9), left: redial::procs::Left::Nobody });
    r.starts();
    r.call(
        "add_item",
        r#"{"basket_id":"bsk_a1"}"#,
        r#"{"content":[{"type":"text","text":"unknown basket bsk_a1"}],"isError":true}"#,
    );
    pty.wait_for("lost handle");
    pty.wait_for("refused in life 2");
    pty.send("\r");
    pty.wait_for("1 finding (A)");
    // The marked frame is the selected one.
    pty.wait("the frame is marked", |s| {
        s.contents().lines().any(|l| l.contains("▸▲") && l.contains("add_item"))
    });
    pty.send("A");
    pty.wait_for("goes to its frame");
    pty.send("q");
    pty.wait("closed", |s| !s.contents().contains("goes to its frame"));
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}
