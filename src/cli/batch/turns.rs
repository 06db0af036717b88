//! Which requests this batch has under way or has sent: a second line with the same request_id waits for the first, and
//! is a repeat once that one may have been run. Lines take their turns in the order of the input.

use crate::json::key::{self, REQUEST_ID};
use crate::json::raw;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The requests of one batch.
#[derive(Default)]
pub struct Turns {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// Ends when the line that took its turn last is done with, by [`queue`].
    last: HashMap<String, oneshot::Receiver<()>>,
    /// Requests of which a call was sent, or may have been, by [`key`].
    sent: HashSet<String>,
}

/// A line's place behind those before it that name the same request.
pub struct Turn {
    key: Option<String>,
    before: Option<oneshot::Receiver<()>>,
    /// Dropped with the turn: the next one begins.
    _done: oneshot::Sender<()>,
}

/// Under what name a request is known here: as everywhere, a number is its digits in a text. What is no id at all, yet
/// stands where one belongs, is its own spelling.
fn key(args: &str) -> Option<String> {
    let value = raw::get(args, REQUEST_ID)?.trim();
    (!raw::is_null(value)).then(|| key::text(value).unwrap_or_else(|| value.to_owned()))
}

/// For whom a line waits: a column of numbers takes `"05"`, `" 5"` and `5.0` for one row. Only once the line before is
/// done with can the ledger tell whether they are one.
fn queue(key: &str) -> String {
    let text = key.trim();
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    match text.parse::<f64>() {
        // A zero has a sign, which no row has.
        Ok(n) if is_number && n.is_finite() => format!("{:?}", n + 0.0),
        _ => key.to_owned(),
    }
}

impl Turns {
    /// Takes a place. To be called in the order of the input.
    pub fn enter(&self, args: &str) -> Turn {
        let (done, ends) = oneshot::channel();
        let key = key(args);
        let before = key.as_ref().and_then(|k| self.book().last.insert(queue(k), ends));
        Turn { key, before, _done: done }
    }

    /// Whether a call of that request was sent before, or may have been.
    pub fn was_sent(&self, turn: &Turn) -> bool {
        turn.key.as_ref().is_some_and(|k| self.book().sent.contains(k))
    }

    /// A call of it was sent, or nobody knows.
    pub fn sent(&self, turn: &Turn) {
        if let Some(key) = &turn.key {
            self.book().sent.insert(key.clone());
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Waits until the lines before it that name the same request are done with.
    pub async fn comes(&mut self) {
        if let Some(before) = &mut self.before {
            // An error is the end, too: whoever was before is gone.
            before.await.ok();
            self.before = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_digits_wait_for_each_other() {
        for (args, want) in [
            (r#"{"request_id":"r-1"}"#, Some("r-1")),
            (r#"{"request_id":5}"#, Some("5")),
            (r#"{"request_id":5.0}"#, Some("5")),
            (r#"{"request_id":"5"}"#, Some("5")),
            (r#"{"request_id":12345678901234567890}"#, Some("12345678901234567890")),
            (r#"{"request_id":0.5}"#, Some("0.5")),
            (r#"{"request_id":-0}"#, Some("0")),
            (r#"{"request_id":-0.0}"#, Some("0")),
            (r#"{"request_id":"05"}"#, Some("05")),
            (r#"{"request_id":[1]}"#, Some("[1]")),
            (r#"{"request_id":null}"#, None),
            (r#"{"x":1}"#, None),
        ] {
            assert_eq!(key(args).as_deref(), want, "{args}");
        }
    }

    #[tokio::test]
    async fn turns_come_in_the_order_they_were_taken() {
        let turns = Turns::default();
        let args = r#"{"request_id":"r"}"#;
        let (first, mut second, mut third) =
            (turns.enter(args), turns.enter(args), turns.enter(args));
        let mut other = turns.enter(r#"{"request_id":"s"}"#);
        other.comes().await;
        assert!(has_to_wait(&mut second) && has_to_wait(&mut third));
        turns.sent(&first);
        drop(first);
        second.comes().await;
        assert!(turns.was_sent(&second) && !turns.was_sent(&other));
        assert!(has_to_wait(&mut third));
        drop(second);
        third.comes().await;
    }

    #[tokio::test]
    async fn what_a_column_of_numbers_takes_for_one_row_never_goes_out_at_once() {
        for other in [r#""05""#, r#"" 5""#, r#""+5""#, r#""5.0""#, "5.0", "0.5e1"] {
            let turns = Turns::default();
            let first = turns.enter(r#"{"request_id":5}"#);
            let mut second = turns.enter(&format!(r#"{{"request_id":{other}}}"#));
            assert!(has_to_wait(&mut second), "{other}");
            turns.sent(&first);
            // In a column of text they may be two: the ledger is asked.
            assert_eq!(turns.was_sent(&second), !other.starts_with('"'), "{other}");
        }
        for (one, other) in [("-0", "0"), ("1e16", "10000000000000000"), ("0", "\"-0\"")] {
            let turns = Turns::default();
            let _first = turns.enter(&format!(r#"{{"request_id":{one}}}"#));
            let mut second = turns.enter(&format!(r#"{{"request_id":{other}}}"#));
            assert!(has_to_wait(&mut second), "{one} {other}");
        }
        let turns = Turns::default();
        let _first = turns.enter(r#"{"request_id":"nan"}"#);
        assert!(!has_to_wait(&mut turns.enter(r#"{"request_id":"inf"}"#)));
    }

    /// Whether it still has to wait.
    fn has_to_wait(turn: &mut Turn) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(turn.comes()).poll(&mut context).is_pending()
    }
}
