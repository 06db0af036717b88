//! Handles: where each value was made, by whom it was used, and what that means across restarts and sessions.
//!
//! Keeps a record of each value up to [`DETAILED`], of more only that they were made, up to [`KNOWN`]; beyond that
//! nothing is concluded from not knowing a value.

use super::lean;
use std::collections::{HashMap, HashSet};

/// Values with all their life kept.
pub const DETAILED: usize = 200_000;
/// Values of which it is only kept that they were made.
pub const KNOWN: usize = 2_000_000;
/// Entries of lists inside one record.
const FEW: usize = 16;

/// Who called, and on which life of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Who {
    /// The life of the server, or the HTTP session.
    pub generation: u32,
    /// The session, by a header of the line; 0: not told.
    pub session: u64,
    /// The credential; 0: none, or not told.
    pub credential: u64,
    /// The client by its name, from 1; 0: not told.
    pub client: u32,
}

/// One value under one name.
#[derive(Debug, Clone)]
pub struct Handle {
    /// Its name, by number.
    pub name: u32,
    /// The value.
    pub value: Box<str>,
    /// The tool that returned it first, by number.
    pub tool: u32,
    /// In which call.
    pub call: u64,
    /// By whom.
    pub who: Who,
    /// The key of that request, if it had one.
    pub key: u64,
    /// Its tool says that it only reads: it told of the value, and did not make it.
    pub told: bool,
    /// How often it was used.
    pub uses: u64,
    /// The newest use, and whether it was good (`None`: not answered).
    pub last: Option<(u64, u32, Option<bool>)>,
    /// Lives of the server it was used on, oldest first, but for where it was made.
    pub used_on: Vec<u32>,
    /// Made again: by which call, in which life.
    pub again: Vec<(u64, u32)>,
    /// Refused after a restart: by which call, in which life.
    pub lost: Option<(u64, u32)>,
    /// Good after a restart.
    pub across: Option<(u64, u32)>,
    /// Used by others than who made it.
    pub foreign: Vec<(u64, Who)>,
    next: Option<u32>,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Handles {
    all: Vec<Handle>,
    by_value: HashMap<u64, u32>,
    more: HashSet<u64>,
    /// So many that not knowing a value means nothing any more.
    pub saturated: bool,
}

/// What is known of a value that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Made, here.
    Made(usize),
    /// Made under another name, here.
    Other(usize),
    /// Made, and its details were let go.
    Dim,
    /// Never made.
    Never,
}

impl Handles {
    /// Number `i`.
    pub fn get(&self, i: usize) -> Option<&Handle> {
        self.all.get(i)
    }

    /// Number `i`, to change.
    pub fn get_mut(&mut self, i: usize) -> Option<&mut Handle> {
        self.all.get_mut(i)
    }

    /// All with details, in the order they were made.
    pub fn all(&self) -> &[Handle] {
        &self.all
    }

    /// How many values were made.
    pub fn len(&self) -> usize {
        self.all.len() + self.more.len()
    }

    /// None were made.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number that stands for a value.
    pub fn number(value: &str) -> u64 {
        lean::hash(value.as_bytes())
    }

    /// Whether the value was made under any name.
    pub fn holds(&self, number: u64) -> bool {
        self.by_value.contains_key(&number) || self.more.contains(&number)
    }

    /// What is known of a value under names that `same` says are its own.
    pub fn seen(&self, value: &str, same: impl Fn(u32) -> bool) -> Seen {
        let number = Handles::number(value);
        let mut at = self.by_value.get(&number).copied();
        let mut other = None;
        while let Some(i) = at {
            let Some(h) = self.all.get(i as usize) else { break };
            if *h.value == *value {
                if same(h.name) {
                    return Seen::Made(i as usize);
                }
                other.get_or_insert(i as usize);
            }
            at = h.next;
        }
        match other {
            Some(i) => Seen::Other(i),
            None if self.saturated || self.more.contains(&number) => Seen::Dim,
            None => Seen::Never,
        }
    }

    /// Adds a value that was made.
    pub fn add(&mut self, mut h: Handle) {
        let number = Handles::number(&h.value);
        if self.all.len() >= DETAILED {
            if self.more.len() < KNOWN {
                self.more.insert(number);
            } else {
                self.saturated = true;
            }
            return;
        }
        let Ok(i) = u32::try_from(self.all.len()) else { return };
        h.next = self.by_value.insert(number, i);
        self.all.push(h);
    }
}

impl Handle {
    /// Made by this call.
    pub fn new(name: u32, value: &str, tool: u32, call: u64, who: Who) -> Handle {
        Handle {
            name,
            value: value.into(),
            tool,
            call,
            who,
            key: 0,
            told: false,
            uses: 0,
            last: None,
            used_on: Vec::new(),
            again: Vec::new(),
            lost: None,
            across: None,
            foreign: Vec::new(),
            next: None,
        }
    }

    /// Where it was made last, in calls and lives.
    pub fn newest(&self) -> (u64, u32) {
        self.again.last().copied().unwrap_or((self.call, self.who.generation))
    }

    /// Notes a use.
    pub fn used(&mut self, call: u64, generation: u32, good: Option<bool>) {
        self.uses += 1;
        self.last = Some((call, generation, good));
        let known = generation == self.who.generation || self.used_on.contains(&generation);
        if !known && self.used_on.len() < FEW {
            self.used_on.push(generation);
        }
    }

    /// Notes that it was made again; whether that is new.
    pub fn made_again(&mut self, call: u64, generation: u32) -> bool {
        let new = self.newest().1 != generation && self.again.len() < FEW;
        if new {
            self.again.push((call, generation));
        }
        new
    }

    /// Notes another's use; whether that one is new.
    pub fn used_by(&mut self, call: u64, who: Who) -> bool {
        let new = !self.foreign.iter().any(|(_, w)| *w == who) && self.foreign.len() < FEW;
        if new {
            self.foreign.push((call, who));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_by_name_and_apart_from_it() {
        let mut h = Handles::default();
        let who = Who { generation: 1, ..Who::default() };
        h.add(Handle::new(1, "b-1", 0, 1, who));
        h.add(Handle::new(2, "b-1", 0, 2, who));
        assert_eq!(h.seen("b-1", |n| n == 1), Seen::Made(0));
        assert_eq!(h.seen("b-1", |n| n == 2), Seen::Made(1));
        assert!(matches!(h.seen("b-1", |n| n == 3), Seen::Other(_)));
        assert_eq!(h.seen("b-2", |_| true), Seen::Never);
    }

    #[test]
    fn beyond_the_bound_nothing_is_concluded() {
        let mut h = Handles::default();
        let who = Who::default();
        for n in 0..DETAILED + 3 {
            h.add(Handle::new(1, &n.to_string(), 0, 1, who));
        }
        assert_eq!(h.all().len(), DETAILED);
        assert_eq!(h.seen(&(DETAILED + 1).to_string(), |_| true), Seen::Dim);
        assert_eq!(h.seen("never", |_| true), Seen::Never);
        h.saturated = true;
        assert_eq!(h.seen("never", |_| true), Seen::Dim);
    }
}
