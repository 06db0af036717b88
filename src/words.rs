//! Decisions as people read them. What is decided is a type of the rooms below; here it becomes words, once, for the
//! screen and for plain reports alike. Decides nothing, and nothing is ever read back out of these words.

mod glyph;
mod next;

pub use glyph::glyph;
pub use next::{DELIVER, REPEAT, next_step, next_step_in};
