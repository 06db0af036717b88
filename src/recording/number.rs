//! Counts on over the runs of one file: each begins its numbers, times and generations anew.

use crate::journal::event::{Kind, Note, Purpose};
use crate::record::entry::{Entry, What};

/// What the runs before came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numbers {
    seq_base: u64,
    generation_base: u32,
    exchange_base: u64,
    mono_base: u64,
    seq: u64,
    generation: u32,
    exchange: u64,
    mono: u64,
}

impl Numbers {
    /// A header came.
    pub fn new_run(&mut self) {
        self.seq_base = self.seq;
        self.generation_base = self.generation;
        self.exchange_base = self.exchange;
        self.mono_base = self.mono;
    }

    /// Numbers of this run that were seen without their entry; the generation over all runs.
    pub fn saw(&mut self, seq: u64, mono_us: u64, generation: u32, exchange: Option<u64>) -> u32 {
        self.seq = self.seq.max(seq.saturating_add(self.seq_base));
        self.mono = self.mono.max(mono_us.saturating_add(self.mono_base));
        if let Some(x) = exchange {
            self.exchange = self.exchange.max(x.saturating_add(self.exchange_base));
        }
        if generation == 0 {
            return 0;
        }
        let generation = generation.saturating_add(self.generation_base);
        self.generation = self.generation.max(generation);
        generation
    }

    /// The first number of this run, less one.
    pub fn seq_base(&self) -> u64 {
        self.seq_base
    }

    /// The entry with the numbers it has in the whole file.
    pub fn place(&mut self, mut e: Entry) -> Entry {
        e.seq = e.seq.saturating_add(self.seq_base);
        e.mono_us = e.mono_us.saturating_add(self.mono_base);
        if e.generation > 0 {
            e.generation = e.generation.saturating_add(self.generation_base);
        }
        if let What::Event(kind) = &mut e.what {
            self.inside(kind);
        }
        self.seq = self.seq.max(e.seq);
        self.generation = self.generation.max(e.generation);
        self.mono = self.mono.max(e.mono_us);
        e
    }

    fn inside(&mut self, kind: &mut Kind) {
        let base = self.seq_base;
        match kind {
            Kind::Sent { exchange, purpose, .. } => {
                if let Purpose::FollowUp { call } = purpose {
                    *call = call.saturating_add(base);
                }
                self.exchange(exchange);
            }
            Kind::Received { exchange, .. } => self.exchange(exchange),
            Kind::Http { exchange, .. } => {
                let mut x = Some(*exchange);
                self.exchange(&mut x);
                *exchange = x.unwrap_or(*exchange);
            }
            Kind::NotWritten { sent: n, .. }
            | Kind::Note(
                Note::TimedOut { call: n, .. }
                | Note::Cancelled { call: n }
                | Note::StoppedWaiting { call: n }
                | Note::Limit { call: n, .. }
                | Note::LeftOpen { call: n, .. }
                | Note::Remark { call: n, .. }
                | Note::NoAnswer { call: n, .. }
                | Note::Stdin { from: n, .. },
            ) => *n = n.saturating_add(base),
            _ => {}
        }
    }

    fn exchange(&mut self, x: &mut Option<u64>) {
        if let Some(x) = x {
            *x = x.saturating_add(self.exchange_base);
            self.exchange = self.exchange.max(*x);
        }
    }
}
