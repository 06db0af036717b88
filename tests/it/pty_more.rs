//! The screen as a whole program in a real terminal: stopped and continued, the mouse, configuration and memory, copying, a
//! followed log, a server's question, a million rows.

use crate::support::pty::Pty;
use crate::support::shell;
use crate::support::until;
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXE: &str = env!("CARGO_BIN_EXE_redial");

/// A ledger of its own, with what the night left behind.
fn ledger(folder: &Path) -> PathBuf {
    let path = folder.join("ledger.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL);
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT UNIQUE, title TEXT, body TEXT);
         INSERT INTO requests VALUES('night-001', 'h1', 'done', '{\"ticket_id\":\"T-1\"}', 'a', 1795963550.0),
            ('night-002', 'h2', 'running', NULL, 'a', 1795963551.0), ('night-003', 'h3', 'done', NULL, 'b', 1795963560.0);
         INSERT INTO tickets VALUES('T-1', 'night-001', '障害報告', ''), ('T-3', 'night-003', 'Rotate the key', '');",
    )
    .unwrap();
    path
}

fn attach(folder: &Path, more: &[&str], size: (u16, u16)) -> Pty {
    let path = ledger(folder).display().to_string();
    let (config, state) = (folder.join("config"), folder.join("state"));
    let env = [
        ("XDG_CONFIG_HOME", config.to_str().unwrap()),
        ("XDG_STATE_HOME", state.to_str().unwrap()),
        ("COLORTERM", "truecolor"),
    ];
    let args = [&["attach", "--ledger", &path], more].concat();
    Pty::start(Path::new(EXE), &args, &env, size)
}

fn again(folder: &Path, size: (u16, u16)) -> Pty {
    fs::remove_file(folder.join("ledger.db")).unwrap();
    attach(folder, &[], size)
}

/// The letter of the process's state.
fn state(pty: &Pty) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pty.pid())).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?')
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_z_gives_the_terminal_back_and_going_on_takes_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = attach(folder.path(), &[], (100, 30));
    pty.wait_for("night-002");
    for by_key in [true, false] {
        match by_key {
            true => pty.send("\x1a"),
            // Another process stops the job, as a shell does.
            false => pty.signal(Signal::TSTP),
        }
        until("stopped", || (state(&pty) == 'T').then_some(()));
        pty.wait("given back", |s| {
            !s.alternate_screen() && !s.hide_cursor() && !s.bracketed_paste()
        });
        assert!(pty.screen(|s| s.mouse_protocol_mode() == vt100::MouseProtocolMode::None));
        pty.signal(Signal::CONT);
        pty.wait("taken again, and drawn", |s| {
            s.alternate_screen() && s.bracketed_paste() && s.contents().contains("night-002")
        });
        pty.send("?");
        pty.wait_for("anywhere on the screen");
        pty.send("q");
        pty.wait_for("q quit");
    }
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}

#[test]
fn the_mouse_is_on_selects_and_can_be_switched_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = attach(folder.path(), &[], (100, 30));
    pty.wait_for("night-001");
    pty.wait("asked for", |s| s.mouse_protocol_mode() == vt100::MouseProtocolMode::PressRelease);
    let row = pty.screen(|s| {
        (0..30).find(|y| s.contents_between(*y, 0, *y, 30).contains("night-001")).unwrap()
    });
    pty.send(&format!("\x1b[<0;20;{}M\x1b[<0;20;{}m", row + 1, row + 1));
    pty.wait_for("▸✓ done       night-001");
    pty.send("m");
    pty.wait("off", |s| s.mouse_protocol_mode() == vt100::MouseProtocolMode::None);
}

#[test]
fn what_is_configured_holds_and_what_was_set_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config/redial");
    fs::create_dir_all(config.join("themes")).unwrap();
    fs::write(config.join("config.toml"), "mouse = false\n[keys.main]\nhelp = [\"f1\"]\n").unwrap();
    let own = "inherits = \"gruvbox\"\ntext = { fg = \"#ffffff\", bg = \"#000080\" }\n";
    fs::write(config.join("themes/night.toml"), own).unwrap();
    let mut pty = attach(folder.path(), &[], (120, 36));
    pty.wait_for("f1 help");
    pty.send("tnight\r");
    let blue = vt100::Color::Rgb(0, 0, 0x80);
    let is_blue = move |s: &vt100::Screen| s.cell(20, 60).is_some_and(|c| c.bgcolor() == blue);
    pty.wait("the chosen theme", is_blue);
    pty.send("ss>>/障害\r");
    pty.wait_for("1 of 3");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
    let mut pty = again(folder.path(), (120, 36));
    pty.wait("theme, order, filter", |s| {
        let text = s.contents();
        is_blue(s) && text.contains("by request_id") && text.contains("filter: 障害")
    });
    pty.send("q");
    assert_eq!(pty.ended(), 0);
    // A file's word on the theme beats what was remembered; NO_COLOR beats the file.
    fs::write(config.join("config.toml"), "theme = \"dark\"\n").unwrap();
    let pty = again(folder.path(), (120, 36));
    pty.wait_for("filter: 障害");
    assert!(!pty.screen(is_blue));
}

#[test]
fn a_wrong_configuration_ends_with_its_name_and_the_right_key() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config/redial");
    fs::create_dir_all(&config).unwrap();
    for (text, says) in [
        ("them = \"dark\"", "did you mean theme?"),
        ("theme = \"drak\"", "did you mean dark?"),
        ("[keys.main]\nfind = [\"r\"]", "r would mean two things"),
    ] {
        fs::write(config.join("config.toml"), text).unwrap();
        let path = folder.path().join("ledger.db");
        fs::remove_file(&path).ok();
        let mut pty = attach(folder.path(), &[], (160, 30));
        assert_eq!(pty.ended(), 2, "{text}");
        pty.drained();
        assert!(pty.text().contains(says), "{}", pty.text());
    }
}

#[test]
fn what_is_copied_reaches_the_clipboard_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = attach(folder.path(), &[], (120, 36));
    pty.wait_for("night-002");
    pty.send("y\r");
    pty.wait_for("9 bytes to the terminal's clipboard");
    let bytes = String::from_utf8_lossy(&pty.bytes()).into_owned();
    // base64 of `night-002`
    assert!(bytes.contains("\x1b]52;c;bmlnaHQtMDAy"), "{bytes:?}");
    let kept = folder.path().join("state/redial/copied.txt");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "night-002");
    pty.send("yrow\r");
    // The list to choose from says the name as well; only what came of it has the colon.
    pty.wait_for("the row as JSON: ");
    let row = fs::read_to_string(kept).unwrap();
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!(
        (row["request_id"].as_str(), row["status"].as_str()),
        (Some("night-002"), Some("running"))
    );
    pty.send("ycommand\r");
    pty.wait_for("can't be copied: no endpoint is attached");
}

#[test]
fn a_log_is_followed_as_stderr_through_its_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("server.log");
    let mut pty = attach(folder.path(), &["--stderr-file", log.to_str().unwrap()], (140, 40));
    pty.wait_for("Nothing in this file so far");
    let mut file = fs::File::create(&log).unwrap();
    writeln!(file, "2026-11-29T03:00:01Z boot \x1b]0;pwned\x07").unwrap();
    pty.wait_for("boot ^[]0;pwned^G");
    fs::rename(&log, folder.path().join("server.log.1")).unwrap();
    fs::write(&log, "after the rotation\n").unwrap();
    pty.wait_for("after the rotation");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}

/// A server that asks a person before it answers.
const ASKING: &str = r#"printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Charge the card?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}}}\n'; read -r said; case "$said" in *'"sure":true'*) text='yes';; *) text='no';; esac; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$text""#;

#[test]
fn a_servers_question_is_answered_by_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let look_up = r#""name":"find_request","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}"#;
    let script = shell::script("", ASKING).replace(r#""name":"t""#, look_up);
    let more = ["--era", "legacy", "--", "sh", "-c", &script];
    let mut pty = attach(folder.path(), &more, (140, 40));
    pty.wait_for("● ready");
    pty.send("f");
    pty.wait_for("Charge the card?");
    pty.answer("y");
    pty.answer("\r");
    pty.wait_for("an answer was sent");
    pty.send("\t\t");
    pty.wait_for(" s · yes");
}

#[test]
fn a_million_rows_open_at_their_newest_and_are_walked_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = {
        let path = ledger(folder.path());
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
             INSERT INTO requests SELECT 'r' || i, 'x' || i, 'done', '{}', 'b', 1795963560.0 + i FROM n;",
        )
        .unwrap();
        let path = path.display().to_string();
        Pty::start(Path::new(EXE), &["attach", "--ledger", &path], &[], (120, 40))
    };
    pty.wait_for("r1000000");
    pty.send("G");
    pty.wait_for("night-001");
    pty.send("g");
    pty.wait_for("r1000000");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_was_stopped_is_told_as_that_in_the_head_and_by_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut pty = attach(folder.path(), &["--", "/bin/sh", "-c", "kill -STOP $$"], (140, 30));
    pty.wait_for("! the server is stopped: pid ");
    pty.send("q");
    pty.ended();
    let mut pty = Pty::start(
        Path::new(EXE),
        &["tools", "--start-timeout", "3", "--", "/bin/sh", "-c", "kill -STOP $$"],
        &[],
        (100, 30),
    );
    pty.wait("told before the limit", |s| {
        s.contents().contains("redial: the server is stopped: pid ")
            && !s.contents().contains("handshake")
    });
    assert_eq!(pty.ended(), 5);
}
