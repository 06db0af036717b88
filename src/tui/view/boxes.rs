//! Boxes of lines over the screen: made, placed, emptied, scrolled.

use super::Ui;
use super::cells::{self, Cells};
use crate::keys::action::{Action, Context};
use crate::text;
use crate::tui::app::Hit;
use crate::tui::through::Part;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};

/// Characters of a text of others that a question holds; what is longer is not answered.
const LONGEST: usize = 16_384;

/// Lines of a box in the making.
pub struct Body {
    pub width: usize,
    pub lines: Vec<Line<'static>>,
    /// Some text was too long for it.
    pub beyond: bool,
}

impl Body {
    pub fn new(width: usize) -> Body {
        Body { width, lines: Vec::new(), beyond: false }
    }
    pub fn text(&mut self, text: &str, style: impl Into<Style>) {
        let style = style.into();
        for line in text::wrap(&text::visible(text), self.width, 60) {
            self.lines.push(Line::styled(line, style));
        }
    }
    /// Every line of a text that is agreed to, so many cells from the left.
    pub fn whole(&mut self, left: usize, text: &str, style: impl Into<Style>) {
        let style = style.into();
        let (text, cut) = whole(text);
        self.beyond |= cut > 0;
        for line in text::wrap(&text::visible(text), self.width.saturating_sub(left), usize::MAX) {
            let mut row = Cells::new(self.width);
            row.gap(left);
            row.put(&line, style);
            self.lines.push(row.line());
        }
        if cut > 0 {
            self.text(&format!("… {cut} more characters"), style);
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

/// As much of a text as a question holds, and how many characters more there are.
fn whole(text: &str) -> (&str, usize) {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}

/// All of a value in pieces so wide, broken at no space: what is typed begins and ends where it does. And whether it is
/// longer than a question holds.
pub fn pieces(value: &str, cells: usize) -> (Vec<String>, bool) {
    let (value, cut) = whole(value);
    let clean = text::visible(value);
    let (mut out, mut rest) = (Vec::new(), clean.as_ref());
    while text::width(rest) > cells.max(2) {
        let piece = text::truncate(rest, cells.max(2), "").into_owned();
        let Some(after) = rest.get(piece.len()..).filter(|after| after.len() < rest.len()) else {
            break;
        };
        rest = after;
        out.push(piece);
    }
    out.push(rest.to_owned());
    (out, cut > 0)
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

/// A box that is answered. Where it has no room for all of its lines, it is read piece by piece; `line` is the one that
/// is typed into. Returns the place of the lines, and the first of them.
pub fn asking(
    ui: &mut Ui,
    (context, title): (Context, &str),
    body: Body,
    line: Option<usize>,
    area: Rect,
    frame: &mut Frame,
) -> (Rect, usize) {
    let of = body.lines.len();
    let mut notice = Body::new(body.width);
    if body.beyond {
        notice.text("Too long to be read here; it can't be answered here.", ui.theme.warn);
    } else if of > usize::from(area.height).saturating_sub(2) {
        let on = ui.app.keymap.word(context, Action::PageDown);
        let says = format!(
            "No room for all of it: {on} reads on. It can be answered once all of it was shown."
        );
        notice.text(&says, ui.theme.warn);
    }
    let high = notice.lines.len();
    let place = frame_box(ui, title, body.width, high + of, area, frame);
    draw_lines(ui, notice.lines, 0, place, frame);
    let high = (high as u16).min(place.height);
    let rest = Rect { y: place.y + high, height: place.height - high, ..place };
    let height = usize::from(rest.height);
    let first = ui.app.through.first(ui.app.asked(), line, height).min(of.saturating_sub(height));
    let (to, width) = ((first + height).min(of), body.width);
    ui.seen.part = Some(Part { from: first, to, of, width, beyond: body.beyond });
    draw_lines(ui, body.lines, first, rest, frame);
    (rest, first)
}
