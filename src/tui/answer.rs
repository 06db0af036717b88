//! When a key is an answer. A question has to be readable before it can be answered: a deciding key counts only on a
//! question that has been on the screen for a while, and only when nothing came from the keyboard in the time before
//! it. So a held key or a burst decides nothing, at any rate and on any terminal: nobody says here which keys are held.
//!
//! One hold is not told apart by that: of a key that asks the question and answers it too, since a keyboard waits up to
//! a second before it repeats. There the answer is held back until it is clear that no other key follows.
//!
//! Pure: times come in with the messages, monotonic, since the screen was opened.

use crate::keys::Key;
use std::time::Duration;

/// How long a question has to be on the screen, and how long nothing may have been typed before its answer.
pub const READABLE: Duration = Duration::from_millis(300);
/// Longer than any keyboard waits between two repeats of a held key.
pub const QUIET: Duration = Duration::from_millis(200);

/// What a deciding key is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// It decides.
    Answer,
    /// It decides if no other key follows.
    Perhaps,
    /// It came too early, or out of a stream of keys.
    Nothing,
}

/// What was drawn and typed when.
#[derive(Debug, Clone, Default)]
pub struct Answering {
    /// When the newest input came.
    at: Duration,
    /// How long nothing had come before it; at first nothing ever had.
    silence: Option<Duration>,
    typed: bool,
    /// It came together with others.
    crowded: bool,
    /// The question on the screen, since when, and the key that had been pressed last then.
    drawn: Option<(u64, Duration, Option<Key>)>,
    last: Option<Key>,
    /// An answer that is held back, and to what.
    held: Option<(Key, u64)>,
}

impl Answering {
    /// Something was typed, pasted or clicked; `crowded`: together with more of it.
    pub fn input(&mut self, at: Duration, crowded: bool) {
        self.silence = self.typed.then(|| at.saturating_sub(self.at));
        (self.at, self.typed, self.crowded, self.held) = (at, true, crowded, None);
    }

    /// When the newest input came.
    pub fn now(&self) -> Duration {
        self.at
    }

    /// It was this key.
    pub fn pressed(&mut self, key: Key) {
        self.last = Some(key);
    }

    /// A frame is on the screen that shows this question, or none.
    pub fn drawn(&mut self, question: Option<u64>, at: Duration) {
        if question != self.drawn.map(|d| d.0) {
            self.drawn = question.map(|q| (q, at, self.last));
        }
    }

    /// What is on the screen has to be read anew.
    pub fn unread(&mut self) {
        (self.drawn, self.held) = (None, None);
    }

    /// The question has been on the screen long enough to be read when the newest input came.
    pub fn readable(&self, question: Option<u64>) -> bool {
        let since = self.drawn.filter(|d| question == Some(d.0)).map(|d| d.1);
        since.is_some_and(|since| self.at.saturating_sub(since) >= READABLE)
    }

    /// Nothing had come before the newest input for long enough.
    pub fn after_silence(&self) -> bool {
        !self.crowded && self.silence.is_none_or(|s| s >= READABLE)
    }

    /// What the newest input is worth as an answer; `key` is what was pressed, none a click.
    pub fn worth(&self, question: Option<u64>, key: Option<Key>) -> Worth {
        if !self.readable(question) || !self.after_silence() {
            return Worth::Nothing;
        }
        let asked_by = self.drawn.and_then(|d| d.2);
        let same = key.is_some() && key == asked_by && key == self.last;
        if same { Worth::Perhaps } else { Worth::Answer }
    }

    /// Holds an answer back until it is clear that no other key follows.
    pub fn hold(&mut self, key: Key, question: u64) {
        self.held = Some((key, question));
    }

    /// When the answer that is held back becomes one.
    pub fn held_until(&self) -> Option<Duration> {
        self.held.map(|_| self.at + QUIET)
    }

    /// The answer that was held back, once nothing has followed it, if that is still the question.
    pub fn take_held(&mut self, question: Option<u64>, now: Duration) -> Option<Key> {
        let due = self.held_until().is_some_and(|at| now >= at);
        let (key, to) = self.held.take_if(|_| due)?;
        (question == Some(to)).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Code;

    const ENTER: Key = Key { code: Code::Enter, ctrl: false, alt: false, shift: false };
    const R: Key = Key { code: Code::Char('r'), ctrl: false, alt: false, shift: false };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn press(a: &mut Answering, key: Key, at: u64) -> Worth {
        a.input(ms(at), false);
        let worth = a.worth(Some(1), Some(key));
        a.pressed(key);
        worth
    }

    /// A question that `key` asked for at 0, drawn at 10 ms.
    fn asked(key: Key) -> Answering {
        let mut a = Answering::default();
        press(&mut a, key, 0);
        a.drawn(Some(1), ms(10));
        a
    }

    #[test]
    fn a_key_counts_once_the_question_could_be_read_and_after_silence() {
        assert_eq!(press(&mut asked(R), ENTER, 309), Worth::Nothing);
        assert_eq!(press(&mut asked(R), ENTER, 310), Worth::Answer);
        // Drawn again and again it is the same question; another one begins anew.
        let mut a = asked(R);
        a.drawn(Some(1), ms(300));
        assert_eq!(press(&mut a, ENTER, 320), Worth::Answer);
        let mut a = asked(R);
        a.drawn(Some(2), ms(300));
        a.drawn(Some(1), ms(301));
        assert_eq!(press(&mut a, ENTER, 320), Worth::Nothing);
        // Not on the screen, nothing to agree to.
        let mut a = Answering::default();
        assert_eq!(press(&mut a, ENTER, 5_000), Worth::Nothing);
    }

    #[test]
    fn no_rate_of_a_held_key_decides_anything() {
        for hz in [1000, 60, 30, 10, 5, 4] {
            for (first, asking) in [(0, R), (0, ENTER), (250, ENTER), (500, ENTER), (660, ENTER)] {
                let mut a = asked(asking);
                for n in 0..200 {
                    let at = first + 10 + n * 1000 / hz;
                    assert_eq!(a.take_held(Some(1), ms(at)), None, "{hz} Hz from {first} ms");
                    match press(&mut a, ENTER, at) {
                        Worth::Answer => panic!("{hz} Hz from {first} ms"),
                        Worth::Perhaps if 1000 / hz < 200 => a.hold(ENTER, 1),
                        Worth::Perhaps | Worth::Nothing => {}
                    }
                }
            }
        }
    }

    #[test]
    fn the_key_that_asked_answers_when_it_is_pressed_once_more_and_no_key_follows() {
        let mut a = asked(ENTER);
        assert_eq!(press(&mut a, ENTER, 2_000), Worth::Perhaps);
        a.hold(ENTER, 1);
        assert_eq!(a.take_held(Some(1), ms(2_100)), None);
        assert_eq!(a.held_until(), Some(ms(2_200)));
        assert_eq!(a.take_held(Some(1), ms(2_200)), Some(ENTER));
        assert_eq!(a.take_held(Some(1), ms(2_300)), None, "once");
        a.hold(ENTER, 1);
        assert_eq!(a.take_held(Some(2), ms(9_000)), None, "another question by now");
        // With another key in between nobody holds it.
        let mut a = asked(ENTER);
        press(&mut a, R, 1_000);
        assert_eq!(press(&mut a, ENTER, 2_000), Worth::Answer);
    }

    #[test]
    fn what_comes_in_a_heap_and_what_could_not_be_read_decide_nothing() {
        let mut a = asked(R);
        a.input(ms(5_000), true);
        assert_eq!(a.worth(Some(1), Some(ENTER)), Worth::Nothing);
        let mut a = asked(R);
        a.unread();
        assert_eq!(press(&mut a, ENTER, 5_000), Worth::Nothing);
        // Drawn anew it is a question that came after Enter was pressed, and Enter may still be held.
        a.drawn(Some(1), ms(5_010));
        assert_eq!(press(&mut a, ENTER, 5_400), Worth::Perhaps);
        let mut a = asked(R);
        a.unread();
        a.drawn(Some(1), ms(5_010));
        assert_eq!(press(&mut a, ENTER, 5_400), Worth::Answer);
    }
}
