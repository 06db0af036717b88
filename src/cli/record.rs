//! `redial record`: a transparent tap between an agent and its server. Runs before any runtime is there: a tap on
//! stdio is plain threads, and its exit status is the server's.

use super::plain;
use super::recorded::RecordArgs;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::record::redact::known_values;
use crate::record::{Header, Recorder, Rules, http, limit, place, stdio};
use crate::time::Time;

/// `redial __exec PARENT COMMAND…`: this process becomes the server. `None` when it is another command.
pub fn exec(args: &[std::ffi::OsString]) -> Option<u8> {
    if args.get(1).is_none_or(|a| a != stdio::EXEC) {
        return None;
    }
    let words: Vec<String> =
        args.iter().skip(2).map(|w| w.to_string_lossy().into_owned()).collect();
    let (parent, command) = words.split_first()?;
    Some(stdio::exec(parent, command))
}

/// Runs the tap; the exit status of this process.
pub fn run(a: &RecordArgs, config: &Config) -> u8 {
    match record(a, config) {
        Ok(status) => status,
        Err(e) => {
            plain::complain(&e.to_string());
            e.exit as u8
        }
    }
}

fn record(a: &RecordArgs, config: &Config) -> Result<u8> {
    if let Some(e) = &config.unheard {
        let hint = e.hint.as_ref().map(|h| format!("{h}; ")).unwrap_or_default();
        return Err(e.clone().hint(format!(
            "{hint}nothing was started, since what it hides would be written down"
        )));
    }
    let rules = rules(a, config)?;
    let (server, tap) = match &a.http {
        Some(url) => (place::clean(&http::server_name(url)), "http"),
        None if a.command.is_empty() => {
            return Err(Error::usage("there is nothing to record").hint(
                "give a server to start, -- COMMAND ARGS…, or --http URL --listen 127.0.0.1:PORT",
            ));
        }
        None => (place::server_name(&rules.argv(&a.command)), "stdio"),
    };
    if a.keep.is_some() && !place::is_folder(&a.out) {
        return Err(Error::usage(format!("--keep does nothing: {} is no folder", a.out.display()))
            .hint("--keep says how many recordings a folder keeps; name one, with / at its end"));
    }
    limit::outlive_file_size();
    let out = place::open(&a.out, &server, a.keep.map(|k| k as usize), Time::now())?;
    place::remember(&out.path);
    let header = Header {
        tap: tap.into(),
        server,
        command: a.command.clone(),
        url: a.http.clone(),
        ..Header::default()
    };
    let recorder = Recorder::start(out.file, rules, header)
        .map_err(|e| Error::usage(format!("no thread for the recording: {e}")))?;
    match &a.http {
        Some(url) => http::run(url, &a.listen, a.listen_anywhere, recorder, &out.path),
        None => stdio::run(&a.command, &recorder),
    }
}

/// The rules: built in, and what the configuration and the flags add.
fn rules(a: &RecordArgs, config: &Config) -> Result<Rules> {
    // A URL is as good a place for a secret as a command line.
    let words: Vec<String> = a.command.iter().chain(&a.http).cloned().collect();
    let values = known_values(&words).map_err(Error::usage)?;
    super::recorded::rules(&a.redact, config, values)
}
