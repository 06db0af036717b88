//! The two lines on top: the facts as one sentence; the endpoint's state and pairing; the permanent marks.

use super::cells::{self, Cells};
use crate::journal::LinkState;
use crate::journal::bounded::IDLE;
use crate::journal::generation::stopped_words;
use crate::judge::Pairing;
use crate::keys::action::{Action, Context};
use crate::text;
use crate::time::span;
use crate::tui::app::App;
use crate::tui::theme::Theme;
use crate::tui::wire::{Reach, WireView};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub fn draw(app: &App, theme: &Theme, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let marks = marks(app, theme);
    let marks_width: usize = marks.iter().map(|(m, _)| text::width(m) + 1).sum();
    let facts = facts(app);
    let facts_width: usize = text::width(&text::visible(&facts)) + 2;
    // The marks stand where they take nothing from the facts.
    let above = facts_width + marks_width <= width;
    for (i, y) in (area.top()..area.bottom()).enumerate() {
        let own = (i == 0) == above;
        let mut row = Cells::new(width.saturating_sub(if own { marks_width } else { 0 }));
        row.gap(1);
        match i {
            0 => sentence(&facts, app, theme, &mut row),
            _ => endpoint(app, theme, &mut row),
        }
        if own {
            row.fill(" ", theme.text);
            let mut line = row.line();
            for (mark, style) in &marks {
                line.push_span(ratatui::text::Span::styled(mark.clone(), *style));
                line.push_span(" ");
            }
            cells::line(line, Rect { y, height: 1, ..area }, frame);
        } else {
            cells::line(row.line(), Rect { y, height: 1, ..area }, frame);
        }
    }
}

fn marks(app: &App, theme: &Theme) -> Vec<(String, Style)> {
    let mut marks = Vec::new();
    if app.start.read_only {
        marks.push((" READ-ONLY ".into(), theme.read_only.style()));
    }
    if app.start.demo.is_some() {
        marks.push((" DEMO ".into(), theme.demo.style()));
    }
    marks
}

fn facts(app: &App) -> String {
    match &app.counts {
        Some(c) => match &c.trouble {
            Some(why) => {
                // Since when first: the end is cut on a narrow screen.
                match (c.as_of, c.headline.as_str()) {
                    (Some(t), facts) => {
                        let age = span(t.age_at(app.now).max(0.0));
                        format!("as of {}, {age} ago: {why} · {facts}", t.clock())
                    }
                    _ => why.clone(),
                }
            }
            None => c.headline.clone(),
        },
        None if app.start.ledger => reading(app),
        None => {
            let calls = app.wire.as_ref().map_or(0, |w| w.calls_total);
            let s = if calls == 1 { "" } else { "s" };
            let on = match (&app.start.recording, &app.start.endpoint) {
                (Some(_), None) => "in this recording",
                (Some(_), Some(_)) => "here and in the recording",
                (None, _) => "on this endpoint",
            };
            format!("no ledger attached · {calls} call{s} {on}")
        }
    }
}

/// How far the first pass is. It looks at rows, hashes and effects: three times over, more or less.
fn reading(app: &App) -> String {
    let newest = app.requests.rows.first().map_or(0, |l| l.row.rowid);
    match (app.reading, newest) {
        (Some(seen), 1..) => {
            let percent = seen as f64 * 100.0 / (3.0 * newest as f64);
            format!("reading the ledger… {}", super::calls::progress(percent.min(99.0)))
        }
        _ => "reading the ledger…".into(),
    }
}

/// The sentence, its parts coloured by what they count.
fn sentence(facts: &str, app: &App, theme: &Theme, row: &mut Cells) {
    let trouble = app.counts.as_ref().is_some_and(|c| c.trouble.is_some());
    for (i, part) in facts.split(" · ").enumerate() {
        if i > 0 {
            row.put(" · ", theme.dim);
        }
        let style = if trouble && i == 0 {
            theme.error
        } else {
            match part.split_once(' ').map(|(_, word)| word) {
                Some("done") => theme.ok,
                Some("running") => theme.info,
                Some(w) if w.starts_with("abandoned") || w.starts_with("suspect") => theme.warn,
                Some(w) if w.starts_with("duplicate") || w.starts_with("failed") => theme.error,
                _ => theme.strong,
            }
        };
        row.put(part, style);
    }
}

/// Worst and most wanted first, since the end is cut on a narrow screen.
fn endpoint(app: &App, theme: &Theme, row: &mut Cells) {
    let Some(reach) = &app.start.endpoint else {
        if let Some(file) = &app.start.recording {
            return recording(app, file, theme, row);
        }
        row.put("○ no endpoint attached", theme.dim);
        row.put(": the ledger alone is read; nothing can be sent", theme.dim);
        return;
    };
    let wire = app.wire.as_deref();
    let (glyph, words, look) = link(app, wire);
    let style = look_of(theme, look);
    row.put(&format!("{glyph} {words}"), style);
    if app.start.ledger {
        row.put(" · ", theme.dim);
        let (words, style) = match app.paired.pairing {
            Pairing::Unproven => {
                let f = app.keymap.word(Context::Main, Action::Find);
                (format!("pairing unproven: {f} on a known row proves it"), theme.dim)
            }
            Pairing::Consistent => ("pairing consistent".into(), theme.ok),
            Pairing::Proven => ("pairing proven".into(), theme.ok),
            Pairing::Contradicted => ("pairing contradicted: another ledger".into(), theme.error),
        };
        row.put(&words, style);
    }
    if let Some(wire) = wire {
        let mut more = Vec::new();
        if let Some(g) = wire.own_generation() {
            more.push(format!("generation {}", g.n));
            if let (Some(pid), None) = (g.pid, g.ended) {
                more.push(format!("pid {pid}"));
            }
        }
        more.extend(wire.server.clone());
        more.extend(wire.protocol.clone());
        for part in more {
            row.put(&format!(" · {part}"), theme.dim);
        }
    }
    let (Reach::Stdio(at) | Reach::Http(at) | Reach::Recording(at)) = reach;
    row.put(&format!(" · {at}"), theme.dim);
}

/// Only the agent's session is attached: what it is, and how its server ended.
fn recording(app: &App, file: &str, theme: &Theme, row: &mut Cells) {
    let name = file.rsplit('/').next().unwrap_or(file);
    row.put("○ the agent's session in ", theme.dim);
    row.put(name, theme.strong);
    let Some(wire) = app.wire.as_deref() else { return };
    if let Some(g) = wire.generations.last() {
        match (&g.ended, &g.death) {
            (Some(e), Some(death)) => {
                let good = e.code == Some(0) && death == IDLE;
                row.put(" · ", theme.dim);
                let style = if good { theme.dim } else { theme.error };
                row.put(&format!("its server ended: {}, {death}", e.how()), style);
            }
            _ => row.put(" · its server's end isn't in it (yet)", theme.dim),
        }
    }
    row.put(" · nothing can be sent", theme.dim);
}

#[derive(Clone, Copy)]
enum Look {
    Good,
    Moving,
    Bad,
    Off,
}

fn look_of(theme: &Theme, look: Look) -> Style {
    match look {
        Look::Good => theme.ok,
        Look::Moving => theme.info,
        Look::Bad => theme.error,
        Look::Off => theme.dim,
    }
    .style()
}

fn link(app: &App, wire: Option<&WireView>) -> (&'static str, String, Look) {
    let Some(link) = wire.and_then(|w| w.link.as_ref()) else {
        return ("◌", "starting".into(), Look::Moving);
    };
    let r = app.keymap.word(Context::Main, Action::Reconnect);
    let stopped = wire.and_then(|w| w.own_generation()).and_then(|g| g.stopped.as_ref());
    if let (LinkState::Ready | LinkState::Connecting, Some(who)) = (&link.state, stopped) {
        return ("!", stopped_words(who), Look::Bad);
    }
    match link.state {
        // Over HTTP nothing tells that a server has died until something is sent.
        LinkState::Ready => match wire.and_then(|w| w.heard_at) {
            Some(at) if matches!(app.start.endpoint, Some(Reach::Http(_))) => {
                ("●", format!("ready, last heard at {}", at.clock()), Look::Good)
            }
            _ => ("●", "ready".into(), Look::Good),
        },
        LinkState::Connecting => ("◌", "connecting".into(), Look::Moving),
        LinkState::Waiting { until, attempt } => {
            let left = (-until.age_at(app.now)).max(0.0).ceil();
            let again = format!("try {attempt} in {left:.0} s · {r} tries now · {}", link.why);
            ("◌", format!("not connected: {again}"), Look::Bad)
        }
        LinkState::Dead => {
            let ended =
                wire.and_then(|w| w.own_generation()).and_then(|g| Some((g.ended?, &g.left)));
            // A time and no age: nothing ticks on a screen on which nothing moves.
            let at = link.since.clock();
            let how = match ended {
                // What redial started may have been a launcher.
                Some((e, left)) if e.gone_at.is_none() => e.sentence(left),
                Some((e, _)) => format!("server ended: {}", e.how()),
                None => format!("server ended: {}", link.why),
            };
            ("✗", format!("{how}, at {at} · {r} starts it again"), Look::Bad)
        }
        LinkState::Closed => ("○", format!("closed: {} · {r} connects", link.why), Look::Off),
    }
}
