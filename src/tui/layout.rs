//! How the screen is divided, from its size alone. Pure; `update` asks it for page sizes, `view` for places.

use super::app::Pane;
use ratatui::layout::Rect;

/// The smallest terminal that is drawn on.
pub const MIN: (u16, u16) = (44, 10);

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Too small for anything.
    TooSmall,
    /// One pane at a time, tabs named.
    Single,
    /// The requests, below them one other pane.
    Stacked,
    /// The requests, below them detail beside calls and stderr.
    Wide,
    /// Three columns, all panes: requests over stderr, the detail, calls over verify.
    Huge,
}

/// Places; a pane that isn't shown has none. Each pane's first line is its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub shape: Shape,
    /// Two lines: the facts, the endpoint.
    pub top: Rect,
    pub requests: Option<Rect>,
    pub detail: Option<Rect>,
    pub calls: Option<Rect>,
    pub stderr: Option<Rect>,
    pub verify: Option<Rect>,
    /// The line above the footer.
    pub said: Rect,
    pub footer: Rect,
}

impl Layout {
    /// The place of `pane`.
    pub fn pane(&self, pane: Pane) -> Option<Rect> {
        match pane {
            Pane::Requests => self.requests,
            Pane::Detail => self.detail,
            Pane::Calls => self.calls,
            Pane::Stderr => self.stderr,
            Pane::Verify => self.verify,
        }
    }

    /// Lines that a pane shows below its title (and, for the requests, its column heads).
    pub fn page(&self, pane: Pane) -> usize {
        let head = if pane == Pane::Requests { 2 } else { 1 };
        self.pane(pane).map_or(1, |r| usize::from(r.height.saturating_sub(head)).max(1))
    }
}

/// How a person has divided the screen; shares are percent of what is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// The pane that has the keys is alone.
    pub zoom: bool,
    /// Where detail and verify have one place: verify has it. The one of them that had the keys last.
    pub verify: bool,
    /// The requests' share of the height.
    pub upper: Option<u16>,
    /// The first of three columns' share of the width.
    pub first: Option<u16>,
    /// The detail's share of the width, without a first column.
    pub left: Option<u16>,
    /// The calls' share of the height of their column.
    pub calls: Option<u16>,
}

impl Shares {
    /// No border stands where the size alone would put it.
    pub fn is_own(self) -> bool {
        self == Shares { verify: self.verify, ..Shares::default() }
    }
}

/// The least and the most that a border can be moved to, in percent.
pub const SHARE: (u16, u16) = (15, 85);
/// The fewest lines of a pane, and the fewest columns of one beside another.
const LEAST: (u16, u16) = (24, 5);

/// A share of `whole`, with `least` left on either side where there is room for both.
fn share(whole: u16, percent: u16, least: u16) -> u16 {
    let percent = u32::from(percent.clamp(SHARE.0, SHARE.1));
    let part = (u32::from(whole) * percent / 100) as u16;
    part.clamp(least.min(whole / 2), whole - least.min(whole / 2))
}

/// Divides a terminal of `size` (columns, rows); `pane` has the keys. A short list of `rows` requests
/// leaves its room to the panes below, unless a person has moved the border.
pub fn of(size: (u16, u16), pane: Pane, rows: usize, shares: Shares) -> Layout {
    let (w, h) = size;
    let shape = match size {
        (w, h) if w < MIN.0 || h < MIN.1 => Shape::TooSmall,
        (w, h) if w < 72 || h < 20 || shares.zoom => Shape::Single,
        (w, h) if w < 112 || h < 30 => Shape::Stacked,
        (w, h) if w < 168 || h < 42 => Shape::Wide,
        _ => Shape::Huge,
    };
    let line = |y: u16| Rect::new(0, y.min(h.saturating_sub(1)), w, 1.min(h));
    let mut layout = Layout {
        shape,
        top: Rect::new(0, 0, w, 2.min(h)),
        requests: None,
        detail: None,
        calls: None,
        stderr: None,
        verify: None,
        said: line(h.saturating_sub(2)),
        footer: line(h.saturating_sub(1)),
    };
    let body = Rect::new(0, 2, w, h.saturating_sub(4));
    // Title, heads, and two lines for remarks.
    let short = u16::try_from(rows).unwrap_or(u16::MAX).max(5).saturating_add(4);
    match shape {
        Shape::TooSmall => {}
        Shape::Single => set(&mut layout, pane, body),
        Shape::Stacked => {
            // What verify says is read while rows move; it needs more room than they do.
            let most = if pane == Pane::Verify { 8 } else { 11 };
            let own = (body.height * most / 20).min(short).max(6);
            let upper = shares.upper.map_or(own, |p| share(body.height, p, LEAST.1));
            let lower = if pane == Pane::Requests { Pane::Detail } else { pane };
            layout.requests = Some(Rect { height: upper, ..body });
            let rest = Rect { y: body.y + upper, height: body.height - upper, ..body };
            set(&mut layout, lower, rest);
        }
        Shape::Wide => {
            let own = (body.height * 9 / 20).min(short);
            let upper = shares.upper.map_or(own, |p| share(body.height, p, LEAST.1 * 2));
            layout.requests = Some(Rect { height: upper, ..body });
            let (y, height) = (body.y + upper, body.height - upper);
            // A column between the two is left for a rule.
            let left = shares.left.map_or(w * 11 / 20, |p| share(w, p, LEAST.0));
            let beside = match pane {
                Pane::Verify => Pane::Verify,
                Pane::Detail => Pane::Detail,
                _ if shares.verify => Pane::Verify,
                _ => Pane::Detail,
            };
            set(&mut layout, beside, Rect::new(0, y, left, height));
            let right = Rect::new(left + 1, y, w - left - 1, height);
            let calls = shares.calls.map_or(height * 9 / 20, |p| share(height, p, LEAST.1));
            (layout.calls, layout.stderr) = over(right, calls);
        }
        Shape::Huge => {
            let own = (w * 2 / 5).max(74);
            let first = shares.first.map_or(own, |p| share(w, p, LEAST.0 * 2));
            let rest = w - first - 1;
            let middle = shares.left.map_or(rest * 11 / 20, |p| share(rest, p, LEAST.0));
            let column = |x, width| Rect { x, width, ..body };
            let own = (body.height * 13 / 20).min(short.max(body.height / 3));
            let upper = shares.upper.map_or(own, |p| share(body.height, p, LEAST.1 * 2));
            (layout.requests, layout.stderr) = over(column(0, first), upper);
            layout.detail = Some(column(first + 1, middle));
            let calls = shares.calls.map_or(body.height / 2, |p| share(body.height, p, LEAST.1));
            let right = column(first + middle + 2, rest - middle - 1);
            (layout.calls, layout.verify) = over(right, calls);
        }
    }
    layout
}

/// A column cut in two.
fn over(column: Rect, upper: u16) -> (Option<Rect>, Option<Rect>) {
    let below = Rect { y: column.y + upper, height: column.height - upper, ..column };
    (Some(Rect { height: upper, ..column }), Some(below))
}

fn set(layout: &mut Layout, pane: Pane, area: Rect) {
    match pane {
        Pane::Requests => layout.requests = Some(area),
        Pane::Detail => layout.detail = Some(area),
        Pane::Calls => layout.calls = Some(area),
        Pane::Stderr => layout.stderr = Some(area),
        Pane::Verify => layout.verify = Some(area),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_never_overlap_and_never_leave_the_screen_at_any_size() {
        for w in 0..220u16 {
            for h in 0..70u16 {
                let moved = |zoom, p| Shares {
                    zoom,
                    verify: p == 99,
                    upper: Some(p),
                    first: Some(p),
                    left: Some(p),
                    calls: Some(p),
                };
                let shares =
                    [Shares::default(), moved(false, 0), moved(false, 99), moved(true, 50)];
                let cases = Pane::ALL.into_iter().zip([0, 3, 12, 1_000_000, 40]);
                for (i, (pane, rows)) in cases.enumerate() {
                    let l = of((w, h), pane, rows, shares[(i + usize::from(w)) % 4]);
                    let mut places: Vec<Rect> =
                        Pane::ALL.iter().filter_map(|p| l.pane(*p)).collect();
                    if l.shape != Shape::TooSmall {
                        assert!(l.pane(pane).is_some_and(|r| r.height >= 4), "{w}x{h} {pane:?}");
                        places.extend([l.top, l.said, l.footer]);
                    }
                    let screen = Rect::new(0, 0, w, h);
                    for (i, a) in places.iter().enumerate() {
                        assert_eq!(a.intersection(screen), *a, "{w}x{h}");
                        assert!(places[i + 1..].iter().all(|b| !a.intersects(*b)), "{w}x{h}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_sizes_people_have() {
        for (size, shape) in [
            ((60, 16), Shape::Single),
            ((80, 24), Shape::Stacked),
            ((120, 40), Shape::Wide),
            ((200, 60), Shape::Huge),
            ((43, 30), Shape::TooSmall),
        ] {
            assert_eq!(of(size, Pane::Requests, 7, Shares::default()).shape, shape);
        }
    }
}
