//! Redaction of command lines, URLs and the environment.

use super::names::is_path;
use super::script::{self, is_script};
use super::{MASK, Rules};
use crate::{shell, urls};
use std::path::Path;

impl Rules {
    /// A command line: `--token X`, `--token=X`, `TOKEN=X`, `-H "Authorization: X"`, URLs, and what looks like
    /// a credential. What hides one word leaves every other, also in a script for a shell.
    pub fn argv(&self, words: &[String]) -> Vec<String> {
        let mut out = Vec::with_capacity(words.len());
        let mut secret_of = None;
        for (i, word) in words.iter().enumerate() {
            if self.is_value(&mut secret_of, word) {
                out.push(MASK.to_owned());
            } else if is_script(words.get(..i).unwrap_or_default(), word) {
                out.push(self.script(word));
            } else {
                out.push(self.word(word));
            }
        }
        out
    }

    /// Whether this word is the value of the secret option before it. `secret_of`: that option, then this one.
    fn is_value(&self, secret_of: &mut Option<String>, word: &str) -> bool {
        let value = secret_of.take().is_some_and(|name| self.is_secret(&name, word));
        if value && !word.starts_with('-') {
            return true;
        }
        let name = word.trim_start_matches('-');
        let is_option = name.len() < word.len() && !name.contains('=');
        *secret_of = Some(name).filter(|n| is_option && self.is_secret_name(n)).map(str::to_owned);
        false
    }

    fn script(&self, script: &str) -> String {
        let mut out = String::with_capacity(script.len());
        let mut from = 0;
        let mut secret_of = None;
        for part in script::parts(script) {
            let raw = script.get(part.at.clone()).unwrap_or_default();
            let word = script::unquoted(raw);
            let new = match self.is_value(&mut secret_of, &word) {
                true => MASK.to_owned(),
                false => self.word(&word),
            };
            out.push_str(script.get(from..part.at.start).unwrap_or_default());
            match new == word {
                true => out.push_str(raw),
                false if new.contains(char::is_whitespace) => out.push_str(&shell::word(&new)),
                false => out.push_str(&new),
            }
            from = part.at.end;
            if part.ends {
                secret_of = None;
            }
        }
        out.push_str(script.get(from..).unwrap_or_default());
        out
    }

    fn word(&self, word: &str) -> String {
        if let Some((name, sign, value)) = self.named(word) {
            let gap = if value.starts_with(' ') { " " } else { "" };
            return format!("{name}{sign}{gap}{MASK}");
        }
        if word.contains("://") && !word.contains(char::is_whitespace) {
            return self.url(word);
        }
        let json = word.find(['{', '[']).filter(|at| *at == 0 || word[..*at].ends_with('='));
        let (front, rest) = word.split_at(json.unwrap_or(0));
        let line = self.line(rest.as_bytes()).0;
        format!("{front}{}", String::from_utf8_lossy(&line))
    }

    /// A word that names its own secret: the name, the sign, the value.
    fn named<'a>(&self, word: &'a str) -> Option<(&'a str, char, &'a str)> {
        ['=', ':'].into_iter().find_map(|sign| {
            let (name, value) = word.split_once(sign)?;
            let plain = |c: char| c.is_alphanumeric() || "-_.=".contains(c);
            let bare = name.trim_start_matches('-');
            let is_place = is_path(value) && bare.eq_ignore_ascii_case("pwd");
            (name.chars().all(plain)
                && self.is_secret_header(bare)
                && !is_place
                && !value.trim().is_empty())
            .then_some((name, sign, value))
        })
    }

    /// The secrets of a command line, to be looked for everywhere else.
    pub fn secrets_of_argv(&self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (i, word) in words.iter().enumerate() {
            if is_script(words.get(..i).unwrap_or_default(), word) {
                let parts = script::parts(word);
                let inner = parts.iter().filter_map(|p| word.get(p.at.clone()));
                let inner: Vec<String> = inner.map(|w| script::unquoted(w).into_owned()).collect();
                found.extend(inner.iter().enumerate().flat_map(|(i, w)| {
                    self.secrets_of_word(w, inner.get(i + 1).map(String::as_str))
                }));
            } else {
                found.extend(self.secrets_of_word(word, words.get(i + 1).map(String::as_str)));
            }
        }
        found
    }

    fn secrets_of_word(&self, word: &str, next: Option<&str>) -> Vec<String> {
        let mut found = Vec::new();
        let name = word.trim_start_matches('-');
        if let Some((n, value)) = name.split_once('=')
            && self.is_secret(n, value)
        {
            found.push(value.to_owned());
        } else if let Some((n, value)) = name.split_once(':')
            && self.is_secret_header(n)
        {
            // `-H "Authorization: Bearer …"`: the scheme is no secret.
            found.extend(value.split_whitespace().last().map(str::to_owned));
        } else if name.len() < word.len()
            && let Some(value) = next.filter(|v| !v.starts_with('-'))
            && self.is_secret(name, value)
        {
            found.push(value.to_owned());
        }
        found.extend(password_of_url(word));
        found.extend(keys_in_paths(word));
        found
    }

    /// A URL without password and without the values of secret parameters.
    pub fn url(&self, url: &str) -> String {
        let (front, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
        let mut out = match front.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                match rest.get(..end).and_then(|a| a.rfind('@')) {
                    Some(at) => format!("{scheme}://{MASK}{}", rest.get(at..).unwrap_or_default()),
                    None => front.to_owned(),
                }
            }
            None => front.to_owned(),
        };
        for part in query.split_inclusive(['?', '&', '#']) {
            let (all, sign) =
                part.split_at(part.len() - usize::from(part.ends_with(['?', '&', '#'])));
            match all.split_once('=') {
                Some((name, _)) if self.is_secret_parameter(name) => {
                    out = format!("{out}{name}={MASK}{sign}");
                }
                _ => out = format!("{out}{all}{sign}"),
            }
        }
        self.text(&out).0.into_owned()
    }
}

/// Keys in the paths of the URLs of a word, as they are spelled there.
fn keys_in_paths(word: &str) -> Vec<String> {
    let urls =
        word.split([' ', '"', '\'', '<', '>', '\\', '\n', '\t']).filter(|w| w.contains("://"));
    urls.flat_map(|url| urls::keys(url.as_bytes()).into_iter().filter_map(|at| url.get(at)))
        .map(str::to_owned)
        .collect()
}

/// The password in a URL, as it is spelled there.
fn password_of_url(word: &str) -> Option<String> {
    let (_, rest) = word.split_once("://")?;
    let authority = rest.get(..rest.find(['/', '?', '#']).unwrap_or(rest.len()))?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':')?.1.to_owned())
}

/// All secrets of a process that are known by their text: of its environment and of the command line of the server
/// it starts. Never recorded, and looked for in everything else: [`super::Extra::values`].
///
/// # Errors
/// In words, when the built-in rules can't be set up.
pub fn known_values(command: &[String]) -> Result<Vec<String>, String> {
    let plain = Rules::new(super::Extra::default())?;
    let mut values = plain.secrets_of_argv(command);
    values.extend(secrets_of_environment(&plain));
    Ok(values)
}

/// Values of environment variables with secret names, and passwords of URLs in any of them.
pub fn secrets_of_environment(rules: &Rules) -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .filter_map(|(k, v)| secret_of_variable(rules, &k, v))
        .collect()
}

fn secret_of_variable(rules: &Rules, name: &str, value: String) -> Option<String> {
    let named = rules.is_secret_name(name) || bare_ends(name);
    if !named || is_place(name, &value) {
        return password_of_url(&value);
    }
    Some(value).filter(|v| v.len() >= 8)
}

/// A place on disk is no secret: the working directory, the file that a key is in.
fn is_place(name: &str, value: &str) -> bool {
    matches!(name, "PWD" | "OLDPWD" | "HOME") || (is_path(value) && Path::new(value).exists())
}

/// `GITHUB_TOKEN`, `FOO_KEY`: in the environment an ending is enough.
fn bare_ends(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_TOKEN", "_KEY", "_PASS", "_PW", "_PWD", "_CREDENTIAL"].iter().any(|e| name.ends_with(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_path_of_a_url_is_hidden_and_an_id_is_not() {
        let r = Rules::new(Default::default()).unwrap();
        let key = "NjA0Zjk3ZDItOGM0Yy00ZWQ1OjEyMzQ1Njc4OTAxMjM0";
        let id = "604f97d2-8c4c-4ed5-9a3b-123456789012";
        let url = format!("https://mcp.example/api/{id}/s/{key}/mcp?x=1");
        let want = format!("https://mcp.example/api/{id}/s/{MASK}/mcp?x=1");
        assert_eq!(r.url(&url), want);
        assert_eq!(r.text(&format!("see {url} there")).0, format!("see {want} there"));
        // Behind another one, between other signs; what has one case is an id.
        let hash = "0123456789abcdef0123456789abcdef01234567";
        for (url, want) in [
            (format!("https://h/{key}/{key}"), format!("https://h/{MASK}/{MASK}")),
            (format!("https://h/bot12:{key};v=1/x"), format!("https://h/bot12:{MASK};v=1/x")),
            (format!("wss://h:1/a/{key}?b=c"), format!("wss://h:1/a/{MASK}?b=c")),
            (
                format!("https://h/{hash}/{}", &key[..31]),
                format!("https://h/{hash}/{}", &key[..31]),
            ),
        ] {
            assert_eq!(r.url(&url), want);
            let line = format!("{{\"u\":\"{url}\"}}");
            assert_eq!(r.line(line.as_bytes()).0, format!("{{\"u\":\"{want}\"}}").as_bytes());
        }
        let words = |w: &[&str]| w.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(r.argv(&words(&["npx", "mcp-remote", &url, "-v"]))[2..], [want, "-v".into()]);
        assert_eq!(r.secrets_of_argv(&words(&["x", &url])), [key]);
    }

    #[test]
    fn what_hides_one_word_leaves_the_rest() {
        let r = Rules::new(Default::default()).unwrap();
        let words = |w: &[&str]| w.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        for (given, want) in [
            (
                &[
                    "sh",
                    "-c",
                    "TOKEN='a b' exec python server.py --db \"my db\" --token abcdef -v; ls",
                ][..],
                &[
                    "sh",
                    "-c",
                    "TOKEN=[redacted] exec python server.py --db \"my db\" --token [redacted] -v; ls",
                ][..],
            ),
            (
                &[
                    "bash",
                    "-lc",
                    "cd /x\nexport API_KEY=abcdef\ncurl 'https://u:pw@h/a?token=abc&b=1#c' | server --port 3",
                ],
                &[
                    "bash",
                    "-lc",
                    "cd /x\nexport API_KEY=[redacted]\ncurl https://[redacted]@h/a?token=[redacted]&b=1#c | server --port 3",
                ],
            ),
            (
                &[
                    "sh",
                    "-c",
                    "curl -H 'Authorization: Bearer abcdef' -H \"X: y\" http://h/; server",
                ],
                &["sh", "-c", "curl -H 'Authorization: [redacted]' -H \"X: y\" http://h/; server"],
            ),
            (
                &["x", "--header", "Authorization: Bearer abc def", "--keep=a b", "-v"],
                &["x", "--header", "Authorization: [redacted]", "--keep=a b", "-v"],
            ),
            (
                &[
                    "x",
                    "--header=Authorization: Bearer abc",
                    "y",
                    "--env",
                    "DB_PASSWORD=two words",
                    "z",
                ],
                &[
                    "x",
                    "--header=Authorization: [redacted]",
                    "y",
                    "--env",
                    "DB_PASSWORD=[redacted]",
                    "z",
                ],
            ),
            (
                &["x", "--config={\"token\":\"abc\",\"keep\":[1, 2]}", "--api-key=ftp://a", "y"],
                &[
                    "x",
                    "--config={\"token\":\"[redacted]\",\"keep\":[1, 2]}",
                    "--api-key=[redacted]",
                    "y",
                ],
            ),
            (
                &["ssh", "host", "API_TOKEN=abcdef server --stdio"],
                &["ssh", "host", "API_TOKEN=[redacted] server --stdio"],
            ),
            (
                &["x", "see https://u:pw@h/a b and c@d", "postgres://u:pw@h/db", "", "--", "-"],
                &[
                    "x",
                    "see https://u:[redacted]@h/a b and c@d",
                    "postgres://[redacted]@h/db",
                    "",
                    "--",
                    "-",
                ],
            ),
            (
                &["x", "https://h/p?code=abc#top&x", "--token", "", "y"],
                &["x", "https://h/p?code=[redacted]#top&x", "--token", "[redacted]", "y"],
            ),
        ] {
            let got = r.argv(&words(given));
            assert_eq!(got, want);
            assert_eq!(r.argv(&got), got, "twice is once");
        }
        let script =
            words(&["sh", "-c", "API_KEY=abcdef curl -H 'X-Auth: Bearer ghijkl' --token 'm n' x"]);
        assert_eq!(r.secrets_of_argv(&script), ["abcdef", "ghijkl", "m n"]);
    }

    #[test]
    fn the_working_directory_and_files_of_keys_are_no_secrets() {
        let r = Rules::new(Default::default()).unwrap();
        let here = std::env::current_dir().unwrap().display().to_string();
        let of = |name: &str, value: &str| secret_of_variable(&r, name, value.to_owned());
        for name in ["PWD", "OLDPWD", "HOME", "GOOGLE_APPLICATION_CREDENTIALS", "TLS_KEY"] {
            assert_eq!(of(name, &here), None, "{name}");
        }
        assert_eq!(of("PWD", "/gone/since/then"), None);
        assert_eq!(of("EDITOR", "an-editor"), None);
        for name in ["API_TOKEN", "DB_PWD", "DB_PASSWORD", "JWT"] {
            assert_eq!(of(name, "/k3y/of+base64=").as_deref(), Some("/k3y/of+base64="), "{name}");
        }
        assert_eq!(of("DATABASE_URL", "postgres://bob:p@ssw0rd@h/db").as_deref(), Some("p@ssw0rd"));
        assert_eq!(of("SEE", "http://h:80/a@b"), None);
    }
}
