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
    let mut bore = None;
    loop {
        changes.borrow_and_update();
        let (view, bearing) = journal
            .read(|s| (WireView::of(s, reach.clone(), before.as_deref()), bears_on_requests(s)));
        let view = Arc::new(view);
        before = Some(view.clone());
        hands.tell_wire(|w| w.live = Some(view)).await;
        if bore.replace(bearing) != Some(bearing) {
            calls.send_modify(|n| *n = n.wrapping_add(1));
        }
        tokio::time::sleep(COPY_EVERY).await;
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Our own endpoint and the agent's session, for the panes that show both.
#[derive(Default)]
pub struct Wires {
    pub live: Option<Arc<WireView>>,
    pub agent: Option<Arc<WireView>>,
}

impl Hands {
    /// Changes one of the two and tells both. The lock is held until the screen has it: two that tell at once tell
    /// in the order of what they know.
    pub(super) async fn tell_wire(&self, change: impl FnOnce(&mut Wires)) {
        let mut w = self.wires.lock().await;
        change(&mut w);
        let view = match (&w.live, &w.agent) {
            (Some(live), Some(agent)) => Some(Arc::new(live.beside(agent))),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        if let Some(view) = view {
            self.tell(Msg::Wire(view)).await;
        }
    }
}

/// A number that changes with every call sent or settled, every process ended, every list of tools.
pub(super) fn bears_on_requests(s: &Session) -> u64 {
    let settled = s.calls.values().filter(|c| !c.is_pending()).count();
    let extra: u32 = s.calls.values().map(|c| c.extra_answers).sum();
    let late = s.calls.values().filter(|c| c.settled.as_ref().is_some_and(|s| s.late)).count();
    let ended = s.generations.iter().filter(|g| g.ended.is_some()).count();
    let parts = [s.calls.len(), settled, extra as usize, late, ended, s.generations.len()];
    let tools = u64::from(s.tools_generation) * 2 + u64::from(s.tools_stale);
    parts.iter().fold(tools, |sum, n| sum.wrapping_mul(1_000_003).wrapping_add(*n as u64))
}
