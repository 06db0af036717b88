//! The server's own look-up (`find_request` unless configured): run without the gate only when the tool says
//! that it is read-only.

use super::Inspector;
use crate::error::Result;
use crate::journal::{Call, Outcome, ToolList};
use crate::json::key::{self, REQUEST_ID, Spelling};
use crate::model::LookUp;
use crate::model::hash::Shape;

/// What asking the server came to.
#[derive(Debug, Clone)]
pub struct Looked {
    /// The server's answer, raw; `None` when there is none.
    pub answer: Option<LookUp>,
    /// Why there is no answer.
    pub why: Option<String>,
    /// The call, when one was made.
    pub call: Option<Call>,
}

impl Looked {
    fn no(why: impl Into<String>) -> Looked {
        Looked { answer: None, why: Some(why.into()), call: None }
    }
}

impl Inspector {
    /// Asks the server about a request. Waits for the connection.
    ///
    /// # Errors
    /// Exit 2 without an endpoint, exit 5 when it never became ready.
    pub async fn look_up(&self, request_id: &str) -> Result<Looked> {
        let client = self.client()?;
        let tools = client.tools().await?;
        if let Some(why) = self.may_not_look_up(&tools) {
            return Ok(Looked::no(why));
        }
        let said = tools.find(&self.look_up).and_then(|t| Shape::of(t).spelling());
        let spelling = match said {
            Some(said) => said,
            None => self.stored_as(request_id).await,
        };
        let args = format!(r#"{{"{REQUEST_ID}":{}}}"#, key::spelled(request_id, spelling));
        let id = client.call(&self.look_up, &args, None).await?;
        let Some(call) = client.settled(id).await else {
            return Ok(Looked::no("the look-up is not in the journal"));
        };
        let answer =
            client.journal().read(|s| LookUp::read(&call, s.generation_n(call.generation)));
        let why = match (&answer, call.settled.as_ref()) {
            (Some(_), _) => None,
            (None, Some(s)) if s.outcome == Outcome::Ok => {
                Some(format!("{} answered without an object", self.look_up))
            }
            (None, Some(s)) => Some(s.why.clone()),
            (None, None) => Some("the look-up has no outcome".into()),
        };
        Ok(Looked { answer, why, call: Some(call) })
    }

    /// What the ledger keeps this id as; a string where it can't be asked.
    pub(super) async fn stored_as(&self, request_id: &str) -> Spelling {
        let Some(ledger) = &self.ledger else { return Spelling::Text };
        let id = request_id.to_owned();
        let row = ledger.read_async(move |r| r.row(&id)).await;
        row.ok().flatten().map(|r| r.id_as).unwrap_or_default()
    }

    /// Why the look-up tool is not run by itself, if it isn't.
    fn may_not_look_up(&self, tools: &ToolList) -> Option<String> {
        let name = &self.look_up;
        if tools.find(name).is_none() {
            return Some(format!("the server has no look-up tool {name}"));
        }
        (!self.reads_only(name)).then(|| {
            format!("{name} does not say that it is read-only, so it is not run by itself")
        })
    }
}
