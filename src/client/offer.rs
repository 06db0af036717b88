//! What redial offers a server that asks: only what it can answer is advertised, and everything else is refused
//! at once. Never shows anything itself: a person is asked through a channel.

use crate::journal::CallId;
use crate::json::raw;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{mpsc, oneshot};

/// How many questions may be open at once; a server that asks more is refused.
const OPEN: usize = 16;

/// A folder that is told to servers which ask (`roots/list`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// Its name for people.
    pub name: Option<String>,
}

/// Who answers `elicitation/create`.
#[derive(Debug, Clone, Default)]
pub enum Answerer {
    /// Nobody: it is not advertised, and refused with -32601.
    #[default]
    Nobody,
    /// Advertised, and declined at once: a server that asks gets an answer, and nothing is agreed to.
    Decline,
    /// The defaults of the schema are accepted; declined when a required value has none.
    AcceptDefaults,
    /// Somebody at the other end of this channel.
    Ask(mpsc::UnboundedSender<Question>),
}

/// A question of the server. Dropping `reply` cancels it.
#[derive(Debug)]
pub struct Question {
    /// The call that it belongs to, where that is known (an input-required round).
    pub call: Option<CallId>,
    /// The raw params: `message` and `requestedSchema`. Foreign text.
    pub params: String,
    /// Takes the answer.
    pub reply: oneshot::Sender<Choice>,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Accepted, with the raw JSON object of the values.
    Accept(String),
    /// Declined.
    Decline,
    /// Dismissed without a choice.
    Cancel,
}

/// What a connection offers.
#[derive(Debug, Default)]
pub(super) struct Offer {
    roots: Vec<Root>,
    answerer: Answerer,
    open: AtomicUsize,
}

impl Offer {
    pub fn new(roots: Vec<Root>, answerer: Answerer) -> Offer {
        Offer { roots, answerer, open: AtomicUsize::new(0) }
    }

    /// The client capabilities: of `initialize`, or of each request in 2026-07-28 (which also says that tasks
    /// are understood, SEP-2663).
    pub fn capabilities(&self, modern: bool) -> String {
        let mut out = Vec::new();
        if !matches!(self.answerer, Answerer::Nobody) {
            out.push(r#""elicitation":{"form":{}}"#);
        }
        if !self.roots.is_empty() {
            out.push(r#""roots":{}"#);
        }
        if modern {
            out.push(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#);
        }
        format!("{{{}}}", out.join(","))
    }

    /// Whether a method was advertised.
    pub fn offers(&self, method: &str) -> bool {
        match method {
            "roots/list" => !self.roots.is_empty(),
            "elicitation/create" => !matches!(self.answerer, Answerer::Nobody),
            _ => false,
        }
    }

    /// The raw result for a request of the server.
    ///
    /// # Errors
    /// Code and words when it can't be answered.
    pub async fn answer(
        &self,
        method: &str,
        params: &str,
        call: Option<CallId>,
    ) -> Result<String, (i64, String)> {
        match method {
            "roots/list" if self.offers(method) => Ok(self.roots_result()),
            "elicitation/create" if self.offers(method) => {
                let mode = raw::get_str(params, "mode");
                if mode.is_some_and(|m| m != "form") {
                    return Err((-32602, "redial only offers the form mode".into()));
                }
                self.elicit(params, call).await
            }
            _ => Err((-32601, format!("redial does not offer {method}"))),
        }
    }

    fn roots_result(&self) -> String {
        let one = |r: &Root| match &r.name {
            Some(n) => format!(r#"{{"uri":{},"name":{}}}"#, raw::quote(&r.uri), raw::quote(n)),
            None => format!(r#"{{"uri":{}}}"#, raw::quote(&r.uri)),
        };
        let all: Vec<String> = self.roots.iter().map(one).collect();
        format!(r#"{{"roots":[{}]}}"#, all.join(","))
    }

    async fn elicit(&self, params: &str, call: Option<CallId>) -> Result<String, (i64, String)> {
        let choice = match &self.answerer {
            Answerer::Nobody | Answerer::Decline => Choice::Decline,
            Answerer::AcceptDefaults => match defaults(params) {
                Some(content) => Choice::Accept(content),
                None => Choice::Decline,
            },
            Answerer::Ask(channel) => {
                if self.open.fetch_add(1, Ordering::SeqCst) >= OPEN {
                    self.open.fetch_sub(1, Ordering::SeqCst);
                    return Err((-32000, format!("{OPEN} questions are open already")));
                }
                let (reply, answer) = oneshot::channel();
                let asked = channel.send(Question { call, params: params.to_owned(), reply });
                let choice = match asked {
                    Ok(()) => answer.await.unwrap_or(Choice::Cancel),
                    Err(_) => Choice::Cancel,
                };
                self.open.fetch_sub(1, Ordering::SeqCst);
                choice
            }
        };
        Ok(match choice {
            Choice::Accept(content) => format!(r#"{{"action":"accept","content":{content}}}"#),
            Choice::Decline => r#"{"action":"decline"}"#.into(),
            Choice::Cancel => r#"{"action":"cancel"}"#.into(),
        })
    }
}

/// The defaults of the requested schema as one object (SEP-1034); `None` when a required value has none.
pub fn defaults(params: &str) -> Option<String> {
    let schema = raw::get(params, "requestedSchema").unwrap_or("{}");
    let properties = raw::get(schema, "properties").and_then(raw::members).unwrap_or_default();
    let mut out = Vec::new();
    let mut have = Vec::new();
    for (name, property) in &properties {
        if let Some(value) = raw::get(property, "default") {
            out.push(format!("{}:{value}", raw::quote(name)));
            have.push(name.as_ref());
        }
    }
    let required = raw::get(schema, "required").and_then(raw::items).unwrap_or_default();
    let met = required.iter().filter_map(|r| raw::as_str(r)).all(|r| have.contains(&r.as_str()));
    met.then(|| format!("{{{}}}", out.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_answered_is_advertised() {
        let none = Offer::default();
        assert_eq!(none.capabilities(false), "{}");
        assert!(!none.offers("roots/list") && !none.offers("elicitation/create"));
        let root = Root { uri: "file:///srv".into(), name: None };
        let some = Offer::new(vec![root], Answerer::AcceptDefaults);
        assert_eq!(some.capabilities(false), r#"{"elicitation":{"form":{}},"roots":{}}"#);
        assert!(some.offers("roots/list") && !some.offers("sampling/createMessage"));
    }

    #[test]
    fn defaults_are_taken_as_they_are_written_and_a_missing_one_declines() {
        let p = r#"{"message":"m","requestedSchema":{"properties":{"a":{"type":"number","default":95.50},"b":{"default":[1]},"c":{}},"required":["a"]}}"#;
        assert_eq!(defaults(p).as_deref(), Some(r#"{"a":95.50,"b":[1]}"#));
        assert_eq!(defaults(&p.replace(r#"["a"]"#, r#"["a","c"]"#)), None);
        assert_eq!(defaults("{}").as_deref(), Some("{}"));
    }

    #[tokio::test]
    async fn a_person_answers_and_a_dropped_question_is_cancelled() {
        let (tx, mut rx) = mpsc::unbounded_channel();
        let offer = Offer::new(vec![], Answerer::Ask(tx));
        tokio::spawn(async move {
            let q: Question = rx.recv().await.unwrap();
            q.reply.send(Choice::Accept(r#"{"ok":true}"#.into())).unwrap();
            drop(rx.recv().await.unwrap());
        });
        let ask = || offer.answer("elicitation/create", r#"{"message":"?"}"#, None);
        assert_eq!(ask().await.unwrap(), r#"{"action":"accept","content":{"ok":true}}"#);
        assert_eq!(ask().await.unwrap(), r#"{"action":"cancel"}"#);
        let url = offer.answer("elicitation/create", r#"{"mode":"url"}"#, None).await;
        assert_eq!(url.unwrap_err().0, -32602);
    }
}
