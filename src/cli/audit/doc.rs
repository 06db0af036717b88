//! `redial/audit@1`.

use super::Audited;
use crate::audit::infer::Proposal;
use crate::audit::{Audit, Finding};
use crate::cli::json::document;
use crate::inspect::audit::Trace;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Serialize)]
struct Doc<'a> {
    schema: &'static str,
    trace: String,
    form: &'static str,
    contracts: Option<String>,
    inferred: bool,
    calls: u64,
    unanswered: usize,
    generations: Vec<Life>,
    tools: Vec<ToolJson<'a>>,
    handles: usize,
    findings: Vec<FindingJson<'a>>,
    counts: BTreeMap<&'static str, u64>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Life {
    generation: u32,
    transport: &'static str,
    ended: Option<String>,
}

#[derive(Serialize)]
struct ToolJson<'a> {
    name: &'a str,
    calls: u64,
    ok: u64,
    failed: u64,
    unknown: u64,
    read_only: bool,
    makes: Vec<&'a str>,
    uses: Vec<&'a str>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    kind: &'static str,
    severity: &'static str,
    call: Option<u64>,
    tool: Option<&'a str>,
    handle: Option<&'a str>,
    value: Option<&'a str>,
    message: &'a str,
    inferred: bool,
    line: u64,
    seq: Option<u64>,
    generation: Option<u32>,
    calls: &'a [u64],
}

fn finding(f: &Finding) -> FindingJson<'_> {
    FindingJson {
        kind: f.kind.word(),
        severity: f.severity.word(),
        call: f.call,
        tool: f.tool.as_deref(),
        handle: f.handle.as_deref(),
        value: f.value.as_deref(),
        message: &f.message,
        inferred: f.inferred,
        line: f.line,
        seq: Some(f.seq).filter(|n| *n > 0),
        generation: Some(f.generation).filter(|n| *n > 0),
        calls: &f.calls,
    }
}

fn tools(audit: &Audit) -> Vec<ToolJson<'_>> {
    let names = |m: &BTreeMap<u32, u64>| m.keys().map(|n| audit.name_of(*n)).collect();
    let called = audit.tools.iter().filter(|t| t.calls > 0);
    called
        .map(|t| ToolJson {
            name: &t.name,
            calls: t.calls,
            ok: t.ok,
            failed: t.failed,
            unknown: t.unknown,
            read_only: t.reads,
            makes: names(&t.makes),
            uses: names(&t.uses),
        })
        .collect()
}

pub fn json(a: &Audited) -> String {
    let audit = &a.trace.audit;
    document(&Doc {
        schema: "redial/audit@1",
        trace: a.trace.path().display().to_string(),
        form: a.trace.form_word(),
        contracts: a.contracts.as_ref().map(|p| p.display().to_string()),
        inferred: a.contracts.is_none(),
        calls: audit.calls,
        unanswered: audit.unanswered(),
        generations: audit
            .lives()
            .into_iter()
            .map(|(n, (http, ended))| Life {
                generation: n,
                transport: if http { "http" } else { "stdio" },
                ended: ended.map(str::to_owned),
            })
            .collect(),
        tools: tools(audit),
        handles: audit.handles.len(),
        findings: a.findings.iter().map(finding).collect(),
        counts: a.counts.iter().copied().collect(),
        warnings: &a.warnings,
    })
}

#[derive(Serialize)]
struct Proposed<'a> {
    schema: &'static str,
    trace: String,
    calls: u64,
    file: Option<String>,
    proposals: Vec<ProposalJson<'a>>,
    findings: [(); 0],
}

#[derive(Serialize)]
struct ProposalJson<'a> {
    tool: &'a str,
    kind: &'static str,
    name: &'a str,
    #[serde(rename = "as")]
    known_as: Option<&'a str>,
    optional: bool,
    confidence: &'static str,
    why: &'a str,
}

pub fn proposed(trace: &Trace, proposals: &[Proposal], file: Option<&Path>) -> String {
    document(&Proposed {
        schema: "redial/audit@1",
        trace: trace.path().display().to_string(),
        calls: trace.audit.calls,
        file: file.map(|p| p.display().to_string()),
        proposals: proposals
            .iter()
            .map(|p| ProposalJson {
                tool: &p.tool,
                kind: if p.produces { "produces" } else { "requires" },
                name: &p.name,
                known_as: p.known_as.as_deref(),
                optional: p.optional,
                confidence: p.sure.word(),
                why: &p.why,
            })
            .collect(),
        findings: [],
    })
}
