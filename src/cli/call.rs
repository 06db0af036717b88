//! `redial call`: a first delivery of a `tools/call`, and its outcome. Sends what a person typed, once. With a
//! ledger, a request_id that the ledger already has makes it a repeat, behind the gate.

use super::args::CallArgs;
use super::connect::{ARGUMENTS, Opened, arguments_object, check_request_id, known_tool, text_of};
use super::interrupt::watched;
use super::reissue::{Run, run_prepared};
use super::report::Done;
use crate::error::Result;
use crate::inspect::reissue::Wish;
use crate::json::key;
use crate::model::arguments::{Candidate, Source};

pub async fn run(a: CallArgs, config: &crate::config::Config) -> Done {
    let (args, source) = arguments(&a)?;
    let request_id = key::of(&args);
    if let Some(id) = &request_id {
        check_request_id(id)?;
    }
    let calling = &a.one.calling;
    let opened = Opened::new(calling, config, |usual| usual).await?;
    let tool = Some(a.tool.clone());
    let wish = Wish {
        request_id,
        tool: tool.clone(),
        candidates: vec![Candidate { args, tool, source }],
        first_delivery: true,
        limit_s: Some(calling.call_limit_s()),
    };
    let work = async {
        known_tool(&opened.client.tools().await?, &a.tool)?;
        run_prepared(&opened.inspector, &wish, &Run::new(&a.one, "redial/call@1", &opened)).await
    };
    watched(&opened.client, &opened.interrupt, &calling.lookup, work).await
}

/// What was typed, or is in the file.
fn arguments(a: &CallArgs) -> Result<(String, Source)> {
    let (args, source, from) = match (&a.args, &a.args_file) {
        (_, Some(path)) => {
            let name = path.display().to_string();
            (text_of(path, ARGUMENTS)?, Source::File(name.clone()), name)
        }
        (args, None) => {
            (args.clone().unwrap_or_else(|| "{}".into()), Source::Given, "--args".into())
        }
    };
    arguments_object(&args, &from)?;
    Ok((args, source))
}
