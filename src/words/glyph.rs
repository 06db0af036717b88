//! The character beside a word. Meaning never rests on it alone.

use crate::judge::State;

/// Of a row's state.
pub fn glyph(state: &State) -> &'static str {
    match state {
        State::Running => "▶",
        State::Done => "✓",
        State::Abandoned => "✗",
        State::Waiting => "…",
        State::Failed => "!",
        State::Cancelled => "⊘",
        State::Expired => "⌛",
        State::Unmapped(_) => "?",
        State::NoRow => "∅",
    }
}
