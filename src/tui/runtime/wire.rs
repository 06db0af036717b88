//! Follows the journal: a copy for the screen at most every frame, and a count of what bears on requests.

use super::Hands;
use crate::client::Client;
use crate::journal::Session;
use crate::tui::msg::Msg;
use crate::tui::wire::{Reach, WireView};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Between two copies: a flood of stderr makes one each.
const COPY_EVERY: Duration = Duration::from_millis(16);

pub async fn follow(hands: Hands, client: Client, reach: Reach, calls: watch::Sender<u64>) {
    let journal = client.journal().clone();
    let mut changes = journal.changes();
    let mut before: Option<Arc<WireView>> = None;
    loop {
        changes.borrow_and_update();
        let (view, bearing) = journal
            .read(|s| (WireView::of(s, reach.clone(), before.as_deref()), bears_on_requests(s)));
        let view = Arc::new(view);
        before = Some(view.clone());
        hands.tell(Msg::Wire(view)).await;
        calls.send_if_modified(|n| std::mem::replace(n, bearing) != bearing);
        tokio::time::sleep(COPY_EVERY).await;
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// A number that changes with every call sent or settled, every process ended, every list of tools.
fn bears_on_requests(s: &Session) -> u64 {
    let settled = s.calls.values().filter(|c| !c.is_pending()).count();
    let extra: u32 = s.calls.values().map(|c| c.extra_answers).sum();
    let late = s.calls.values().filter(|c| c.settled.as_ref().is_some_and(|s| s.late)).count();
    let ended = s.generations.iter().filter(|g| g.ended.is_some()).count();
    let parts = [s.calls.len(), settled, extra as usize, late, ended, s.generations.len()];
    let tools = u64::from(s.tools_generation) * 2 + u64::from(s.tools_stale);
    parts.iter().fold(tools, |sum, n| sum.wrapping_mul(1_000_003).wrapping_add(*n as u64))
}
