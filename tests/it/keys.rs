//! What keys do, as macros: `update` driven without a terminal.

use crate::support::night::{app, press};
use redial::tui::Pane;

#[test]
fn moving_and_opening() {
    let mut a = app((140, 40));
    assert_eq!(a.requests.selected.as_deref(), Some("night-007"));
    press(&mut a, "jj");
    assert_eq!(a.requests.selected.as_deref(), Some("night-006"));
    press(&mut a, "G<enter>");
    assert_eq!((a.requests.selected.as_deref(), a.pane), (Some("night-001"), Pane::Detail));
}
