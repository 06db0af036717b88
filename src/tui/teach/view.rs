//! What the lessons look like. Reads; changes nothing.

use super::{Playing, School};
use crate::lab::class::Tone;
use crate::lab::lesson::{Act, LESSONS, Step};
use crate::text::wrap;
use crate::tui::theme::{Look, Theme};
use crate::tui::view::cells::{self, Cells};
use ratatui::Frame;
use ratatui::layout::Rect;

/// The least that a lesson needs.
const MIN: (u16, u16) = (60, 16);

/// Draws the whole screen.
pub fn view(school: &School, theme: &Theme, frame: &mut Frame) {
    let area = frame.area();
    let mut page = Page { theme, area, y: area.y, frame };
    if area.width < MIN.0 || area.height < MIN.1 {
        let text = format!(
            "{}x{} is too small: lessons need {}x{}",
            area.width, area.height, MIN.0, MIN.1
        );
        return page.text(&text, theme.warn, 3);
    }
    match &school.playing {
        None => menu(school, &mut page),
        Some(p) => lesson(p, &mut page),
    }
}

struct Page<'a, 'f> {
    theme: &'a Theme,
    area: Rect,
    y: u16,
    frame: &'a mut Frame<'f>,
}

impl Page<'_, '_> {
    fn left(&self) -> u16 {
        self.area.bottom().saturating_sub(self.y)
    }

    fn row(&mut self, row: Cells) {
        if self.left() > 0 {
            let place = Rect { y: self.y, height: 1, ..self.area };
            cells::line(row.line(), place, self.frame);
            self.y += 1;
        }
    }

    fn cells(&self) -> Cells {
        Cells::new(usize::from(self.area.width))
    }

    /// A paragraph of at most `most` lines, with a margin.
    fn text(&mut self, text: &str, look: Look, most: usize) {
        let width = usize::from(self.area.width.saturating_sub(2));
        for line in wrap(text, width, most) {
            let mut row = self.cells();
            row.gap(1);
            row.put(&line, look);
            self.row(row);
        }
    }

    fn title(&mut self, text: &str) {
        let mut row = self.cells();
        row.put("▌", self.theme.title_focus);
        row.put(text, self.theme.title_focus);
        row.put(" ", self.theme.rule);
        row.fill("─", self.theme.rule);
        self.row(row);
    }

    fn keys(&mut self, keys: &[(String, &str)]) {
        self.y = self.area.bottom().saturating_sub(1);
        let mut row = self.cells();
        for (key, what) in keys {
            row.put(&format!(" {key}"), self.theme.key);
            row.put(&format!(" {what} "), self.theme.dim);
        }
        self.row(row);
    }
}

fn menu(school: &School, page: &mut Page<'_, '_>) {
    let t = page.theme;
    page.title("redial teach: what happens when the answer is lost");
    page.row(page.cells());
    page.text(
        "Each lesson runs on a real server, a real ledger and a real connection. You make things happen with a key, say what you expect, and then count.",
        t.text,
        3,
    );
    page.row(page.cells());
    for (i, lesson) in LESSONS.iter().enumerate() {
        let mut row = page.cells();
        let done = if school.finished.contains(lesson.name) { "✓" } else { " " };
        row.put(&format!(" {done} {}  ", i + 1), t.ok);
        row.put(lesson.title, t.text);
        if i == school.at {
            let place = Rect { y: page.y, height: 1, ..page.area };
            cells::line(row.selected(t.selection), place, page.frame);
            page.y += 1;
        } else {
            page.row(row);
        }
    }
    page.keys(&[("1-9".into(), "a lesson"), ("↑↓ enter".into(), "choose"), ("q".into(), "quit")]);
}

fn lesson(p: &Playing, page: &mut Page<'_, '_>) {
    let t = page.theme;
    let l = p.lesson();
    page.title(&format!("{} of {}  {}", p.lesson + 1, LESSONS.len(), l.title));
    page.text(l.story, t.text, 4);
    let below = if p.truth.is_some() { 9 } else { 5 };
    let height = page.left().saturating_sub(below + 1);
    columns(p, height, page);
    match p.truth {
        Some(truth) => over(p, truth, page),
        None => now(p, page),
    }
    let keys: Vec<(String, &str)> = if p.shown.too_late {
        vec![("enter".into(), "play it again"), ("esc".into(), "menu"), ("q".into(), "quit")]
    } else if p.truth.is_some() {
        vec![("enter".into(), "next lesson"), ("esc".into(), "menu"), ("q".into(), "quit")]
    } else if p.is_free() {
        let mut keys: Vec<_> = Act::FREE.iter().map(|a| (a.key().to_string(), short(*a))).collect();
        keys.push(("esc".into(), "menu"));
        keys
    } else {
        let mut keys = match p.next() {
            Some(Step::Do { act, .. }) if !p.waiting => vec![(act.key().to_string(), act.words())],
            Some(Step::Ask { .. }) => vec![("0-9".into(), "your answer")],
            _ => Vec::new(),
        };
        keys.extend([("esc".into(), "menu"), ("q".into(), "quit")]);
        keys
    };
    page.keys(&keys);
}

/// Words for a row with many keys.
fn short(act: Act) -> &'static str {
    match act {
        Act::RetrySame => "same id",
        Act::RetryNew => "new id",
        Act::Find => "find",
        Act::Kill => "kill -9",
        Act::GiveUp => "give up",
        Act::SendLost => "send, drop",
        other => other.words(),
    }
}

fn columns(p: &Playing, height: u16, page: &mut Page<'_, '_>) {
    let t = page.theme;
    let width = page.area.width / 3;
    let all = [
        ("the client knows", &p.shown.client),
        ("on the wire", &p.shown.wire),
        ("the server has", &p.shown.server),
    ];
    for (i, (name, lines)) in all.into_iter().enumerate() {
        let x = page.area.x + width * i as u16;
        let w = if i == 2 { page.area.right() - x } else { width };
        let mut head = Cells::new(usize::from(w));
        head.put("─", t.rule);
        head.put(name, t.title);
        head.put(" ", t.rule);
        head.fill("─", t.rule);
        let place = Rect { x, y: page.y, width: w, height: 1 };
        cells::line(head.line(), place, page.frame);
        let inner = usize::from(w.saturating_sub(2));
        let wrapped: Vec<(Look, String)> = lines
            .iter()
            .flat_map(|(tone, text)| {
                let look = look(*tone, t);
                wrap(text, inner, 3).into_iter().map(move |l| (look, l))
            })
            .collect();
        let room = usize::from(height.saturating_sub(1));
        let from = wrapped.len().saturating_sub(room);
        for (n, (look, text)) in wrapped[from..].iter().enumerate() {
            let mut row = Cells::new(usize::from(w));
            row.gap(1);
            row.put(text, *look);
            let y = page.y + 1 + n as u16;
            cells::line(row.line(), Rect { x, y, width: w, height: 1 }, page.frame);
        }
    }
    page.y += height;
    let mut rule = page.cells();
    rule.fill("─", t.rule);
    page.row(rule);
}

fn look(tone: Tone, t: &Theme) -> Look {
    match tone {
        Tone::Plain => t.text,
        Tone::Good => t.ok,
        Tone::Doubt => t.warn,
        Tone::Bad => t.error,
        Tone::Dim => t.dim,
    }
}

fn now(p: &Playing, page: &mut Page<'_, '_>) {
    let t = page.theme;
    if !p.shown.trouble.is_empty() {
        page.text(&p.shown.trouble, t.error, 2);
    }
    if p.is_free() {
        page.text(&format!("redial verify: {}", p.shown.verdict), t.strong, 2);
        if p.lost {
            page.text("That key does nothing here.", t.warn, 1);
        }
        return;
    }
    if p.shown.too_late {
        page.text(
            "Too late: the answer came before that key. This shows something else now, and proves nothing. Press enter and play it again, a little faster.",
            t.warn,
            3,
        );
        return;
    }
    match p.next() {
        _ if p.waiting => page.text("… it happens now", t.dim, 1),
        Some(Step::Do { act, say, .. }) => {
            page.text(&format!("{say}  [{}] {}", act.key(), act.words()), t.strong, 3);
        }
        Some(Step::Ask { question }) => {
            page.text(question, t.strong, 3);
            page.text("Press a number.", t.dim, 1);
        }
        None => {}
    }
    if p.lost {
        let text = match p.next() {
            Some(Step::Do { act, .. }) => {
                format!("That key does nothing now. Press {}.", act.key())
            }
            _ => "That key does nothing now. Press a number.".into(),
        };
        page.text(&text, t.warn, 1);
    }
}

fn over(p: &Playing, truth: u64, page: &mut Page<'_, '_>) {
    let t = page.theme;
    let l = p.lesson();
    let noun = if l.tool == "charge" { "charge" } else { "ticket" };
    let plural = if truth == 1 { "" } else { "s" };
    let guess = p.guess.unwrap_or(0);
    let (look, judgement) = match guess == truth {
        true => (t.ok, "You were right."),
        false => (t.warn, "Not what you expected."),
    };
    page.text(
        &format!(
            "You said {guess}. There {} {truth} {noun}{plural}. {judgement}",
            if truth == 1 { "is" } else { "are" }
        ),
        look,
        2,
    );
    if !p.is_true() {
        let text = format!(
            "That is not what this lesson is about ({} expected): something else happened on the way. Look at the columns, or play it again.",
            l.effects
        );
        return page.text(&text, t.warn, 3);
    }
    page.text(l.why, t.text, 4);
    if !p.shown.verdict.is_empty() {
        page.text(&format!("redial verify: {}", p.shown.verdict), t.dim, 1);
    }
    page.text(&format!("Take home: {}", l.take_home), t.strong, 2);
}
