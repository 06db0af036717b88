//! Boxes of lines over the screen: made, placed, emptied, scrolled.

use super::Ui;
use super::cells::{self, Cells};
use crate::text;
use crate::tui::app::Hit;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};

/// Lines of a box in the making.
pub struct Body {
    pub width: usize,
    pub lines: Vec<Line<'static>>,
}

impl Body {
    pub fn new(width: usize) -> Body {
        Body { width, lines: Vec::new() }
    }
    pub fn text(&mut self, text: &str, style: impl Into<Style>) {
        let style = style.into();
        for line in text::wrap(&text::visible(text), self.width, 60) {
            self.lines.push(Line::styled(line, style));
        }
    }
    pub fn blank(&mut self) {
        self.lines.push(Line::default());
    }
    /// A label and a wrapped text beside it.
    pub fn pair(
        &mut self,
        label: &str,
        label_style: impl Into<Style>,
        text: &str,
        style: impl Into<Style>,
    ) {
        const LABEL: usize = 11;
        let (label_style, style) = (label_style.into(), style.into());
        let wide = self.width.saturating_sub(LABEL + 1);
        for (i, line) in text::wrap(&text::visible(text), wide, 60).into_iter().enumerate() {
            let mut row = Cells::new(self.width);
            row.cell(if i == 0 { label } else { "" }, LABEL, label_style);
            row.gap(1);
            row.put(&line, style);
            self.lines.push(row.line());
        }
    }
}

/// The width that texts in a box of the screen `area` get.
pub fn inner_width(area: Rect, want: u16) -> usize {
    usize::from(want.min(area.width.saturating_sub(2)).saturating_sub(4))
}

/// Draws a box with `title` for `height` lines in the middle of `area`; returns the place for them.
pub fn frame_box(
    ui: &mut Ui,
    title: &str,
    width: usize,
    height: usize,
    area: Rect,
    frame: &mut Frame,
) -> Rect {
    let h = u16::try_from(height + 2).unwrap_or(u16::MAX).min(area.height);
    let w = (width as u16 + 4).min(area.width);
    let place = Rect::new(area.x + (area.width - w) / 2, area.y + (area.height - h) / 2, w, h);
    clear(place, ui.theme.text.style(), frame);
    // What lies under the box isn't clicked through it.
    ui.seen.hits.retain(|(_, hit)| matches!(hit, Hit::Key(_)));
    let title =
        format!(" {} ", text::truncate(&text::visible(title), width.saturating_sub(2), "…"));
    let block = Block::bordered()
        .border_style(ui.theme.title_focus)
        .title(Line::styled(title, ui.theme.title_focus));
    let inner = block.inner(place);
    block.render(place, frame.buffer_mut());
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// Empties a place and a column on either side of it; a wide character that it would cut in two goes whole.
fn clear(place: Rect, ground: Style, frame: &mut Frame) {
    let screen = frame.area();
    let left = place.x.saturating_sub(1).max(screen.x);
    let right = (place.right() + 1).min(screen.right());
    let buffer = frame.buffer_mut();
    for y in place.top()..place.bottom() {
        if left > screen.x && text::width(buffer[(left - 1, y)].symbol()) > 1 {
            buffer[(left - 1, y)].reset();
            buffer[(left - 1, y)].set_style(ground);
        }
    }
    let area = Rect { x: left, width: right - left, ..place };
    Clear.render(area, buffer);
    buffer.set_style(area, ground);
}

/// Draws `lines` from `scroll` on; tells how far it can be scrolled.
pub fn draw_lines(
    ui: &mut Ui,
    lines: Vec<Line<'static>>,
    scroll: usize,
    area: Rect,
    frame: &mut Frame,
) {
    let height = usize::from(area.height);
    ui.seen.overlay_most = lines.len().saturating_sub(height);
    let first = scroll.min(ui.seen.overlay_most);
    let more = lines.len().saturating_sub(first + height);
    for (line, y) in lines.into_iter().skip(first).zip(area.top()..area.bottom()) {
        cells::line(line, Rect { y, height: 1, ..area }, frame);
    }
    if more > 0 {
        let says = format!(" {more} more ↓ ");
        let w = (text::width(&says) as u16).min(area.width);
        let place = Rect { x: area.right() - w, y: area.bottom(), width: w, height: 1 };
        cells::line(Line::styled(says, ui.theme.dim), place, frame);
    }
}

/// The line above a view that fills the screen, with a note beside its name; returns what is below it.
pub fn title(ui: &Ui, name: &str, note: &str, focus: bool, area: Rect, frame: &mut Frame) -> Rect {
    let t = ui.theme;
    let mut row = Cells::new(usize::from(area.width));
    row.put(if focus { "▌" } else { "─" }, if focus { t.title_focus } else { t.rule });
    row.put(name, if focus { t.title_focus } else { t.title });
    row.put("  ", t.rule);
    row.put(note, t.dim);
    row.put(" ", t.rule);
    row.fill("─", t.rule);
    cells::line(row.line(), Rect { height: 1, ..area }, frame);
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}

/// A box that is only read.
pub fn reading(ui: &mut Ui, title: &str, body: Body, scroll: usize, area: Rect, frame: &mut Frame) {
    let place = frame_box(ui, title, body.width, body.lines.len(), area, frame);
    draw_lines(ui, body.lines, scroll, place, frame);
}
