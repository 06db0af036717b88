//! Lines built cell by cell. Every text put on the screen passes the door here: `text::visible`, then cut
//! and filled by its true width.

use crate::text;
use crate::time::Time;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

/// One line in the making, never wider than it was made for.
pub struct Cells {
    spans: Vec<Span<'static>>,
    left: usize,
}

impl Cells {
    /// For a place of this many cells.
    pub fn new(width: usize) -> Cells {
        Cells { spans: Vec::new(), left: width }
    }

    /// As much of `text` as fits.
    pub fn put(&mut self, text: &str, style: impl Into<Style>) {
        let clean = text::visible(text::head(text, self.left));
        let cut = text::truncate(&clean, self.left, "…");
        self.push(cut.into_owned(), style.into());
    }

    /// What is typed, and its cursor behind it; by its end where it doesn't fit. Tells how many cells the text takes.
    pub fn typed(
        &mut self,
        text: &str,
        style: impl Into<Style>,
        cursor: impl Into<Style>,
    ) -> usize {
        let clean = text::visible(text);
        let end = text::tail(&clean, self.left.saturating_sub(1));
        let wide = text::width(&end);
        self.push(end.into_owned(), style.into());
        self.put(" ", cursor);
        wide
    }

    /// How many cells are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// `text` in exactly `width` cells, left-aligned.
    pub fn cell(&mut self, text: &str, width: usize, style: impl Into<Style>) {
        let clean = text::visible(text::head(text, width));
        self.push(text::pad(&clean, width.min(self.left)), style.into());
    }

    /// `text` in exactly `width` cells, right-aligned.
    pub fn right(&mut self, text: &str, width: usize, style: impl Into<Style>) {
        let clean = text::visible(text::head(text, width));
        self.push(text::pad_left(&clean, width.min(self.left)), style.into());
    }

    /// Empty cells.
    pub fn gap(&mut self, width: usize) {
        self.push(" ".repeat(width.min(self.left)), Style::new());
    }

    /// Fills what is left with a one-cell sign.
    pub fn fill(&mut self, sign: &str, style: impl Into<Style>) {
        self.push(sign.repeat(self.left), style.into());
    }

    fn push(&mut self, text: String, style: Style) {
        self.left = self.left.saturating_sub(text::width(&text));
        if !text.is_empty() {
            self.spans.push(Span::styled(text, style));
        }
    }

    /// The line.
    pub fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }

    /// The line in one style: a selected row, whose own colours would make it patchy.
    pub fn selected(mut self, style: impl Into<Style>) -> Line<'static> {
        let style = style.into();
        self.fill(" ", style);
        for span in &mut self.spans {
            span.style = style;
        }
        Line::from(self.spans)
    }
}

/// Draws one line.
pub fn line(line: Line<'_>, area: Rect, frame: &mut Frame) {
    line.render(area, frame.buffer_mut());
}

/// An age for a column: `12s`, `3m05s`, `8h12m`, `5d3h`; a claim in the future is `-12s`. What isn't being
/// waited for (`coarse`) doesn't tick by the second: `<1m`, `3m`.
pub fn age(at: Time, now: Time, coarse: bool) -> String {
    let s = at.age_at(now);
    let sign = if s <= -1.0 { "-" } else { "" };
    let t = s.abs() as u64;
    let short = match t {
        0..=59 if coarse => "<1m".into(),
        0..=59 => format!("{t}s"),
        60..=3599 if coarse => format!("{}m", t / 60),
        60..=3599 => format!("{}m{:02}s", t / 60, t % 60),
        3600..=86_399 => format!("{}h{:02}m", t / 3600, t % 3600 / 60),
        _ => format!("{}d{}h", t / 86_400, t % 86_400 / 3600),
    };
    format!("{sign}{short}")
}
