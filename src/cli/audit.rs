//! `redial audit`: which tools hide state in a session, and what became of the handles in a trace. The pure part is
//! `crate::audit`; here are files, the ledger, the endpoint, and four faces of the same findings.

pub mod args;
mod doc;
mod fresh;
mod junit;
mod plain;

use super::open::open_ledger;
use super::plain::{complain, print_raw};
use super::report::Done;
use crate::audit::{Finding, Options, infer, page};
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::inspect::audit::{Trace, contracts};
use args::AuditArgs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What was asked of a trace, and what came out.
pub struct Audited {
    /// The trace.
    pub trace: Trace,
    /// Where the contracts are; `None`: inferred.
    pub contracts: Option<PathBuf>,
    /// Findings, in the order of the trace.
    pub findings: Vec<Finding>,
    /// How many of each kind.
    pub counts: Vec<(&'static str, u64)>,
    /// Worth knowing, no finding.
    pub warnings: Vec<String>,
}

impl Audited {
    /// What the exit status says.
    fn exit(&self) -> Exit {
        if self.findings.is_empty() { Exit::Good } else { Exit::Found }
    }
}

pub async fn run(a: AuditArgs, config: &Config) -> Done {
    if !a.fresh_sessions && !a.endpoint.is_none() {
        return Err(Error::usage("an endpoint is only called with --fresh-sessions").into());
    }
    if a.fresh_sessions {
        return fresh::run(&a, config).await;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let agreed = if a.infer { None } else { contracts(a.contracts.as_deref(), &here)? };
    let (path, agreed) = agreed.map_or((None, None), |(p, c)| (Some(p), Some(c)));
    let options = Options {
        contracts: agreed,
        look_up: a.lookup.clone(),
        propose: a.infer,
        join: a.ledger.ledger.is_some(),
    };
    let mut trace = Trace::open(&a.trace, options)?;
    trace.whole()?;
    if a.infer {
        return Ok(propose(&a, &trace)?);
    }
    let mut warnings = Vec::new();
    if let (Some(ledger), _) = open_ledger(&a.ledger)? {
        warnings.extend(crate::inspect::audit::join(&mut trace.audit, &ledger).await?);
    }
    let audited = judged(trace, path, warnings);
    if a.report {
        print_raw(&markdown(&audited));
    } else if a.junit {
        print_raw(&junit::xml(&audited));
    } else if a.json {
        print_raw(&doc::json(&audited));
    } else {
        plain::print(&audited);
    }
    Ok(audited.exit())
}

fn judged(trace: Trace, contracts: Option<PathBuf>, mut warnings: Vec<String>) -> Audited {
    let audit = &trace.audit;
    if audit.calls == 0 {
        warnings.push("the trace holds no tool call".into());
    }
    for tool in audit.never_called() {
        warnings.push(format!("the contracts name {tool}, and no call in this trace is one of it"));
    }
    for name in audit.hidden_names() {
        warnings.push(format!(
            "values of {name} were replaced when the trace was written: where they come from can't be told"
        ));
    }
    if audit.lost > 0 {
        warnings.push(format!(
            "{} events are missing, they could not be written: what is not in the trace may have been there",
            audit.lost
        ));
    }
    warnings.extend(audit.forgot.iter().map(|f| f.words().to_owned()));
    if audit.handles.saturated {
        warnings.push("so many handles were made that not all are kept: values that nothing made are not told any more".into());
    }
    let (findings, all) = trace.findings();
    let counts = all.counts().iter().map(|(k, n)| (k.word(), *n)).collect();
    Audited { trace, contracts, findings, counts, warnings }
}

fn markdown(a: &Audited) -> String {
    let file = a.trace.path().display().to_string();
    let contracts = a.contracts.as_ref().map(|p| p.display().to_string());
    page::markdown(
        &a.trace.audit,
        (&file, contracts.as_deref()),
        &a.findings,
        &a.warnings,
        &|name| a.trace.is_secret(name),
    )
}

/// Writes proposed contracts.
fn propose(a: &AuditArgs, trace: &Trace) -> Result<Exit> {
    let proposals = trace.audit.proposals();
    trace.audit.forgot.iter().for_each(|f| complain(f.words()));
    let text = infer::toml(&proposals, &trace.path().display().to_string());
    let path = if proposals.is_empty() { None } else { Some(write(a.out.as_deref(), &text)?) };
    if a.json {
        print_raw(&doc::proposed(trace, &proposals, path.as_deref()));
    } else {
        plain::proposed(trace, &proposals, path.as_deref());
    }
    Ok(Exit::Good)
}

/// Writes a new file; one that is there is left as it is.
fn write(named: Option<&Path>, text: &str) -> Result<PathBuf> {
    let names: Vec<PathBuf> = match named {
        Some(p) => vec![p.to_owned()],
        None => std::iter::once("contracts.toml".into())
            .chain((2..100).map(|n| PathBuf::from(format!("contracts-{n}.toml"))))
            .collect(),
    };
    for path in &names {
        let new = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = match new {
            Ok(f) => f,
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(e) => {
                return Err(Error::usage(format!("{} can't be written: {e}", path.display())));
            }
        };
        file.write_all(text.as_bytes())
            .map_err(|e| Error::usage(format!("{} can't be written: {e}", path.display())))?;
        return Ok(path.clone());
    }
    let there = names.first().map(|p| p.display().to_string()).unwrap_or_default();
    Err(Error::usage(format!("{there} is there already, and is left as it is"))
        .hint("name another file with --out"))
}
