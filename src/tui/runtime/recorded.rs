//! Follows the recording of the agent's own session: reads it piece by piece, tells the panes what it says, and that
//! rows may be judged otherwise now.

use super::Hands;
use super::wire::bears_on_requests;
use crate::inspect::recorded::Recorded;
use crate::tui::wire::WireView;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often the file is looked at when nothing is new.
const LOOK: Duration = Duration::from_millis(100);
/// Between two copies for the panes.
const COPY_EVERY: Duration = Duration::from_millis(40);
/// Pieces of a large file between two copies, at most a megabyte each.
const PIECES: usize = 8;

pub async fn follow(hands: Hands, recorded: Recorded, calls: watch::Sender<u64>) {
    let mut before: Option<Arc<WireView>> = None;
    let mut bore = None;
    let mut shown = None;
    loop {
        let r = recorded.clone();
        let read = tokio::task::spawn_blocking(move || (pieces(&r), r.taken_in())).await;
        // The task is ended together with the screen; a file that can't be read now may be read again.
        let Ok((more, now)) = read else { return };
        if shown != Some(now) {
            let (view, bearing, taken) = recorded.shown(|r, taken| {
                let over = taken.over;
                let view =
                    WireView::of_agent(&r.session, r.calls(), r.path(), over, before.as_deref());
                (Arc::new(view), (bears_on_requests(&r.session), r.events, over), taken)
            });
            shown = Some(taken);
            before = Some(view.clone());
            hands.tell_wire(|w| w.agent = Some(view)).await;
            if bore.replace(bearing) != Some(bearing) {
                calls.send_modify(|n| *n = n.wrapping_add(1));
            }
            tokio::time::sleep(COPY_EVERY).await;
        }
        if !more {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Takes pieces in; whether there is more.
fn pieces(r: &Recorded) -> bool {
    (0..PIECES).all(|_| r.advance().unwrap_or(false))
}
