//! Endpoints by name: `.mcp.json`, the file in which projects list their MCP servers (Claude Code, "MCP", project
//! scope), looked for from a folder upwards. Reads files and variables; starts nothing, prints nothing, and never
//! puts a value of `env` or `headers` into words: it may be a secret.

use crate::client::shown::shown_url;
use crate::client::{Endpoint, Era};
use crate::error::{Error, Result};
use crate::json::raw;
use crate::near::near;
use std::path::{Path, PathBuf};

mod file;
mod keys;

/// The file's name.
pub const FILE: &str = ".mcp.json";

/// Milliseconds; Claude Code ignores a smaller `timeout`, so that seconds by mistake are no limit of 60 ms.
const LEAST_TIMEOUT_MS: f64 = 1000.0;

/// One entry, ready for use.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Where the server is, variables expanded.
    pub endpoint: Endpoint,
    /// Its `timeout`, in seconds: how long a call may take.
    pub call_limit_s: Option<f64>,
    /// Its `era`, a word of redial's own: `auto`, `modern` or `legacy`.
    pub era: Option<Era>,
    /// The file that has it.
    pub file: PathBuf,
    /// How it is named to people: as the file has it, variables not expanded, since they may hold secrets.
    pub shown: String,
    /// What a person should know of it, as sentences. May hold foreign text.
    pub warnings: Vec<String>,
}

/// Looks `name` up in the `.mcp.json` of `from` and of the folders above it; the nearest file that has it wins.
/// `var` gives a variable's value.
///
/// # Errors
/// Exit 2, with the file and the place in it: no file, a file that can't be read, no such server (near names are
/// told), an entry that is incomplete or of a transport that redial does not speak, a variable without a value in
/// `command`, `url` or `cwd`. Elsewhere such a variable is a warning and its text stays, as in Claude Code.
pub fn named(name: &str, from: &Path, var: &dyn Fn(&str) -> Option<String>) -> Result<Named> {
    let mut files = Vec::new();
    let mut names = Vec::new();
    let mut warnings = Vec::new();
    for folder in from.ancestors() {
        let file = folder.join(FILE);
        let Some(text) = file::text(&file)? else { continue };
        let servers = match file::servers(&file, &text)? {
            Ok(servers) => servers,
            Err(other) => {
                warnings.push(other);
                continue;
            }
        };
        // Of a repeated key the last one counts, as for every reader of JSON.
        if let Some((_, raw)) = servers.iter().rev().find(|(n, _)| n == name) {
            return Entry { name, file: &file, raw, var, warnings }.read();
        }
        names.extend(servers.into_iter().map(|(n, _)| n));
        files.push(file.display().to_string());
    }
    if let (true, Some(other)) = (files.is_empty(), warnings.first()) {
        return Err(Error::usage(other.clone()).hint(file::SHAPE));
    }
    if files.is_empty() {
        let what = format!("no {FILE} in {} or a folder above it", from.display());
        return Err(Error::usage(what)
            .hint("--server NAME names one of its mcpServers; without such a file use --http URL or -- COMMAND ARGS…"));
    }
    let error = Error::usage(format!("{} has no server {name:?}", files.join(" and ")));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Err(match (near(&names, name), names.len()) {
        (_, 0) => error.hint("it names no servers at all"),
        (near, _) if !near.is_empty() => error.hint(format!("did you mean {}?", near.join(" or "))),
        (_, n) => {
            let more = if n > 8 { ", …" } else { "" };
            let some: Vec<&str> = names.into_iter().take(8).collect();
            error.hint(format!("it has {}{more}", some.join(", ")))
        }
    })
}

/// One entry while it is read.
struct Entry<'a> {
    name: &'a str,
    file: &'a Path,
    raw: &'a str,
    var: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl<'a> Entry<'a> {
    fn read(mut self) -> Result<Named> {
        if raw::members(self.raw).is_none() {
            return Err(self.error("is no object").hint(file::SHAPE));
        }
        for not_done in keys::not_done(self.raw) {
            self.warn(&not_done);
        }
        let kind = self.string("type")?;
        let (command, url) = (self.string("command")?, self.string("url")?);
        let shown = match (&command, &url) {
            (_, Some(url)) => shown_url(url),
            (Some(command), None) => {
                let args = self.member("args").and_then(raw::items).unwrap_or_default();
                let args = args.into_iter().filter_map(raw::as_str);
                std::iter::once(command.clone()).chain(args).collect::<Vec<_>>().join(" ")
            }
            (None, None) => String::new(),
        };
        let endpoint = match (kind.as_deref(), command, url) {
            (None, _, Some(_)) => {
                return Err(self
                    .error("has a url and no type")
                    .hint(r#"a Streamable HTTP server wants "type": "http" beside its url"#));
            }
            (None | Some("stdio"), Some(command), _) => self.stdio(&command)?,
            (None | Some("stdio"), None, _) => return Err(self.error("has no command")),
            (Some("http" | "streamable-http"), _, Some(url)) => self.http(&url)?,
            (Some("http" | "streamable-http"), _, None) => return Err(self.error("has no url")),
            (Some("sse"), ..) => {
                return Err(self
                    .error("is of type sse: the HTTP+SSE transport of 2024-11-05, which redial does not speak")
                    .hint("most such servers have a Streamable HTTP URL, too (often /mcp)"));
            }
            (Some("ws"), ..) => {
                return Err(self.error("is of type ws: WebSocket, which redial does not speak"));
            }
            (Some(other), ..) => {
                let what = format!("is of type {other:?}, which redial does not know");
                return Err(self.error(&what).hint("it knows stdio, http and streamable-http"));
            }
        };
        let call_limit_s = self.timeout()?;
        let era = match self.string("era")?.as_deref() {
            None => None,
            Some("auto") => Some(Era::Auto),
            Some("modern") => Some(Era::Modern),
            Some("legacy") => Some(Era::Legacy),
            Some(_) => return Err(self.error("has an era that is none of auto, modern, legacy")),
        };
        let Entry { file, warnings, .. } = self;
        Ok(Named { endpoint, call_limit_s, era, file: file.to_owned(), shown, warnings })
    }

    fn stdio(&mut self, command: &str) -> Result<Endpoint> {
        let mut words = vec![self.needed(command, "command")?];
        if words.iter().all(|w| w.trim().is_empty()) {
            return Err(self.error("has an empty command"));
        }
        let args = self.member("args").unwrap_or("[]");
        let args = raw::items(args).ok_or_else(|| self.error("has args that are no array"))?;
        for (i, arg) in args.into_iter().enumerate() {
            let place = format!("args[{i}]");
            let arg = raw::as_str(arg).ok_or_else(|| self.no_string(&place))?;
            words.push(self.expanded(&arg, &place));
        }
        let env = self.pairs("env")?;
        if env.iter().any(|(k, v)| k.is_empty() || k.contains(['=', '\0']) || v.contains('\0')) {
            return Err(self.error("has an env that no process can have"));
        }
        let folder = self.file.parent().unwrap_or(Path::new("."));
        // Relative paths of a project's file mean the project, wherever in it redial was called.
        let cwd = match self.string("cwd")? {
            Some(cwd) => folder.join(self.needed(&cwd, "cwd")?),
            None => folder.to_owned(),
        };
        Ok(Endpoint::Stdio { command: words, env, cwd: Some(cwd) })
    }

    fn http(&mut self, written: &str) -> Result<Endpoint> {
        let url = self.needed(written, "url")?;
        if !is_http_url(&url) {
            // As it is written: expanded it may hold a secret.
            return Err(self
                .error(&format!("has a url that is none: {written:?}"))
                .hint("it looks like http://127.0.0.1:8000/mcp"));
        }
        let headers = self.pairs("headers")?;
        if let Some((name, _)) = headers.iter().find(|(k, v)| !is_header(k, v)) {
            return Err(self.error(&format!("has a header that can't be sent: {name:?}")));
        }
        if self.member("headersHelper").is_some() {
            self.warn("its headersHelper is not run: the headers it would make are missing");
        }
        Ok(Endpoint::Http { url, headers })
    }

    /// Seconds.
    fn timeout(&mut self) -> Result<Option<f64>> {
        let Some(raw) = self.member("timeout") else { return Ok(None) };
        match raw.trim().parse::<f64>() {
            Ok(ms) if ms >= LEAST_TIMEOUT_MS && ms.is_finite() => Ok(Some(ms / 1000.0)),
            Ok(ms) if (0.0..LEAST_TIMEOUT_MS).contains(&ms) => {
                self.warn("its timeout is in milliseconds, and less than 1000 is ignored");
                Ok(None)
            }
            _ => Err(self.error("has a timeout that is no number of milliseconds")),
        }
    }

    /// An object of strings, expanded.
    fn pairs(&mut self, key: &str) -> Result<Vec<(String, String)>> {
        let members = raw::members(self.member(key).unwrap_or("{}"))
            .ok_or_else(|| self.error(&format!("has {key} that are no object")))?;
        let mut out = Vec::new();
        for (name, value) in members {
            let place = format!("{key}.{name}");
            let value = raw::as_str(value).ok_or_else(|| self.no_string(&place))?;
            let value = self.expanded(&value, &place);
            out.push((name.into_owned(), value));
        }
        Ok(out)
    }

    fn member(&self, key: &str) -> Option<&'a str> {
        raw::get(self.raw, key).filter(|v| !raw::is_null(v))
    }

    fn string(&self, key: &str) -> Result<Option<String>> {
        match self.member(key) {
            None => Ok(None),
            Some(raw) => raw::as_str(raw).map(Some).ok_or_else(|| self.no_string(key)),
        }
    }

    /// Expanded; a variable without a value keeps its text, and is told.
    fn expanded(&mut self, text: &str, place: &str) -> String {
        let (out, missing) = expand(text, self.var);
        for name in missing {
            self.warn(&format!(
                "the variable {name} is not set: {place} keeps the text ${{{name}}}"
            ));
        }
        out
    }

    /// Expanded, where the text with a hole in it is of no use.
    fn needed(&mut self, text: &str, place: &str) -> Result<String> {
        let (out, missing) = expand(text, self.var);
        match missing.first() {
            None => Ok(out),
            Some(name) => Err(self
                .error(&format!("wants the variable {name} for its {place}, and it is not set"))
                .hint(format!("set it, or give a default in the file: ${{{name}:-…}}"))),
        }
    }

    fn error(&self, what: &str) -> Error {
        Error::usage(format!("the server {:?} in {} {what}", self.name, self.file.display()))
    }

    fn no_string(&self, place: &str) -> Error {
        self.error(&format!("has a value that is no string: {place}"))
    }

    fn warn(&mut self, what: &str) {
        self.warnings.push(format!("server {:?} in {}: {what}", self.name, self.file.display()));
    }
}

/// `${VAR}` and `${VAR:-default}` replaced, once; with the variables that had neither value nor default.
fn expand(text: &str, var: &dyn Fn(&str) -> Option<String>) -> (String, Vec<String>) {
    let (mut out, mut missing, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, after)) = after.split_once('}') else { break };
        out.push_str(before);
        let (name, default) =
            inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        match (var(name), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                out.push_str(&format!("${{{inner}}}"));
                missing.push(name.to_owned());
            }
        }
        rest = after;
    }
    out.push_str(rest);
    (out, missing)
}

/// Whether `url` is `http://` or `https://` with a host.
pub fn is_http_url(url: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|s| {
        url.get(..s.len()).filter(|head| head.eq_ignore_ascii_case(s)).map(|_| &url[s.len()..])
    });
    let host = rest.is_some_and(|r| r.starts_with(|c: char| !"/?#:".contains(c)));
    host && reqwest::Url::parse(url).is_ok()
}

/// Whether a header can be sent (RFC 9110, sections 5.1 and 5.5): its name is a token, its value holds no control
/// characters but a tab.
pub fn is_header(name: &str, value: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let value_ok = value.chars().all(|c| c == '\t' || !c.is_control());
    !name.is_empty() && name.chars().all(token) && value_ok
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn var(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("127.0.0.1".into()),
            "EMPTY" => Some(String::new()),
            "TOKEN" => Some("s3cret ${HOST}".into()),
            _ => None,
        }
    }

    /// What `entry` (raw JSON) comes to.
    fn entry(entry: &str) -> Result<Named> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), format!(r#"{{"mcpServers":{{"x":{entry}}}}}"#)).unwrap();
        named("x", dir.path(), &var)
    }

    #[test]
    fn variables_are_expanded_once_and_holes_are_named() {
        let e = |t: &str| expand(t, &var);
        let holes = |v: &[&str]| v.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(e("a ${HOST}:${PORT:-80}/$HOST $$"), ("a 127.0.0.1:80/$HOST $$".into(), vec![]));
        // Set and empty is set; a value is not expanded again.
        assert_eq!(e("<${EMPTY:-d}>${TOKEN}"), ("<>s3cret ${HOST}".into(), vec![]));
        assert_eq!(e("${NOPE} ${NOPE:-} ${"), ("${NOPE}  ${".into(), holes(&["NOPE"])));
        assert_eq!(e("${input:key}"), ("${input:key}".into(), holes(&["input:key"])));
        assert_eq!(e("${A:-b:-c}日"), ("b:-c日".into(), vec![]));
    }

    #[test]
    fn a_stdio_entry_starts_in_the_folder_of_its_file() {
        let n = entry(
            r#"{"command":"${CMD:-sh}","args":["-c","x ${NOPE}"],"env":{"K":"${TOKEN}"},"cwd":"sub","timeout":2500,"era":"legacy"}"#,
        )
        .unwrap();
        let Endpoint::Stdio { command, env, cwd } = &n.endpoint else { panic!("{n:?}") };
        assert_eq!(command, &["sh", "-c", "x ${NOPE}"]);
        assert_eq!(env, &[("K".to_owned(), "s3cret ${HOST}".to_owned())]);
        assert_eq!(cwd.as_deref(), Some(&*n.file.parent().unwrap().join("sub")));
        assert_eq!((n.call_limit_s, n.era), (Some(2.5), Some(Era::Legacy)));
        assert_eq!(n.shown, "${CMD:-sh} -c x ${NOPE}");
        assert_eq!(n.warnings.len(), 1);
        assert!(n.warnings[0].contains("NOPE is not set: args[1] keeps"), "{:?}", n.warnings);
    }

    #[test]
    fn an_http_entry_has_headers_and_a_timeout_in_seconds_is_seen() {
        for kind in ["http", "streamable-http"] {
            let n = entry(&format!(
                r#"{{"type":"{kind}","url":"http://${{HOST}}/mcp","headers":{{"Authorization":"Bearer ${{TOKEN}}","X":"${{NO}}"}},"timeout":60,"headersHelper":"x"}}"#
            ))
            .unwrap();
            let Endpoint::Http { url, headers } = &n.endpoint else { panic!("{n:?}") };
            assert_eq!((url.as_str(), headers.len()), ("http://127.0.0.1/mcp", 2));
            assert_eq!(n.shown, "http://${HOST}/mcp");
            assert_eq!(headers[0].1, "Bearer s3cret ${HOST}");
            let said = n.warnings.join("\n");
            for word in ["NO is not set: headers.X keeps", "less than 1000", "headersHelper"] {
                assert!(said.contains(word), "{said}");
            }
            assert!(!said.contains("s3cret") && n.call_limit_s.is_none());
        }
    }

    #[test]
    fn what_can_not_be_used_is_named_with_its_place_and_without_its_secrets() {
        for (raw, word) in [
            (r#"{"url":"http://x/"}"#, "a url and no type"),
            (r#"{"command":"x","url":"http://x/"}"#, "a url and no type"),
            (r#"{"type":"sse","url":"http://x/"}"#, "HTTP+SSE transport"),
            (r#"{"type":"ws","url":"ws://x/"}"#, "WebSocket"),
            (r#"{"type":"carrier pigeon"}"#, "does not know"),
            (r#"{"type":1}"#, "no string: type"),
            (r#"{"type":"http"}"#, "no url"),
            (r#"{"type":"http","url":"127.0.0.1/${TOKEN}"}"#, "a url that is none"),
            (r#"{"type":"http","url":"http://${NOPE}/"}"#, "the variable NOPE for its url"),
            (r#"{"type":"http","url":"http://x/","headers":{"a b":"${TOKEN}"}}"#, "\"a b\""),
            (r#"{"type":"http","url":"http://x/","headers":{"A":"${TOKEN}\r\nB: c"}}"#, "\"A\""),
            (r#"{"type":"http","url":"http://x/","headers":["s3cret"]}"#, "no object"),
            (r#"{"command":"${NOPE}"}"#, "the variable NOPE for its command"),
            (r#"{"command":" "}"#, "empty command"),
            (r#"{}"#, "no command"),
            (r#"{"command":null}"#, "no command"),
            (r#"[]"#, "no object"),
            (r#"{"command":"x","args":"y"}"#, "no array"),
            (r#"{"command":"x","args":["y",2]}"#, "args[1]"),
            (r#"{"command":"x","env":{"PORT":8000}}"#, "env.PORT"),
            (r#"{"command":"x","env":{"A=B":"s3cret"}}"#, "no process can have"),
            (r#"{"command":"x","timeout":"soon"}"#, "milliseconds"),
            (r#"{"command":"x","timeout":-1}"#, "milliseconds"),
            (r#"{"command":"x","era":"old"}"#, "era"),
        ] {
            let e = entry(raw).unwrap_err();
            assert_eq!(e.exit, crate::error::Exit::Usage);
            assert!(e.what.contains(word) && e.what.contains(FILE), "{raw}: {e}");
            assert!(!e.to_string().contains("s3cret"), "{raw}: {e}");
        }
    }

    #[test]
    fn the_nearest_file_that_has_it_wins_and_others_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        let write = |at: &Path, text: &str| fs::write(at.join(FILE), text).unwrap();
        let none = named("x", &deep, &var).unwrap_err();
        assert!(none.what.contains("no .mcp.json in"), "{none}");
        let top = r#"{"mcpServers":{"tickets":{"command":"top"},"x":{"command":"top"}}}"#;
        write(dir.path(), top);
        write(&deep, "\u{feff}{\"mcpServers\":{\"x\":{\"command\":\"deep\"}}}");
        let program = |name: &str| match named(name, &deep, &var).unwrap().endpoint {
            Endpoint::Stdio { command, .. } => command[0].clone(),
            Endpoint::Http { url, .. } => url,
        };
        assert_eq!((program("x"), program("tickets")), ("deep".into(), "top".into()));
        let e = named("tiket", &deep, &var).unwrap_err();
        assert!(e.what.contains(&*dir.path().join(FILE).display().to_string()), "{e}");
        assert!(
            e.what.contains("a/b/.mcp.json and ")
                && e.to_string().contains("did you mean tickets?"),
            "{e}"
        );
        // A broken file is no reason to go on with another one.
        write(&deep, "{\"mcpServers\": {\n \"x\": {\"command\": }}}");
        let e = named("tickets", &deep, &var).unwrap_err();
        assert!(e.what.contains("is not JSON") && e.what.contains("line 2"), "{e}");
        write(&deep, r#"{"mcpServers":[]}"#);
        assert!(named("x", &deep, &var).unwrap_err().what.contains("no object"));
        // One of another program's form is passed over, and told.
        for text in ["{}", r#"{"mcp":{"x":{"command":"deep"}}}"#] {
            write(&deep, text);
            let found = named("x", &deep, &var).unwrap();
            assert_eq!(program("x"), "top");
            assert!(found.warnings[0].contains("has no mcpServers"), "{:?}", found.warnings);
        }
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(named("x", &deep, &var).unwrap_err().what.contains("no mcpServers"));
        write(dir.path(), top);
        // Visual Studio's and VS Code's own member is read.
        write(&deep, r#"{"inputs":[],"servers":{"other":{"type":"stdio","command":"vs"}}}"#);
        assert_eq!((program("other"), program("x")), ("vs".into(), "top".into()));
    }

    #[test]
    fn a_file_that_is_none_is_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(FILE);
        std::os::unix::fs::symlink("/dev/zero", &at).unwrap();
        assert!(named("x", dir.path(), &var).unwrap_err().what.contains("no ordinary file"));
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        assert!(named("x", dir.path(), &var).unwrap_err().what.contains("no ordinary file"));
    }

    #[test]
    fn what_changes_where_a_server_works_and_is_not_done_is_told() {
        let told = |more: &str| entry(&format!(r#"{{"command":"x",{more}}}"#)).unwrap().warnings;
        for (more, word) in [
            (r#""envFile":"${workspaceFolder}/prod.env""#, "envFile is not read"),
            (r#""env_file":".env""#, "env_file is not read"),
            (r#""environment":{"LEDGER":"s3cret"}"#, "environment is not read"),
            (r#""envVars":["LEDGER"]"#, "envVars is not read"),
            (r#""workingDirectory":"/srv""#, "workingDirectory"),
            (r#""disabled":true"#, "disabled"),
            (r#""enabled":false"#, "enabled"),
            (r#""transport":"sse""#, "transport"),
            (r#""flux":1"#, "flux"),
        ] {
            let said = told(more);
            assert!(said.len() == 1 && said[0].contains(word), "{more}: {said:?}");
            assert!(!said[0].contains("s3cret"));
        }
        let quiet = r#""disabled":false,"enabled":true,"description":"x","alwaysAllow":["a"],"envFile":null"#;
        assert_eq!(told(quiet), Vec::<String>::new());
    }

    #[test]
    fn urls_are_checked() {
        for good in ["http://127.0.0.1:8000/mcp", "HTTPS://example.org", "http://[::1]:9/x"] {
            assert!(is_http_url(good), "{good}");
        }
        for bad in [
            "",
            "localhost:8000",
            "ftp://x/",
            "http://",
            "http:///mcp",
            "http://[bad",
            "http://:80/",
        ] {
            assert!(!is_http_url(bad), "{bad}");
        }
    }
}
