//! What an index joins while it reads heads: names to numbers, answers to what they answer.

use super::head::Head;
use super::{ALONE, IS_TOOL};
use crate::record::summary::Rpc;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Names, each kept once.
#[derive(Default)]
pub(super) struct Names {
    pub(super) list: Vec<String>,
    known: HashMap<String, u32>,
}

impl Names {
    pub(super) fn of(&mut self, name: &str) -> u32 {
        if self.list.is_empty() {
            self.list.push(String::new());
        }
        if name.is_empty() {
            return 0;
        }
        if let Some(n) = self.known.get(name) {
            return *n;
        }
        // Names are few; a hostile file may make each its own.
        if self.list.len() >= 1 << 20 {
            return 0;
        }
        let n = u32::try_from(self.list.len()).unwrap_or(0);
        self.list.push(name.to_owned());
        self.known.insert(name.to_owned(), n);
        n
    }
}

/// Requests that wait for their answer, by a hash of life, direction, exchange and id.
#[derive(Default)]
pub(super) struct Asked {
    hash: RandomState,
    open: HashMap<u64, u32>,
}

impl Asked {
    /// Takes an event in; for an answer the place of what it answers.
    pub(super) fn peer(&mut self, h: &Head<'_>, life: (u16, u16), i: u32) -> u32 {
        let Some(rpc) = rpc_of(h.rpc).filter(|_| !h.id.is_empty()) else { return ALONE };
        let key = |side: u8, x: Option<u64>| self.hash.hash_one((life, side, x, h.id));
        if rpc == Rpc::Request {
            let (any, own) = (key(h.kind, None), key(h.kind, h.exchange));
            self.open.insert(any, i);
            self.open.insert(own, i);
            return ALONE;
        }
        if !rpc.is_answer() {
            return ALONE;
        }
        // Clients that share a life may use the same ids: the exchange tells whose answer it is.
        let (own, any) = (key(h.kind ^ 1, h.exchange), key(h.kind ^ 1, None));
        let Some(q) = self.open.remove(&own).or_else(|| self.open.get(&any).copied()) else {
            return ALONE;
        };
        if self.open.get(&any) == Some(&q) {
            self.open.remove(&any);
        }
        q
    }
}

pub(super) fn rpc_of(n: u8) -> Option<Rpc> {
    const ALL: [Rpc; 6] =
        [Rpc::Request, Rpc::Notification, Rpc::Result, Rpc::ToolError, Rpc::Error, Rpc::Malformed];
    ALL.get(usize::from((n & !IS_TOOL).checked_sub(1)?)).copied()
}
