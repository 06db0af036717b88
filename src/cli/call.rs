//! `redial call`: a first delivery of a `tools/call`, and its outcome. Sends what a person typed, once. With a
//! ledger, a request_id that the ledger already has makes it a repeat, behind the gate.

use super::args::CallArgs;
use super::connect::{arguments_object, check_request_id, known_tool, open, settings};
use super::interrupt::{Interrupt, watched};
use super::open::{open_ledger, readable};
use super::reissue::{Run, run_prepared};
use super::report::Done;
use crate::client::Settings;
use crate::error::{Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::reissue::Wish;
use crate::json::raw;
use crate::model::arguments::{Candidate, Source};

pub async fn run(a: CallArgs, config: &crate::config::Config) -> Done {
    arguments_object(&a.args, "--args")?;
    let id = raw::get_str(&a.args, "request_id");
    if let Some(id) = &id {
        check_request_id(id)?;
    }
    let endpoint = a.endpoint.required()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    readable(ledger.as_ref()).await?;
    let interrupt = Interrupt::listen();
    let settings = Settings {
        answerer: a.elicit.answerer(),
        ..settings(&a.endpoint, a.endpoint.call_limit(a.timeout))
    };
    let client = open(endpoint, settings, &interrupt).await?;
    let mut inspector = Inspector::new(ledger, Some(client.clone()), rules);
    inspector.read_only = a.read_only.read_only;
    inspector.hints = config.hint_overrides();
    inspector.look_up = a.lookup.clone();
    watched(&client, &interrupt, &a.lookup, call(&inspector, &a, id, &interrupt)).await
}

async fn call(
    inspector: &Inspector,
    a: &CallArgs,
    id: Option<String>,
    interrupt: &Interrupt,
) -> Result<Exit> {
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
        limit_s: Some(a.endpoint.call_limit(a.timeout)),
    };
    let prepared = inspector.prepare(&wish).await?;
    let run = Run {
        confirm: a.confirm.as_deref(),
        json: a.json,
        schema: "redial/call@1",
        id: id.as_deref(),
        interrupt,
    };
    run_prepared(inspector, &prepared, &run).await
}
