//! What the screen shows: the night ledger at three sizes in two themes (text and style runs), every
//! overlay, every empty pane; and that hostile text in any field never becomes bytes that a terminal obeys.

use crate::support::night;
use crate::support::svg::svg;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use redial::tui::{App, Seen, Theme, view};
use std::fmt::Write;

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
            let name = name.trim().to_owned();
            match runs.last_mut() {
                Some((_, end, last)) if *last == name => *end = x,
                _ => runs.push((x, x, name)),
            }
        }
        let said: Vec<String> = runs
            .iter()
            .filter(|(_, _, name)| !name.is_empty())
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
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d:\d\d ", "hh:mm:ss ")], omit_expression => true }, {
        insta::assert_snapshot!(name, shown);
    });
}

#[test]
fn the_night_ledger_at_three_sizes_in_two_themes() {
    for (w, h) in [(140, 40), (80, 24), (60, 16)] {
        for theme in ["dark", "mono"] {
            shot(&format!("night_{w}x{h}_{theme}"), &night::app((w, h)), theme, true);
        }
    }
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
