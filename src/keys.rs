//! What a key means: the keys themselves, the one table of actions, and the map between the two that a configuration
//! may change. Knows nothing of the screen that acts on it.

pub mod action;
mod key;
pub mod keymap;

pub use key::{Code, Key, macro_keys};
