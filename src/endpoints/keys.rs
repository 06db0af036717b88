//! Members of an entry that are not done here. A server that is started without them may work elsewhere (another ledger,
//! another account), so each is told before anything is sent; their values are not: they may be secrets.

use crate::json::raw;

/// What is done, or is told where it is read.
const DONE: [&str; 10] =
    ["type", "command", "args", "env", "url", "headers", "cwd", "timeout", "era", "headersHelper"];

/// What changes nothing of where and how a server works.
const HARMLESS: [&str; 16] = [
    "name",
    "description",
    "title",
    "displayName",
    "icon",
    "gallery",
    "version",
    "note",
    "comment",
    "_comment",
    "$comment",
    "//",
    "alwaysAllow",
    "autoApprove",
    "tags",
    "$schema",
];

/// A sentence for each member that matters and is not done.
pub(super) fn not_done(entry: &str) -> Vec<String> {
    let members = raw::members(entry).unwrap_or_default();
    let said = members.iter().filter(|(_, v)| !raw::is_null(v)).filter_map(|(key, value)| {
        let key = key.as_ref();
        if DONE.contains(&key) || HARMLESS.contains(&key) {
            return None;
        }
        match (bare(key).as_str(), raw::as_bool(value)) {
            ("disabled", Some(false)) | ("enabled", Some(true)) => None,
            ("disabled", _) | ("enabled", Some(false)) => Some(format!(
                "its {key} says that it is not to be used; it is used here all the same"
            )),
            ("envfile" | "environment" | "envvars" | "envs" | "envfiles" | "dotenv", _) => {
                Some(format!(
                    "its {key} is not read: without those variables it may work on another ledger"
                ))
            }
            ("workingdirectory" | "workdir" | "workingdir" | "dir" | "directory", _) => {
                Some(format!("its {key} is not done (cwd is): it starts in another folder"))
            }
            _ => Some(format!("its {key} is not done here, and may change where or how it works")),
        }
    });
    said.collect()
}

fn bare(key: &str) -> String {
    key.chars().filter(|c| !"_- ".contains(*c)).flat_map(char::to_lowercase).collect()
}
