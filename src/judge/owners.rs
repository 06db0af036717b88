//! What a ledger can say about who claims in it: the span of claims of each owner.
//!
//! Made from times the ledger stores; a takeover overwrites the older owner's claim, so what is seen here
//! is a part of what happened.

use crate::ledger::Row;
use crate::time::Time;
use std::collections::HashMap;

/// The claims of one owner that are still in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerClaims {
    /// The owner, as stored.
    pub owner: String,
    /// Its oldest claim.
    pub first: Time,
    /// Its newest claim.
    pub last: Time,
    /// How many.
    pub claims: u64,
}

/// So many owners with one claim each are no processes: an owner is a word for each claim (a lease, a fencing
/// token), and a newer one says nothing of an older one.
const TOKENS: usize = 3;
/// Among so many owners one may have claimed twice all the same: a takeover, a repeat under the same token.
const TOKENS_FOR_ONE_TWICE: usize = 10;

/// All owners of a ledger, in the order of their first claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerView {
    claims: Vec<OwnerClaims>,
    interleave: bool,
    for_each_claim: bool,
    /// Indices of the owner with the newest claim and of the one that comes next.
    newest: Option<usize>,
    second: Option<usize>,
}

impl OwnerView {
    /// From one entry for each owner, in any order.
    pub fn new(mut claims: Vec<OwnerClaims>) -> OwnerView {
        claims.sort_by_key(|c| (c.first, c.last));
        let mut reach: Option<Time> = None;
        let mut interleave = false;
        for c in &claims {
            // Strictly before: two owners whose claims share an instant may still have come one by one.
            interleave |= reach.is_some_and(|r| c.first < r);
            reach = reach.max(Some(c.last));
        }
        let twice = claims.iter().filter(|c| c.claims > 1).count();
        let for_each_claim = claims.len() >= TOKENS && twice * TOKENS_FOR_ONE_TWICE <= claims.len();
        let mut by_last: Vec<usize> = (0..claims.len()).collect();
        by_last.sort_by_key(|i| std::cmp::Reverse(claims[*i].last));
        let (newest, second) = (by_last.first().copied(), by_last.get(1).copied());
        OwnerView { claims, interleave, for_each_claim, newest, second }
    }

    /// There are more owners than this knows: words for each claim, as far as anybody can tell.
    pub fn of_each_claim(mut self) -> OwnerView {
        self.for_each_claim = true;
        self
    }

    /// From rows at hand; rows without an owner or a time say nothing.
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> OwnerView {
        let mut spans: HashMap<&str, (Time, Time, u64)> = HashMap::new();
        for row in rows {
            if let (Some(owner), Some(at)) = (row.owner.as_deref(), row.claimed_at) {
                let s = spans.entry(owner).or_insert((at, at, 0));
                *s = (s.0.min(at), s.1.max(at), s.2 + 1);
            }
        }
        let claims = spans.into_iter().map(|(owner, (first, last, claims))| OwnerClaims {
            owner: owner.to_owned(),
            first,
            last,
            claims,
        });
        OwnerView::new(claims.collect())
    }

    /// Claims of different owners alternate: several processes share the file.
    pub fn interleave(&self) -> bool {
        self.interleave
    }

    /// An owner is a word for each claim and no process: none, or next to none, of many has claimed twice.
    pub fn for_each_claim(&self) -> bool {
        self.for_each_claim
    }

    /// The claims of `owner`.
    pub fn claims_of(&self, owner: &str) -> Option<&OwnerClaims> {
        self.claims.iter().find(|c| c.owner == owner)
    }

    /// The earliest known claim by another owner after `at`.
    pub fn newer_than(&self, owner: &str, at: Time) -> Option<Time> {
        let after = self.claims.partition_point(|c| c.first <= at);
        let begun = self.claims[after..].iter().find(|c| c.owner != owner).map(|c| c.first);
        // An owner that began earlier and went on claiming: only its newest claim is known to be later.
        let went_on = [self.newest, self.second]
            .into_iter()
            .flatten()
            .map(|i| &self.claims[i])
            .find(|c| c.owner != owner && c.last > at)
            .map(|c| c.last);
        begun.into_iter().chain(went_on).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(spans: &[(&str, i64, i64)]) -> OwnerView {
        OwnerView::new(
            spans
                .iter()
                .map(|(o, f, l)| OwnerClaims {
                    owner: (*o).into(),
                    first: Time(*f),
                    last: Time(*l),
                    claims: if f == l { 1 } else { 2 },
                })
                .collect(),
        )
    }

    #[test]
    fn alternating_claims_are_told_from_one_after_the_other() {
        for (spans, want) in [
            (&[("a", 1, 3), ("b", 4, 6), ("c", 7, 7)][..], false),
            (&[("a", 1, 3), ("b", 3, 6)], false),
            (&[("a", 1, 3), ("b", 3, 3)], false),
            (&[("a", 1, 3), ("b", 2, 2)], true),
            (&[("a", 1, 9), ("b", 2, 3), ("c", 10, 11)], true),
            (&[("a", 1, 9), ("b", 2, 3), ("c", 8, 11)], true),
            (&[("a", 1, 9)], false),
            (&[], false),
        ] {
            assert_eq!(view(spans).interleave(), want, "{spans:?}");
        }
    }

    #[test]
    fn an_owner_for_each_claim_is_no_process() {
        let single = |n: i64| (0..n).map(|i| (format!("token-{i}"), i, i)).collect::<Vec<_>>();
        let of = |spans: &[(String, i64, i64)]| {
            let spans: Vec<_> = spans.iter().map(|(o, f, l)| (o.as_str(), *f, *l)).collect();
            view(&spans).for_each_claim()
        };
        assert!(of(&single(20)) && of(&single(3)), "none of many has two claims");
        // Two processes that each claimed once look the same as two tokens: those are processes, as ever.
        assert!(!of(&single(2)));
        let mut one_twice = single(20);
        one_twice.push(("took-over".into(), 30, 31));
        assert!(of(&one_twice), "one repeat among many");
        let mut process = single(3);
        process.push(("a-process".into(), 5, 9));
        assert!(!of(&process));
        assert!(!of(&[]));
    }

    #[test]
    fn the_first_later_claim_of_somebody_else() {
        let v = view(&[("a", 1, 3), ("b", 4, 6), ("c", 7, 9)]);
        assert_eq!(v.newer_than("a", Time(2)), Some(Time(4)));
        assert_eq!(v.newer_than("b", Time(5)), Some(Time(7)));
        assert_eq!(v.newer_than("c", Time(7)), None, "its own later claims are no newer owner");
        let shared = view(&[("a", 1, 9), ("b", 2, 8)]);
        assert_eq!(shared.newer_than("a", Time(5)), Some(Time(8)));
        assert_eq!(shared.newer_than("b", Time(8)), Some(Time(9)));
        assert_eq!(view(&[]).newer_than("a", Time(0)), None);
    }
}
