//! Redaction of command lines, URLs and the environment.

use super::form::is_long_and_mixed;
use super::names::is_path;
use super::{MASK, Rules};
use std::borrow::Cow;
use std::path::Path;

impl Rules {
    /// A command line: `--token X`, `--token=X`, `TOKEN=X`, `-H "Authorization: X"`, URLs, and what looks like
    /// a credential.
    pub fn argv(&self, words: &[String]) -> Vec<String> {
        let mut out = Vec::with_capacity(words.len());
        let mut secret_of = None;
        for word in words {
            if std::mem::take(&mut secret_of).is_some_and(|name| self.is_secret(name, word))
                && !word.starts_with('-')
            {
                out.push(MASK.to_owned());
                continue;
            }
            let name = word.trim_start_matches('-');
            let is_option = name.len() < word.len() && !name.contains('=');
            secret_of = Some(name).filter(|n| is_option && self.is_secret_name(n));
            out.push(self.word(word));
        }
        out
    }

    fn word(&self, word: &str) -> String {
        if word.contains("://") {
            return self.url(word);
        }
        for sign in ['=', ':'] {
            if let Some((name, value)) = word.split_once(sign)
                && !name.contains(char::is_whitespace)
                && self.is_secret_header(name.trim_start_matches('-'))
                && !(is_path(value) && name.trim_start_matches('-').eq_ignore_ascii_case("pwd"))
                && !value.trim().is_empty()
            {
                let gap = if value.starts_with(' ') { " " } else { "" };
                return format!("{name}{sign}{gap}{MASK}");
            }
        }
        let line = self.line(word.as_bytes()).0;
        String::from_utf8_lossy(&line).into_owned()
    }

    /// The secrets of a command line, to be looked for everywhere else.
    pub fn secrets_of_argv(&self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (i, word) in words.iter().enumerate() {
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
                && let Some(value) = words.get(i + 1).filter(|v| !v.starts_with('-'))
                && self.is_secret(name, value)
            {
                found.push(value.clone());
            }
            found.extend(password_of_url(word));
            found.extend(keys_in_path(word));
        }
        found
    }

    /// A URL without password and without the values of secret parameters.
    pub fn url(&self, url: &str) -> String {
        let (front, query) = match url.split_once('?') {
            Some((f, q)) => (f, Some(q)),
            None => (url, None),
        };
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
        out = out.split('/').map(hidden_segment).collect::<Vec<_>>().join("/");
        if let Some(query) = query {
            let parts = query.split('&').map(|p| match p.split_once('=') {
                Some((name, _)) if self.is_secret_parameter(name) => {
                    Cow::Owned(format!("{name}={MASK}"))
                }
                _ => Cow::Borrowed(p),
            });
            out = format!("{out}?{}", parts.collect::<Vec<_>>().join("&"));
        }
        self.text(&out).0.into_owned()
    }
}

fn hidden_segment(segment: &str) -> &str {
    if is_long_and_mixed(segment.as_bytes()) { MASK } else { segment }
}

/// Keys in the path of a URL, as they are spelled there.
fn keys_in_path(word: &str) -> Vec<String> {
    let Some((_, rest)) = word.split_once("://") else { return Vec::new() };
    let segments = rest.split(['/', '?', '#', '&', '=', ' ', '"', '\'']).skip(1);
    segments.filter(|s| is_long_and_mixed(s.as_bytes())).map(str::to_owned).collect()
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
        let words = |w: &[&str]| w.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(r.argv(&words(&["npx", "mcp-remote", &url, "-v"]))[2..], [want, "-v".into()]);
        assert_eq!(r.secrets_of_argv(&words(&["x", &url])), [key]);
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
