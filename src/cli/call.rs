//! `redial call`: one first delivery of a `tools/call`, and its outcome. Sends what a person typed, once.

use super::args::CallArgs;
use super::connect::{arguments_object, check_request_id, known_tool, open};
use super::json;
use super::plain::{Plain, Role, print_raw};
use super::report::{CallJson, Done, Witness, exit_of};
use crate::error::{Error, Exit};
use crate::journal::Hint;
use crate::json::raw;
use serde::Serialize;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    #[serde(flatten)]
    call: CallJson,
}

pub async fn run(a: CallArgs) -> Done {
    arguments_object(&a.args, "--args")?;
    if let Some(id) = raw::get_str(&a.args, "request_id") {
        check_request_id(&id)?;
    }
    let client = open(a.endpoint.required()?, &a.endpoint, a.timeout).await?;
    let done = call(&client, &a).await;
    client.close().await;
    done
}

async fn call(client: &crate::client::Client, a: &CallArgs) -> Done {
    let list = client.tools().await?;
    let reads_only = known_tool(&list, &a.tool)?.is_some_and(|t| t.read_only == Hint::True);
    let id = client.call(&a.tool, &a.args, None).await?;
    let Some(call) = client.settled(id).await else {
        return Err(
            Error::new(Exit::Unknown, "the call is not in the journal: outcome unknown").into()
        );
    };
    let report = CallJson::new(&call, Witness::of(client, Some(call.generation)));
    if a.json {
        print_raw(&json::document(&Doc { schema: "redial/call@1", call: report })).ok();
    } else {
        let mut p = Plain::default();
        p.field("call", Role::Strong, &format!("{} {}", a.tool, a.args));
        report.plain(&mut p);
        p.print().ok();
    }
    Ok(exit_of(&call, reads_only))
}
