//! Holds the server's open questions until a person has answered; whatever is left when the screen ends is cancelled by
//! being dropped.

use super::Hands;
use crate::client::{Choice, Question};
use crate::time::Time;
use crate::tui::form::Form;
use crate::tui::msg::Msg;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How often it is looked whether a question is still wanted (a call can end while its question is open).
const LOOK: Duration = Duration::from_millis(500);

/// An answer: the question's number, and the values; none declines.
pub type Answer = (u64, Option<String>);

pub async fn serve(
    hands: Hands,
    mut questions: mpsc::UnboundedReceiver<Question>,
    mut answers: mpsc::UnboundedReceiver<Answer>,
) {
    let mut open: HashMap<u64, oneshot::Sender<Choice>> = HashMap::new();
    let mut id = 0;
    loop {
        tokio::select! {
            question = questions.recv() => {
                let Some(q) = question else { return };
                id += 1;
                let form = Form::new(id, Time::now(), &q.params, of(&hands, q.call));
                open.insert(id, q.reply);
                hands.tell(Msg::Asked(Box::new(form))).await;
            }
            answer = answers.recv() => {
                let Some((id, content)) = answer else { return };
                if let Some(reply) = open.remove(&id) {
                    // Nobody waits for it any more: then the question was over, and says so itself.
                    reply.send(content.map_or(Choice::Decline, Choice::Accept)).ok();
                }
            }
            () = tokio::time::sleep(LOOK), if !open.is_empty() => {
                let over: Vec<u64> =
                    open.iter().filter(|(_, r)| r.is_closed()).map(|(id, _)| *id).collect();
                for id in over {
                    open.remove(&id);
                    hands.tell(Msg::AskedNoMore { id }).await;
                }
            }
        }
    }
}

/// The call that waits, in words.
fn of(hands: &Hands, call: Option<crate::journal::CallId>) -> Option<String> {
    let client = hands.inspector.client.as_ref()?;
    client.journal().read(|s| {
        let call = s.calls.get(&call?)?;
        Some(match &call.request_id {
            Some(id) => format!("{} {id}", call.tool),
            None => call.tool.clone(),
        })
    })
}
