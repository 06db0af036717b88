//! Drawing: `view(&App, …)` reads the state and writes cells. A frame costs the viewport, whatever the
//! ledger or the journal hold. Foreign text goes through `text` in `cells`, nowhere else.

mod boxes;
mod calls;
pub(crate) mod cells;
mod detail;
mod dialog;
mod findings;
mod foot;
mod head;
mod over;
mod reports;
mod requests;
mod stderr;
mod timeline;
mod verify;

use super::app::{App, Hit, Overlay, Pane};
use super::layout::{self, Shape};
use super::theme::Theme;
use super::through::Part;
use cells::Cells;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// What drawing remembers between frames, and what it found out for `update_scroll::clamp`.
#[derive(Debug, Default)]
pub struct Seen {
    requests_at: usize,
    calls_at: usize,
    /// How far the detail can be scrolled.
    pub detail_most: usize,
    /// How far the overlay can be scrolled.
    pub overlay_most: usize,
    verify_at: usize,
    /// Where the JSON text begins.
    json_at: usize,
    /// The first rank of the time line that is shown, and the first line of its text.
    timeline_at: usize,
    findings_at: usize,
    text_at: usize,
    /// What was shown of the question that stands.
    pub part: Option<Part>,
    /// Where what was put, for the mouse; later ones lie over earlier ones.
    pub hits: Vec<(Rect, Hit)>,
}

/// Draws the whole screen.
pub fn view(app: &App, theme: &Theme, seen: &mut Seen, frame: &mut Frame) {
    let area = frame.area();
    // A theme with a background of its own has all of it.
    frame.buffer_mut().set_style(area, theme.text.style());
    seen.hits.clear();
    seen.part = None;
    let size = (area.width, area.height);
    let layout = layout::of(size, app.pane, app.requests.len(), app.shares);
    if layout.shape == Shape::TooSmall {
        return too_small(theme, area, frame);
    }
    head::draw(app, theme, layout.top, frame);
    let mut ui = Ui { app, theme, shape: layout.shape, seen };
    for pane in Pane::ALL {
        let Some(place) = layout.pane(pane) else { continue };
        ui.seen.hits.push((place, Hit::Pane(pane)));
        match pane {
            Pane::Requests => requests::draw(&mut ui, place, frame),
            Pane::Detail => detail::draw(&mut ui, place, frame),
            Pane::Calls => calls::draw(&mut ui, place, frame),
            Pane::Stderr => stderr::draw(&mut ui, place, frame),
            Pane::Verify => verify::draw(&mut ui, place, frame),
        }
    }
    // The rules between columns stand at the right of their left panes.
    let columns: &[Pane] = match layout.shape {
        Shape::Wide => &[Pane::Detail, Pane::Verify],
        Shape::Huge => &[Pane::Requests, Pane::Stderr, Pane::Detail],
        _ => &[],
    };
    for place in columns.iter().filter_map(|p| layout.pane(*p)) {
        for y in place.top()..place.bottom() {
            let bar = match y {
                y if y == place.top() && y == layout.top.bottom() => "┬",
                y if y == place.top() && layout.shape == Shape::Huge => "┤",
                y if y == place.top() => "┬",
                _ => "│",
            };
            cells::line(Line::styled(bar, theme.rule), Rect::new(place.right(), y, 1, 1), frame);
        }
    }
    foot::said(app, theme, layout.said, frame);
    foot::footer(&mut ui, layout.footer, frame);
    let body = Rect { height: area.height.saturating_sub(1), ..area };
    match &app.overlay {
        None | Some(Overlay::Filter) => {}
        Some(Overlay::Timeline) => {
            let body = Rect { height: area.height.saturating_sub(2), ..area };
            timeline::draw(&mut ui, body, frame);
        }
        Some(Overlay::Findings) => {
            let body = Rect { height: area.height.saturating_sub(2), ..area };
            findings::draw(&mut ui, body, frame);
        }
        Some(Overlay::Help(reading)) => reports::help(&mut ui, reading, body, frame),
        Some(Overlay::Log { scroll }) => reports::log(&mut ui, *scroll, body, frame),
        Some(Overlay::Pick(pick)) => over::pick(&mut ui, pick, body, frame),
        Some(Overlay::Json { views, at }) => over::json(&mut ui, views, *at, body, frame),
        Some(Overlay::GoTo(id)) => over::go_to(&mut ui, id, body, frame),
        Some(Overlay::Form) => over::form(&mut ui, body, frame),
        Some(Overlay::Reissue(d)) => dialog::reissue(&mut ui, d, body, frame),
        Some(Overlay::Cancel(_)) => reports::cancel(&mut ui, body, frame),
        Some(Overlay::Quit) => reports::quit(&mut ui, body, frame),
    }
}

/// What every pane is handed.
struct Ui<'a> {
    app: &'a App,
    theme: &'a Theme,
    shape: Shape,
    seen: &'a mut Seen,
}

impl Ui<'_> {
    /// The pane has the keys (an overlay takes them away).
    fn has_focus(&self, pane: Pane) -> bool {
        self.app.pane == pane && matches!(self.app.overlay, None | Some(Overlay::Filter))
    }

    /// A pane's title line, `▌requests · 12 of 340 ─────`; returns the place below it. Where other panes are
    /// hidden behind this one, their names stand beside it.
    fn title(&mut self, pane: Pane, note: &str, area: Rect, frame: &mut Frame) -> Rect {
        let t = self.theme;
        let focus = self.has_focus(pane);
        let mut row = Cells::new(usize::from(area.width));
        let (mark, style) = if focus { ("▌", t.title_focus) } else { ("─", t.title) };
        row.put(mark, if focus { t.title_focus } else { t.rule });
        let tabs: &[Pane] = match (self.shape, pane) {
            (Shape::Single, _) => &Pane::ALL,
            (Shape::Stacked, Pane::Requests) => &[Pane::Requests],
            (Shape::Stacked, _) => &Pane::ALL[1..],
            (Shape::Wide, Pane::Detail | Pane::Verify) => &[Pane::Detail, Pane::Verify],
            _ => &[],
        };
        if tabs.is_empty() || tabs == [pane] {
            row.put(pane.title(), style);
        } else {
            let mut x = area.x + 1;
            for (i, tab) in tabs.iter().enumerate() {
                row.put(if i == 0 { "" } else { "  " }, t.rule);
                x += if i == 0 { 0 } else { 2 };
                let width = tab.title().len() as u16;
                self.seen.hits.push((Rect::new(x, area.y, width, 1), Hit::Pane(*tab)));
                x += width;
                row.put(tab.title(), if *tab == pane { style } else { t.dim });
            }
        }
        if !note.is_empty() {
            row.put("  ", t.rule);
            row.put(note, t.dim);
        }
        row.put(" ", t.rule);
        row.fill("─", t.rule);
        cells::line(row.line(), Rect { height: 1, ..area }, frame);
        Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
    }

    /// What an empty pane says.
    fn empty(&self, says: &[&str], area: Rect, frame: &mut Frame) {
        let width = usize::from(area.width.saturating_sub(2));
        let looks = [self.theme.text, self.theme.dim];
        let lines = says.iter().enumerate().flat_map(|(i, s)| {
            let look = looks[i.min(1)];
            crate::text::wrap(s, width, 6).into_iter().map(move |line| (line, look))
        });
        for ((text, look), y) in lines.zip(area.top()..area.bottom()) {
            let mut row = Cells::new(usize::from(area.width));
            row.gap(1);
            row.put(&text, look);
            cells::line(row.line(), Rect { y, height: 1, ..area }, frame);
        }
    }
}

fn too_small(theme: &Theme, area: Rect, frame: &mut Frame) {
    let (w, h) = layout::MIN;
    let text = format!("{}x{} is too small: redial needs {w}x{h}", area.width, area.height);
    let lines = crate::text::wrap(&text, usize::from(area.width), usize::from(area.height).max(1));
    for (i, text) in lines.iter().take(usize::from(area.height)).enumerate() {
        let place = Rect { y: area.y + i as u16, height: 1, ..area };
        cells::line(Line::styled(text.clone(), theme.warn), place, frame);
    }
}

/// The first line to show so that `at` of `len` lines is seen on `page` lines, moving no more than needed.
fn keep_in_sight(first: &mut usize, at: Option<usize>, len: usize, page: usize) {
    if let Some(at) = at {
        *first = (*first).min(at).max((at + 1).saturating_sub(page));
    }
    *first = (*first).min(len.saturating_sub(page));
}
