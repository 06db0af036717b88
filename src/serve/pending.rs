//! Which requests of one peer (a stdio client, an HTTP session) are being worked on, so that a
//! `notifications/cancelled` finds them. A cancel takes the answer away, never the work.

use crate::wire::id::Id;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The requests in work of one peer: few, so a list. An id in use twice is there twice.
#[derive(Debug, Default)]
pub struct Pending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    serial: u64,
    live: Vec<(u64, Id, CancellationToken)>,
}

/// One request in work; gone from the list when dropped.
#[derive(Debug)]
pub struct Entry {
    list: Arc<Pending>,
    serial: u64,
    /// Cancelled by the peer: send no answer.
    pub cancelled: CancellationToken,
}

impl Pending {
    /// Notes that `id` is in work.
    pub fn begin(self: &Arc<Self>, id: Id) -> Entry {
        let cancelled = CancellationToken::new();
        let serial = self.with(|state| {
            state.serial += 1;
            state.live.push((state.serial, id, cancelled.clone()));
            state.serial
        });
        Entry { list: self.clone(), serial, cancelled }
    }

    /// The peer wants no answer to `id` any more. An id that isn't in work is ignored, as the spec says.
    pub fn cancel(&self, id: &Id) {
        self.with(|state| {
            for (_, _, token) in state.live.iter().filter(|(_, live, _)| live == id) {
                token.cancel();
            }
        });
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.list.with(|state| state.live.retain(|(serial, ..)| *serial != self.serial));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_reaches_every_living_use_of_its_id_and_no_other() {
        let list = Arc::new(Pending::default());
        let id = Id::from_raw("1");
        let (first, again, other) =
            (list.begin(id.clone()), list.begin(id.clone()), list.begin(Id::from_raw("\"1\"")));
        drop(first);
        list.cancel(&id);
        assert!(again.cancelled.is_cancelled() && !other.cancelled.is_cancelled());
        drop((again, other));
        assert!(list.with(|s| s.live.is_empty()));
    }
}
