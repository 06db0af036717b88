//! `redial call`: a first delivery of a `tools/call`, and its outcome. Sends what a person typed, once. With a
//! ledger, a request_id that the ledger already has makes it a repeat, behind the gate.

use super::args::CallArgs;
use super::connect::{arguments_object, check_request_id, known_tool, open};
use super::open::{ledger_error, open_ledger};
use super::reissue::run_prepared;
use super::report::{Done, Failure, Witness};
use crate::error::{Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::reissue::Wish;
use crate::json::raw;
use crate::model::arguments::{Candidate, Source};

pub async fn run(a: CallArgs) -> Done {
    arguments_object(&a.args, "--args")?;
    let id = raw::get_str(&a.args, "request_id");
    if let Some(id) = &id {
        check_request_id(id)?;
    }
    let endpoint = a.endpoint.required()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    if let Some(l) = &ledger {
        l.read_async(|_| Ok(())).await.map_err(ledger_error)?;
    }
    let client = open(endpoint, &a.endpoint, a.timeout).await?;
    let mut inspector = Inspector::new(ledger, Some(client.clone()), rules);
    inspector.read_only = a.read_only.read_only;
    let done = call(&inspector, &a, id).await;
    let done = done.map_err(|error| Failure { error, witness: Some(Witness::of(&client, None)) });
    client.close().await;
    done
}

async fn call(inspector: &Inspector, a: &CallArgs, id: Option<String>) -> Result<Exit> {
    known_tool(&inspector.client()?.tools().await?, &a.tool)?;
    let wish = Wish {
        request_id: id.clone(),
        tool: Some(a.tool.clone()),
        candidates: vec![Candidate {
            args: a.args.clone(),
            tool: Some(a.tool.clone()),
            source: Source::Given,
        }],
        first_delivery: true,
    };
    let prepared = inspector.prepare(&wish).await?;
    run_prepared(
        inspector,
        &prepared,
        a.confirm.as_deref(),
        a.timeout,
        a.json,
        "redial/call@1",
        id.as_deref(),
    )
    .await
}
