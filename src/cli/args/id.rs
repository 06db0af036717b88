//! The request_id as a command takes it: any id that a ledger can hold, one that looks like a flag included.

use crate::error::{Error, Result};
use crate::json::raw;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which request.
#[derive(Debug, Args, Default)]
pub struct IdArgs {
    /// The request_id (one that looks like a flag: --id=-x9)
    #[arg(value_name = "REQUEST_ID", allow_hyphen_values = true)]
    #[arg(required_unless_present_any = ["id", "id_json", "id_file"])]
    pub named: Option<String>,
    /// The request_id, whatever it looks like: --id=--json
    #[arg(long, value_name = "ID", allow_hyphen_values = true, conflicts_with_all = ["named", "id_json", "id_file"])]
    pub id: Option<String>,
    /// The request_id as a JSON string or number, for one that no shell takes: --id-json '"a\u001bb"'
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with_all = ["named", "id_file"])]
    pub id_json: Option<String>,
    /// A file that holds the request_id and nothing else, for one that no command line holds
    #[arg(long, value_name = "F", conflicts_with = "named")]
    pub id_file: Option<PathBuf>,
}

impl IdArgs {
    /// The id that is meant.
    ///
    /// # Errors
    /// Exit 2 for JSON that is no id, and a file that can't be read.
    pub fn take(&mut self) -> Result<String> {
        if let Some(path) = &self.id_file {
            let text = crate::cli::connect::text_of(path, crate::cli::connect::ARGUMENTS)?;
            // Editors and `echo` end a line; an id that ends in one itself has `--id-json`.
            return Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned());
        }
        if let Some(json) = &self.id_json {
            let whole = serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok();
            return crate::json::key::text(json).filter(|_| whole).ok_or_else(|| {
                Error::usage("--id-json is no JSON string or number; nothing was sent").hint(
                    format!("for example --id-json {}", crate::shell::word(&raw::quote("a\n"))),
                )
            });
        }
        Ok(self.named.take().or(self.id.take()).unwrap_or_default())
    }
}

/// The commands whose first word is a request_id.
pub fn takes_id(args: &[OsString]) -> bool {
    args.get(1).and_then(|a| a.to_str()).is_some_and(|c| matches!(c, "find" | "reissue"))
}

/// Puts `--id=` before an id that begins like a cluster of short flags (`-h9abc`): there are none, and `-h` would be
/// taken out of it. What `--` is followed by, and what an option takes, is left alone.
pub fn dashed(args: Vec<OsString>, command: &clap::Command) -> Vec<OsString> {
    let sub = args.get(1).and_then(|a| a.to_str()).and_then(|n| command.find_subcommand(n));
    let Some(sub) = sub.filter(|_| takes_id(&args)) else { return args };
    let takes_value = |name: &str| {
        let arg = sub.get_arguments().find(|a| a.get_long() == Some(name));
        arg.is_some_and(|a| a.get_action().takes_values())
    };
    let (mut out, mut value, mut rest, mut known) = (Vec::new(), false, false, false);
    for (i, arg) in args.into_iter().enumerate() {
        let text = arg.to_str().unwrap_or_default();
        let long = text.strip_prefix("--");
        let after = std::mem::take(&mut value);
        if i < 2 || rest || after {
        } else if text == "--" {
            rest = true;
        } else if let Some(long) = long {
            value = !long.contains('=') && takes_value(long);
            known |= ["id", "id-json", "id-file"].contains(&long.split('=').next().unwrap_or(long));
        } else if text.len() > 2 && text.starts_with('-') && !known {
            known = true;
            out.push(OsString::from(format!("--id={text}")));
            continue;
        } else {
            known |= !text.starts_with('-') || text == "-";
        }
        out.push(arg);
    }
    out
}

/// What asked for help or the version is no such flag: it was meant as an id, or as something else.
pub fn help_was_meant(args: &[OsString]) -> bool {
    let own = args.iter().skip(1).take_while(|a| *a != "--");
    let asks = |a: &OsString| ["-h", "--help", "help", "-V", "--version"].iter().any(|f| a == f);
    // `find -h --ledger …`: where the id stands.
    let in_place = takes_id(args) && args.len() > 3 && args.get(2).is_some_and(asks);
    own.clone().any(asks) && !in_place
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn put(words: &str) -> String {
        let args = words.split(' ').map(OsString::from).collect();
        let out = dashed(args, &crate::cli::args::Cli::command());
        out.iter().map(|w| w.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_id_that_begins_like_flags_is_one() {
        for (typed, taken) in [
            ("redial find -h9abc --ledger l", "redial find --id=-h9abc --ledger l"),
            ("redial find --ledger l -V1 --json", "redial find --ledger l --id=-V1 --json"),
            ("redial find --ledger -l -x9", "redial find --ledger -l --id=-x9"),
            (
                "redial reissue r1 --confirm -V1 -- s -h9",
                "redial reissue r1 --confirm -V1 -- s -h9",
            ),
            ("redial find r1 -h9", "redial find r1 -h9"),
            ("redial find -h", "redial find -h"),
            ("redial find --help", "redial find --help"),
            ("redial find - --json", "redial find - --json"),
            ("redial find --id=-h9 -x9", "redial find --id=-h9 -x9"),
            ("redial call -h9", "redial call -h9"),
        ] {
            assert_eq!(put(typed), taken);
        }
    }

    #[test]
    fn help_is_what_was_asked_for() {
        let asked =
            |words: &str| help_was_meant(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        for yes in
            ["redial -h", "redial find --help", "redial help", "redial find r -h", "redial -V"]
        {
            assert!(asked(yes), "{yes}");
        }
        for no in ["redial call -h9", "redial find -h --ledger l", "redial show x -- -h", "redial"]
        {
            assert!(!asked(no), "{no}");
        }
    }
}
