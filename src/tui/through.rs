//! How far a question has been read that is taller than its place. A person agrees to what was on the screen: such a
//! question is answered once each of its lines has been there.

use super::app::App;
use super::update_scroll::clamp;
use super::view::Seen;

/// What a frame showed of a question.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The first line that was shown, and the one behind the last.
    pub from: usize,
    pub to: usize,
    /// How many lines it has, and how wide they are.
    pub of: usize,
    pub width: usize,
    /// Some of its text is in none of them.
    pub beyond: bool,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Through {
    /// The question and its width: in another one its lines are others.
    question: Option<(u64, usize)>,
    /// Which of its lines have been shown, until all of them were.
    shown: Vec<bool>,
    done: bool,
    /// The first line of the last frame, and how many it had.
    first: usize,
    pub(super) page: usize,
    /// The line that is typed into is kept in sight.
    pub(super) follows: bool,
}

impl Through {
    /// The first line to show of a question, where `line` is typed into and `height` lines have room.
    pub fn first(&self, question: Option<u64>, line: Option<usize>, height: usize) -> usize {
        match line {
            _ if question.is_none() || question != self.question.map(|q| q.0) => 0,
            Some(line) if self.follows => (line + 2).saturating_sub(height),
            _ => self.first,
        }
    }

    /// Moves from what was shown.
    pub(super) fn scroll(&mut self, by: isize) {
        self.first = self.first.saturating_add_signed(by);
        self.follows = false;
    }

    /// A part of the question was shown; whether it has been read through by now.
    fn saw(&mut self, question: u64, part: Part) -> bool {
        if self.question != Some((question, part.width)) {
            *self = Through { question: Some((question, part.width)), ..Through::default() };
        }
        (self.first, self.page) = (part.from, part.to.saturating_sub(part.from).max(1));
        if !self.done && self.shown.len() != part.of {
            self.shown = vec![false; part.of];
        }
        if let Some(lines) = self.shown.get_mut(part.from..part.to) {
            lines.fill(true);
        }
        self.done |= self.shown.iter().all(|seen| *seen) && !part.beyond;
        self.done
    }
}

impl App {
    /// Takes back what drawing found out.
    pub fn drew(&mut self, seen: &mut Seen) {
        clamp(self, seen.detail_most, seen.overlay_most);
        std::mem::swap(&mut self.hits, &mut seen.hits);
        let part = seen.part.and_then(|part| Some((self.asked()?, part)));
        self.cut = match part {
            Some((question, part)) => !self.through.saw(question, part),
            None => {
                self.through = Through::default();
                false
            }
        };
    }
}
