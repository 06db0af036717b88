//! The client under the outside suite (`@modelcontextprotocol/conformance`): connects to the URL it is given and
//! does what the scenario named in `MCP_CONFORMANCE_SCENARIO` asks for. The product's own client, nothing else;
//! run by `.ci/conformance`.

use redial::client::{Answerer, Choice, Client, Endpoint, Era, Question, Settings};
use redial::error::{Error, Result};
use redial::journal::{Outcome, Tool};
use redial::json::raw;
use std::io::Write;
use std::process::ExitCode;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back() else { return ExitCode::from(2) };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let client = Client::start(Endpoint::Http { url, headers: Vec::new() }, settings(&scenario));
    let done = run(&client, &scenario).await;
    client.close().await;
    let notes = client.journal().read(|s| s.notes.clone());
    let mut err = std::io::stderr().lock();
    for (_, note) in &notes {
        writeln!(err, "note: {note}").ok();
    }
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            writeln!(err, "{e}").ok();
            ExitCode::FAILURE
        }
    }
}

/// `auto` unless the runner names a modern revision: then the server under test may not know anything else.
fn settings(scenario: &str) -> Settings {
    let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let era = if version.as_str() >= "2026" { Era::Modern } else { Era::Auto };
    let answerer = match scenario {
        "elicitation-sep1034-client-defaults" => Answerer::AcceptDefaults,
        "sep-2322-client-request-state" => Answerer::Ask(confirming()),
        _ => Answerer::Nobody,
    };
    let listen = matches!(answerer, Answerer::AcceptDefaults);
    Settings { era, answerer, listen, ..Settings::default() }
}

/// Somebody who confirms everything.
fn confirming() -> mpsc::UnboundedSender<Question> {
    let (asks, mut questions) = mpsc::unbounded_channel::<Question>();
    tokio::spawn(async move {
        while let Some(q) = questions.recv().await {
            q.reply.send(Choice::Accept(r#"{"confirmed":true}"#.into())).ok();
        }
    });
    asks
}

async fn run(client: &Client, scenario: &str) -> Result<()> {
    let tools = client.tools().await?.tools;
    match scenario {
        "tools_call" => call(client, "add_numbers", r#"{"a":5,"b":3}"#).await,
        "sse-retry" => call(client, "test_reconnection", "{}").await,
        "elicitation-sep1034-client-defaults" => {
            call(client, "test_client_elicitation_defaults", "{}").await
        }
        "json-schema-2020-12-preservation" => {
            let tool = tools.iter().find(|t| t.name == "json_schema_2020_12_tool");
            let schema = tool.and_then(|t| t.input_schema.clone());
            let schema = schema.ok_or(Error::endpoint("the tool with the schema is missing"))?;
            call(client, "json_schema_echo", &format!(r#"{{"schema":{schema}}}"#)).await
        }
        "http-standard-headers" => {
            for t in &tools {
                call(client, &t.name, &arguments(t)).await?;
            }
            everything_else(client).await
        }
        "http-custom-headers" => {
            let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
            let calls = raw::get(&context, "toolCalls").and_then(raw::items).unwrap_or_default();
            for c in calls {
                let name = raw::get_str(c, "name").unwrap_or_default();
                call(client, &name, raw::get(c, "arguments").unwrap_or("{}")).await?;
            }
            Ok(())
        }
        "http-invalid-tool-headers" => {
            for t in &tools {
                call(client, &t.name, r#"{"region":"us-west1"}"#).await?;
            }
            Ok(())
        }
        "sep-2322-client-request-state" => {
            for t in &tools {
                call(client, &t.name, "{}").await?;
            }
            Ok(())
        }
        // initialize, request-metadata, json-schema-ref-no-deref: the handshake and the list are all.
        _ => Ok(()),
    }
}

async fn call(client: &Client, tool: &str, args: &str) -> Result<()> {
    let id = client.call(tool, args, None).await?;
    match client.settled(id).await.and_then(|c| c.settled) {
        Some(s) if s.outcome == Outcome::Ok => Ok(()),
        Some(s) => Err(Error::endpoint(format!("{tool}: {} ({})", s.outcome.word(), s.why))),
        None => Err(Error::endpoint(format!("{tool}: no call"))),
    }
}

async fn everything_else(client: &Client) -> Result<()> {
    let resources = client.request("resources/list", "{}").await?;
    for r in raw::get(&resources, "resources").and_then(raw::items).unwrap_or_default() {
        let uri = raw::get(r, "uri").unwrap_or("\"\"");
        client.request("resources/read", &format!(r#"{{"uri":{uri}}}"#)).await?;
    }
    let prompts = client.request("prompts/list", "{}").await?;
    for p in raw::get(&prompts, "prompts").and_then(raw::items).unwrap_or_default() {
        let name = raw::get(p, "name").unwrap_or("\"\"");
        client.request("prompts/get", &format!(r#"{{"name":{name}}}"#)).await?;
    }
    Ok(())
}

/// A value of the right type for each property.
fn arguments(tool: &Tool) -> String {
    let schema = tool.input_schema.as_deref().unwrap_or("{}");
    let properties = raw::get(schema, "properties").and_then(raw::members).unwrap_or_default();
    let one = |(name, schema): &(std::borrow::Cow<'_, str>, &str)| {
        let value = match raw::get_str(schema, "type").as_deref() {
            Some("integer" | "number") => "1",
            Some("boolean") => "true",
            Some("array") => "[]",
            Some("object") => "{}",
            _ => "\"x\"",
        };
        format!("{}:{value}", raw::quote(name))
    };
    format!("{{{}}}", properties.iter().map(one).collect::<Vec<_>>().join(","))
}
