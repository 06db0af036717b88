//! The two lines at the bottom: what was just said, else the selected request's next step; and the keys
//! that work now, from the action table.

use super::Ui;
use super::cells::{self, Cells};
use crate::filter::Mistake;
use crate::keys::action::Entry;
use crate::text;
use crate::tui::app::{App, Hit, Overlay, Tone};
use crate::tui::theme::Theme;
use crate::words::next_step;
use ratatui::Frame;
use ratatui::layout::Rect;

pub fn said(app: &App, theme: &Theme, area: Rect, frame: &mut Frame) {
    let mut row = Cells::new(usize::from(area.width));
    row.gap(1);
    if let Some(wrong) = &app.requests.mistake {
        mistake(&app.requests.filter, wrong, theme, &mut row);
    } else if let Some((tone, text)) = &app.said {
        let style = match tone {
            Tone::Plain => theme.text,
            Tone::Good => theme.ok,
            Tone::Bad => theme.error,
        };
        row.put(text, style);
    } else if let Some(line) =
        app.requests.line().filter(|_| !matches!(app.overlay, Some(Overlay::Timeline)))
    {
        row.put("→ ", theme.key);
        if let Some(step) = app.next_step().filter(|_| app.is_main()) {
            row.put(&format!("{} ", app.keymap.key_of(step)), theme.key);
        }
        row.put(&format!("{}: ", line.id()), theme.dim);
        row.put(&next_step(&line.finding.next, app.now), theme.strong);
    } else if let Some(demo) = &app.start.demo {
        row.put(&demo.how, theme.dim);
    }
    cells::line(row.line(), area, frame);
}

/// The filter with the wrong part marked, and what is wrong with it.
fn mistake(filter: &str, wrong: &Mistake, theme: &Theme, row: &mut Cells) {
    let part = |r: std::ops::Range<usize>| filter.get(r).unwrap_or_default();
    row.put("filter: ", theme.dim);
    row.put(part(0..wrong.at.start), theme.text);
    row.put(&format!("▸{}◂", part(wrong.at.clone())), theme.error);
    row.put(filter.get(wrong.at.end..).unwrap_or_default(), theme.text);
    row.put(&format!(" {}", wrong.why), theme.warn);
}

pub fn footer(ui: &mut Ui, area: Rect, frame: &mut Frame) {
    let (app, theme) = (ui.app, ui.theme);
    let entries: Vec<(String, &Entry)> = app
        .footer()
        .into_iter()
        .map(|e| (app.keymap.shown(e), e))
        .filter(|(key, _)| !key.is_empty())
        .collect();
    let width_of = |(key, e): &(String, &Entry)| text::width(key) + text::width(e.name) + 3;
    // The last two (help and quit, or the way out of a dialog) always have a place.
    let width = usize::from(area.width);
    let tail = entries.len().saturating_sub(2);
    let mut left = width.saturating_sub(1 + entries[tail..].iter().map(width_of).sum::<usize>());
    let mut row = Cells::new(width);
    row.gap(1);
    let mut x = area.x + 1;
    for (i, entry) in entries.iter().enumerate() {
        let wide = width_of(entry);
        if i < tail {
            if wide > left {
                continue;
            }
            left -= wide;
        }
        let (key, e) = entry;
        row.put(key, theme.key);
        row.gap(1);
        row.put(e.name, theme.dim);
        row.gap(2);
        let place = Rect::new(x, area.y, wide as u16 - 2, 1).intersection(area);
        ui.seen.hits.push((place, Hit::Key(e.action)));
        x += wide as u16;
    }
    cells::line(row.line(), area, frame);
}
