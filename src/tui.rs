//! The terminal UI: one owner of the state, one loop, a pure update, windows of rows.
//!
//! `action` is the one table of what can be done, `keys` the one reader of keys, `update` the one way the
//! state changes, `view` only reads. What an [`msg::Effect`] asks for is done by `runtime`, and by nothing
//! else.

pub mod answer;
pub mod app;
mod asking;
mod can;
pub mod data;
pub mod dialog;
pub mod findings;
#[cfg(test)]
mod fixture;
pub mod form;
mod input;
pub mod layout;
pub mod list;
pub mod memory;
pub mod msg;
pub mod pick;
pub mod run;
pub mod runtime;
pub mod teach;
pub mod term;
pub mod theme;
mod through;
pub mod timeline;
pub mod tree;
pub mod update;
mod update_dialog;
mod update_main;
mod update_mouse;
mod update_over;
mod update_scroll;
pub mod view;
pub mod watch;
pub mod wire;

pub use app::{App, Overlay, Pane, Start};
pub use msg::{Effect, Msg};
pub use runtime::{Looks, Setup, run};
pub use theme::Theme;
pub use update::update;
pub use view::{Seen, view};
