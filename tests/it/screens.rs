//! What the screen shows: the night ledger at four sizes in two themes (text and style runs), every
//! overlay, every empty pane; and that hostile text in any field never becomes bytes that a terminal obeys.

use crate::support::night;
use crate::support::svg::svg;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use redial::tui::{App, Seen, Theme, view};
use redial::words::next_step;
use std::fmt::Write;
use std::sync::Arc;

/// Draws `app` as the loop does.
pub fn draw(app: &App, theme: &str) -> Buffer {
    let theme = Theme::named(theme).unwrap();
    let mut terminal = Terminal::new(TestBackend::new(app.size.0, app.size.1)).unwrap();
    let mut seen = Seen::default();
    terminal.draw(|frame| view(app, &theme, &mut seen, frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    // `REDIAL_SHOTS=folder` writes pictures to look at.
    if let Some(folder) = std::env::var_os("REDIAL_SHOTS") {
        let name = std::thread::current().name().unwrap_or("shot").replace("::", "-");
        let file = (0..).map(|i| {
            std::path::Path::new(&folder)
                .join(format!("{name}-{i}-{}x{}.svg", app.size.0, app.size.1))
        });
        let file = { file }.find(|f| !f.exists()).unwrap();
        std::fs::write(file, svg(&buffer, true)).unwrap();
    }
    buffer
}

/// The text of a buffer, a line each.
pub fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += redial::text::width(symbol).max(1) as u16;
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Styled runs, a screen line each: `3: 1-11 yellow; 14-22 bold`.
fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut runs: Vec<(u16, u16, String)> = Vec::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let mut name = format!("{:?}", cell.modifier).to_lowercase();
            name = name.trim_start_matches("modifier(").trim_end_matches(')').replace("0x0", "");
            if cell.fg != ratatui::style::Color::Reset {
                name = format!("{} {name}", cell.fg).to_lowercase();
            }
            if cell.bg != ratatui::style::Color::Reset {
                name = format!("{name} on {}", cell.bg).to_lowercase();
            }
            let name = name.replacen(" none", "", 1).trim().to_owned();
            match runs.last_mut() {
                Some((_, end, last)) if *last == name => *end = x,
                _ => runs.push((x, x, name)),
            }
        }
        let said: Vec<String> = runs
            .iter()
            .filter(|(_, _, name)| name != "none")
            .map(|(a, b, name)| format!("{a}-{b} {name}"))
            .collect();
        if !said.is_empty() {
            let _ = writeln!(out, "{y}: {}", said.join("; "));
        }
    }
    out
}

/// Text and styles under one name. Local times of day are masked: the zone differs from machine to machine.
fn shot(name: &str, app: &App, theme: &str, with_styles: bool) {
    let buffer = draw(app, theme);
    let mut shown = text(&buffer);
    if with_styles {
        shown = format!("{shown}\n{}", styles(&buffer));
    }
    insta::with_settings!({ filters => vec![(r"(^| )\d\d:\d\d:\d\d", "${1}hh:mm:ss")], omit_expression => true }, {
        insta::assert_snapshot!(name, shown);
    });
}

#[test]
fn the_night_ledger_at_four_sizes_in_three_themes() {
    for (w, h) in [(200, 60), (120, 40), (80, 24), (60, 16)] {
        for theme in ["dark", "gruvbox", "mono"] {
            shot(&format!("night_{w}x{h}_{theme}"), &night::app((w, h)), theme, true);
        }
        // The others say the same; what they look like is looked at (`REDIAL_SHOTS`).
        let words = text(&draw(&night::app((w, h)), "dark"));
        for theme in ["light", "high-contrast", "catppuccin"] {
            assert_eq!(text(&draw(&night::app((w, h)), theme)), words, "{theme} at {w}x{h}");
        }
    }
}

#[test]
fn rows_with_one_id_are_told_apart_in_the_list() {
    let mut app = night::app((120, 40));
    let tells = vec![("tenant".to_owned(), "acme".to_owned())];
    let same = redial::ledger::Same { rows: 2, tells, ..Default::default() };
    let line = &mut app.requests.top[0];
    line.row.same = Some(Box::new(same));
    let wanted = format!("{} (tenant=acme)", line.row.request_id);
    let shown = text(&draw(&app, "dark"));
    assert!(shown.contains(&wanted), "{shown}");
}

#[test]
fn without_a_ledger_nothing_is_said_of_one() {
    let mut app = night::app((120, 60));
    app.start.ledger = false;
    let mut line = app.detail.as_ref().unwrap().line.clone();
    line.row = redial::ledger::Row { request_id: line.id().to_owned(), ..Default::default() };
    line.effects = None;
    app.detail.as_mut().unwrap().line = line;
    night::press(&mut app, "<tab>z");
    app.detail_scroll = usize::MAX;
    let shown = text(&draw(&app, "dark"));
    assert!(shown.contains("no ledger is attached") && !shown.contains("this ledger doesn't"));
    assert!(!shown.contains("none stored"), "{shown}");
}

#[test]
fn one_pane_at_a_time_when_small() {
    let mut app = night::app((60, 16));
    for pane in ["detail", "calls", "stderr"] {
        night::press(&mut app, "<tab>");
        shot(&format!("small_{pane}"), &app, "dark", false);
    }
    let mut app = night::app((80, 24));
    night::press(&mut app, "<tab><tab><tab>");
    shot("medium_stderr", &app, "dark", false);
}

#[test]
fn too_small_says_so() {
    let app = night::app((38, 9));
    assert!(text(&draw(&app, "dark")).starts_with("38x9 is too small: redial needs 44x10"));
}

#[test]
fn dialogs() {
    use redial::tui::data::Question;
    use redial::tui::{Msg, update};
    for (size, mark) in [((140, 40), ""), ((80, 24), "_80"), ((60, 16), "_60")] {
        let mut app = night::app(size);
        for question in [Question::Preview, Question::Ask, Question::Type, Question::Refused] {
            night::open_dialog(&mut app, question);
            if question == Question::Type {
                night::press(&mut app, "night-00");
            }
            shot(&format!("reissue_{question:?}{mark}").to_lowercase(), &app, "dark", false);
            night::press(&mut app, "<esc>");
        }
        night::open_dialog(&mut app, Question::Preview);
        night::press(&mut app, "<tab>");
        shot(&format!("reissue_editing{mark}"), &app, "dark", false);
        night::press(&mut app, "<tab><enter>");
        assert!(text(&draw(&app, "dark")).contains("Agreed. Everything is read once more"));
        let (sent, _) = night::calling("create_ticket", "night-007", 0.0);
        update(&mut app, Msg::Wire(Arc::new(sent)));
        shot(&format!("reissue_sending{mark}"), &app, "dark", false);
        update(&mut app, Msg::Wire(Arc::new(night::wire())));
        let report = Box::new(Ok(night::report()));
        update(&mut app, Msg::Reissued { request_id: "night-007".into(), report });
        shot(&format!("reissue_done{mark}"), &app, "dark", false);
        night::press(&mut app, "<esc>?");
        shot(&format!("help{mark}"), &app, "dark", false);
        night::press(&mut app, "<esc><esc>v");
        let counted = redial::tui::data::Counted::Found(Box::new(night::verified()));
        update(&mut app, Msg::Counted(counted));
        shot(&format!("verify{mark}"), &app, "dark", false);
    }
}

#[test]
fn quitting_with_calls_in_flight_names_them() {
    use redial::journal::LinkState;
    use redial::tui::{Msg, update};
    use std::sync::Arc;
    let mut app = night::app((80, 24));
    let (mut wire, _) = night::waiting();
    update(&mut app, Msg::Wire(Arc::new(wire.clone())));
    shot("pending_call", &app, "dark", false);
    assert!(night::press(&mut app, "q").is_empty());
    shot("quit", &app, "dark", false);
    // And the line of a server that is gone, and of one that is tried again.
    night::press(&mut app, "<esc>");
    let link = wire.link.as_mut().unwrap();
    link.state = LinkState::Waiting { until: night::morning().plus_seconds(2.2), attempt: 3 };
    link.why = "connection refused".into();
    update(&mut app, Msg::Wire(Arc::new(wire)));
    let shown = text(&draw(&app, "dark"));
    assert!(
        shown.contains("not connected: try 3 in 3 s · R tries now · connection refused"),
        "{shown}"
    );
    assert!(shown.contains("R reconnect"), "{shown}");
}

#[test]
fn empty_panes_say_what_would_fill_them() {
    use redial::tui::Start;
    use redial::tui::wire::Reach;
    let ledger_alone = Start { ledger: true, ..Start::default() };
    shot("ledger_alone", &night::app_with(ledger_alone, (140, 40)), "dark", false);
    let endpoint = Some(Reach::Http("http://127.0.0.1:8000/mcp".into()));
    let app =
        redial::tui::App::new(Start { endpoint, ..Start::default() }, night::morning(), (140, 40));
    shot("http_alone_before_anything", &app, "dark", false);
}

#[test]
fn calls_without_a_request_id_are_no_requests_and_are_said_to_stand_in_calls() {
    use redial::tui::wire::Reach;
    use redial::tui::{Msg, Start, update};
    use std::sync::Arc;
    let endpoint = Some(Reach::Http("http://127.0.0.1:8000/mcp".into()));
    let mut app =
        redial::tui::App::new(Start { endpoint, ..Start::default() }, night::morning(), (140, 40));
    let with = |nameless: bool, many: bool| {
        let mut wire = night::wire();
        wire.calls.truncate(if many { 2 } else { 1 });
        wire.calls_total = wire.calls.len();
        for call in wire.calls.iter_mut().filter(|_| nameless) {
            Arc::make_mut(call).request_id = None;
        }
        Msg::Wire(Arc::new(wire))
    };
    for (nameless, many, says) in [
        (true, true, "The 2 calls here carry no request_id and stand in calls."),
        (true, false, "The one call here carries no request_id and stands in calls."),
        (false, true, "and there are none."),
    ] {
        update(&mut app, with(nameless, many));
        let shown = text(&draw(&app, "dark"));
        assert!(shown.contains(says), "{shown}");
    }
}

/// Every kind of text that a terminal would obey or that would mislead a reader.
const HOSTILE: &str = "A\x1b]0;pwned\x07\x1b[31mB\x1b]52;c;cHduZWQ=\x1b\\C\u{9b}31mD\x07\x08\x7f\r\n\tE\u{202e}F\u{2066}G\u{200b}H\u{feff}I\u{e0041}J\u{2028}K\u{200d}L\u{ad}";

/// A request of which every witness says something hostile; judged as any other.
fn hostile_line() -> redial::tui::data::Line {
    use redial::judge::{Facts, LedgerView, OwnerView, Rules, Twin, judge_row};
    let h = || HOSTILE.to_owned();
    let now = night::morning();
    let mut row = night::request("night-006").line.row;
    let mut effect = row.effects.remove(0);
    (effect.key, effect.label) = (h(), h());
    effect.columns = vec![(h(), h())];
    (row.request_id, row.status, row.effects) = (h(), h(), vec![effect]);
    (row.owner, row.args_hash, row.result) = (Some(h()), Some(h()), Some(h()));
    let mut call = night::request("night-004").facts.calls.remove(0);
    (call.tool, call.args, call.request_id) = (h(), Some(h()), Some(h()));
    let settled = call.settled.as_mut().unwrap();
    (settled.why, settled.error) = (h(), Some(h()));
    let judged = judge_row(&row, &OwnerView::default(), Rules::default(), None, None, now);
    let line = redial::tui::data::Line::new(
        &Facts {
            request_id: h(),
            ledger: LedgerView::Read(now),
            twins: vec![Twin { request_id: h(), state: judged.state().clone() }],
            row: Some(row),
            judged: Some(judged),
            has_effects_table: true,
            calls: vec![call],
            ..Facts::default()
        },
        now,
    );
    let said: Vec<&str> = line.finding.evidence().iter().map(|e| e.text.as_str()).collect();
    assert!(said.iter().any(|t| t.contains(HOSTILE)), "{said:?}");
    assert!(
        line.label == HOSTILE && next_step(line.finding.next(), now).contains(HOSTILE),
        "{line:?}"
    );
    line
}

#[test]
fn hostile_text_in_any_field_never_reaches_the_terminal() {
    use ratatui::backend::CrosstermBackend;
    use ratatui::layout::Rect;
    use ratatui::{TerminalOptions, Viewport};
    use redial::journal::LinkState;
    use redial::tui::data::{Counted, Counts, DemoInfo, LookUp, Problem, Question, Verified};
    use redial::tui::wire::Reach;
    use redial::tui::{Msg, Start, update};
    use std::sync::Arc;
    ratatui::crossterm::style::force_color_output(true);

    let h = || HOSTILE.to_owned();
    let mut wire = night::wire();
    wire.reach = Reach::Stdio(h());
    wire.server = Some(h());
    wire.protocol = Some(h());
    wire.notes = vec![(night::NIGHT, h())];
    wire.asked_of_us = vec![(h(), 2)];
    let raw = bytes::Bytes::from_static(b"raw \xff\x9b31m \x1b]0;x\x07 \xe2\x80\xae");
    for g in &mut wire.generations {
        g.session = Some(h());
        g.noise = 3;
        g.last_noise = Some(raw.clone());
        g.stderr =
            vec![(night::NIGHT, raw.clone()), (night::NIGHT, bytes::Bytes::from(h()))].into();
    }
    wire.calls = wire
        .calls
        .iter()
        .map(|c| {
            let mut c = (**c).clone();
            (c.tool, c.why, c.answer, c.request_id) = (h(), h(), h(), Some(h()));
            Arc::new(c)
        })
        .collect();
    let mut pending = (*wire.calls[0]).clone();
    (pending.outcome, pending.settled_at) = (None, None);
    wire.calls.insert(0, Arc::new(pending));

    let line = hostile_line();

    let check = |bytes: &[u8], what: &str| {
        let text = std::str::from_utf8(bytes).expect("UTF-8 comes out");
        let mut rest = text;
        while let Some(at) = rest.find('\x1b') {
            // The backend's own: CSI, parameters, and a final that moves, clears, colours or shows the cursor.
            let own = rest[at + 1..].strip_prefix('[').and_then(|t| {
                t.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == '?'))
                    .map(|end| t.as_bytes()[end])
            });
            assert!(
                own.is_some_and(|f| b"HmJKhlABCD".contains(&f)),
                "{what}: {:?}",
                &rest[at..].chars().take(20).collect::<String>()
            );
            rest = &rest[at + 1..];
        }
        for c in text.chars() {
            let bad = (c.is_control() && c != '\x1b')
                || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
            assert!(!bad, "{what}: {c:?}");
        }
        assert!(
            !what.starts_with("main") || text.contains("^["),
            "{what}: shown, in its visible form"
        );
    };

    for size in [(200, 60), (140, 40), (80, 24), (60, 16)] {
        for screen in [
            "main",
            "<tab>",
            "<tab><tab>",
            "<tab><tab><tab>",
            "<tab><tab><tab><tab>",
            "x",
            "/",
            "?",
            "v",
            "r",
            "r<tab>",
            "r-type",
            "r-sent",
            "r-done",
            "r-fail",
            "q",
            "said",
            "dead",
            "?/",
            ":",
            "t",
            "L",
            "form",
            "json",
            "json-raw",
            "file",
        ] {
            let start = Start {
                ledger: true,
                endpoint: Some(Reach::Stdio(h())),
                demo: Some(DemoInfo { how: h() }),
                read_only: true,
                ..Start::default()
            };
            let mut app = App::new(start, night::morning(), size);
            let effects = update(&mut app, Msg::FactsChanged);
            for e in effects {
                if let redial::tui::Effect::LoadWindow(ask) = e {
                    let window = redial::tui::data::Window {
                        ask,
                        top: vec![line.clone()],
                        top_total: 1,
                        rows: vec![line.clone()],
                        tail: Vec::new(),
                        has_newer: false,
                        has_older: false,
                        matches: None,
                    };
                    update(&mut app, Msg::Requests(Box::new(window)));
                }
            }
            let mut detail = night::detail("night-005").unwrap();
            detail.line = line.clone();
            detail.hash_why = h();
            detail.history = vec![(night::NIGHT, h())];
            detail.looked_up = Some(LookUp {
                at: night::NIGHT,
                status: h(),
                answer: h(),
                agrees: redial::tui::data::Agrees::Unknown,
            });
            update(&mut app, Msg::Detail { request_id: h(), detail: Some(detail) });
            update(
                &mut app,
                Msg::Counts(Box::new(Counts {
                    headline: h(),
                    as_of: None,
                    trouble: Some(h()),
                    warnings: vec![h()],
                    remarks: vec![h()],
                })),
            );
            let mut w = wire.clone();
            if screen == "dead" {
                let link = w.link.as_mut().unwrap();
                (link.state, link.why) = (LinkState::Closed, h());
            }
            update(&mut app, Msg::Wire(Arc::new(w)));
            let send = |app: &mut App, keys: &str| drop(night::press(app, keys));
            match screen {
                "main" | "dead" => {}
                "?/" | ":" => {
                    send(&mut app, if screen == ":" { ":" } else { "?/" });
                    update(&mut app, Msg::Paste(h()));
                }
                "L" => {
                    send(&mut app, "f");
                    update(&mut app, Msg::LookedUp { request_id: h(), answer: Err(h()) });
                    send(&mut app, "L");
                }
                "form" => {
                    let quoted = serde_json::to_string(HOSTILE).unwrap();
                    let params = format!(
                        "{{\"message\":{quoted},\"requestedSchema\":{{\"properties\":{{{quoted}:{{\"type\":\"string\",\"title\":{quoted},\"default\":{quoted},\"enum\":[{quoted}]}}}}}}}}"
                    );
                    let form = redial::tui::form::Form::new(1, night::NIGHT, &params, Some(h()));
                    assert_eq!(form.fields[0].about, HOSTILE);
                    update(&mut app, Msg::Asked(Box::new(form)));
                }
                "json" | "json-raw" => {
                    // The characters as they are: invalid in JSON, and just what a hostile server sends.
                    let text = format!("{{\"{HOSTILE}\":[\"{HOSTILE}\",1]}}");
                    let document = redial::tui::tree::Document::new(h(), text);
                    app.pane = redial::tui::Pane::Detail;
                    send(&mut app, "J");
                    update(&mut app, Msg::Documents(vec![Arc::new(document)]));
                    send(&mut app, if screen == "json" { "/pwned<enter>" } else { "r" });
                }
                "file" => {
                    app.start.stderr_file = Some(h());
                    let lines = vec![(night::NIGHT, raw.clone()), (night::NIGHT, h().into())];
                    let tail = redial::tui::app::FileTail { lines, dropped: 1, remark: Some(h()) };
                    update(&mut app, Msg::StderrFile(Arc::new(tail)));
                    send(&mut app, "<shift-tab>");
                }
                "/" => {
                    send(&mut app, "/");
                    update(&mut app, Msg::Paste(h()));
                }
                "v" => {
                    send(&mut app, "v");
                    let p = Problem { kind: h(), error: true, detail: h(), request_ids: vec![h()] };
                    let problems = vec![p];
                    let requests = vec![(h(), 1)];
                    let v = Verified { sentence: h(), requests, problems, ..Verified::default() };
                    for sentence in [h(), "x".into(), h()] {
                        let v = Box::new(Verified { sentence, ..v.clone() });
                        update(&mut app, Msg::Counted(Counted::Found(v)));
                    }
                    update(&mut app, Msg::Counted(Counted::Failed(h())));
                }
                r if r.starts_with('r') => {
                    let effects = night::press(&mut app, "r");
                    let seq = match &effects[..] {
                        [redial::tui::Effect::Plan { seq, .. }] => *seq,
                        e => panic!("{e:?}"),
                    };
                    let mut plan = night::plan(
                        "night-007",
                        if r == "r-type" { Question::Type } else { Question::Preview },
                    );
                    plan.tool = h();
                    plan.args = h();
                    plan.source = h();
                    plan.check.situation = vec![h()];
                    plan.check.hash_why = h();
                    plan.check.gate.reasons = vec![h()];
                    plan.check.gate.word = h();
                    update(
                        &mut app,
                        Msg::Planned { request_id: h(), seq, plan: Ok(Box::new(plan)) },
                    );
                    if r == "r<tab>" {
                        send(&mut app, "<tab>");
                    }
                    if r.starts_with("r-") && r != "r-type" {
                        send(&mut app, "<enter>");
                    }
                    let mut report = night::report();
                    report.outcome = "unknown".into();
                    (report.why, report.answer, report.next, report.state_after) =
                        (h(), h(), h(), h());
                    report.answer_status = Some(h());
                    report.stderr = vec![h()];
                    let report = match r {
                        "r-done" => Some(Ok(report)),
                        "r-fail" => Some(Err(h())),
                        _ => None,
                    };
                    if let Some(report) = report {
                        update(
                            &mut app,
                            Msg::Reissued { request_id: h(), report: Box::new(report) },
                        );
                    }
                }
                "said" => {
                    update(&mut app, Msg::LookedUp { request_id: h(), answer: Err(h()) });
                }
                keys => send(&mut app, keys),
            }
            let mut out = Vec::new();
            let area = Rect::new(0, 0, size.0, size.1);
            let options = TerminalOptions { viewport: Viewport::Fixed(area) };
            let mut terminal =
                Terminal::with_options(CrosstermBackend::new(&mut out), options).unwrap();
            let theme = Theme::named("dark").unwrap();
            terminal.draw(|frame| view(&app, &theme, &mut Seen::default(), frame)).unwrap();
            drop(terminal);
            check(&out, &format!("{screen} at {}x{}", size.0, size.1));
        }
    }
}
