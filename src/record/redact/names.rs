//! What looks like a secret by its name or by its form.

use super::Rules;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// Names (without case, `-`, `_`, `.`) whose value is a secret, and endings of such names.
const NAMES: [&str; 5] = ["auth", "pwd", "pass", "jwt", "sessionid"];
const ENDINGS: [&str; 26] = [
    "token",
    "accesstokens",
    "apitokens",
    "authtokens",
    "refreshtokens",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secretkey",
    "apikey",
    "accesskey",
    "accountkey",
    "authkey",
    "sharedkey",
    "subscriptionkey",
    "functionkey",
    "functionskey",
    "masterkey",
    "encryptionkey",
    "privatekey",
    "signingkey",
    "authorization",
    "cookie",
    "credentials",
];
/// Endings of names that end in `token` and hold a place in a list, an id of a request or a word of a model.
const OPEN_TOKENS: [&str; 20] = [
    "pagetoken",
    "nexttoken",
    "previoustoken",
    "startingtoken",
    "continuationtoken",
    "cursortoken",
    "synctoken",
    "progresstoken",
    "idempotencytoken",
    "clientrequesttoken",
    "maxtoken",
    "pertoken",
    "stoptoken",
    "starttoken",
    "endtoken",
    "eostoken",
    "bostoken",
    "padtoken",
    "unktoken",
    "masktoken",
];
/// Headers that end in `key` and hold no secret.
const OPEN_KEYS: [&str; 4] = ["idempotencykey", "routingkey", "surrogatekey", "cachekey"];

/// Well-known forms. Their word boundaries are those of ASCII: beside other letters the Unicode ones need the slowest
/// of the engines, while a frame waits. Where a pattern has a group, only the group is replaced. What the first three find is prose
/// unless [`form::fits`](super::form::fits) says otherwise.
pub(super) const PATTERNS: [&str; 13] = [
    r"(?i)(?-u:\b)bearer\s+([A-Za-z0-9._~+/=-]{8,})",
    r"(?i)(?-u:\b)basic\s+([A-Za-z0-9+/]{12,}={0,2})",
    r"(?-u:\b)(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    // After the header's name anything is one.
    r#"(?i)(?-u:\b)authorization["']?\s*[=:]\s*["']?(?:bearer|basic|token|digest|negotiate)\s+([^\s"',;\\]{3,})"#,
    r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
    r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)",
    r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)",
    // The password of a URL: up to the last @ before its path.
    r#"(?i)(?-u:\b)[a-z][a-z0-9+.-]*://[^\s/?#"'@:]*:([^\s/?#"']+)@"#,
    // A connection string.
    r#"(?i)(?-u:\b)(?:password|passwd|account_?key|shared_?access_?key)=([^\s;"'&\\]{3,})"#,
    // A parameter of a URL.
    r#"(?i)[?&](?:[\w.-]*(?:password|passwd|secret|api[_-]?key|access[_-]?key|subscription[_-]?key|(?:access|refresh|auth|id|bearer|session|security)[_-]?token|signature)|token|sig)=([^\s&"'#\\]{3,})"#,
    // A URL: many servers have the key in its path.
    r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\\]+"#,
];

/// In lines that are no JSON: `password=…`, `API_KEY: …`.
pub(super) static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?-u:\b)[\w.-]*(?:password|passwd|secret|(?:api|access|auth|subscription|functions?|account)[_-]?key|(?:access|refresh|auth|id|bearer|session)[_-]?token|[_-]token|private[_-]?key|authorization|cookie)["']?\s*[=:]\s*["']?(?:bearer\s+|basic\s+)?([^\s"',;]{3,})"#,
    )
    .ok()
});

/// In lines that are no JSON: a credential header, all of it (`Authorization: Token …`, a second cookie).
pub(super) static HEADERS_OF_LINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?-u:\b)[\w.-]*(?:authorization|cookie)["']?\s*[=:]\s*["']?(?:bearer\s+|basic\s+)?([^\s"'][^"'\r\n]{2,})"#,
    )
    .ok()
});

impl Rules {
    /// Whether a value under this name is a secret.
    pub fn is_secret_name(&self, name: &str) -> bool {
        // Longer names are prose.
        if name.len() > 80 {
            return false;
        }
        let b = bare(name);
        NAMES.contains(&b.as_str())
            || (ENDINGS.iter().any(|e| b.ends_with(e)) && !is_open_token(&b))
            || self.keys.contains(&b)
    }

    /// Whether a number under this secret name is a secret: one under `pass` or `secrets` counts.
    pub(super) fn is_secret_number(&self, name: &str) -> bool {
        let b = bare(name);
        self.keys.contains(&b) || (b != "pass" && !b.ends_with("tokens") && !b.ends_with("secrets"))
    }

    /// Whether this value under this name is a secret: `pwd` is a password or the working directory, and a path
    /// is no secret.
    pub fn is_secret(&self, name: &str, value: &str) -> bool {
        let b = bare(name);
        self.is_secret_name(name) && (self.keys.contains(&b) || b != "pwd" || !is_path(value))
    }

    /// Whether the value of this header is a secret.
    pub fn is_secret_header(&self, name: &str) -> bool {
        let b = bare(name);
        // SEP-2243: an argument of a tool once more, as a header of its call.
        if let Some(argument) = b.strip_prefix("mcpparam")
            && (self.is_secret_name(argument) || self.ends_a_path(argument))
        {
            return true;
        }
        self.is_secret_name(name)
            || matches!(b.as_str(), "mcpsessionid" | "setcookie" | "proxyauthorization" | "xauth")
            || b.ends_with("signature")
            || b.ends_with("csrf")
            || (b.ends_with("key") && !OPEN_KEYS.iter().any(|k| b.ends_with(k)))
    }

    /// Whether a path that a person gave may lead to a member of this name.
    fn ends_a_path(&self, bare_name: &str) -> bool {
        let last = self.paths.iter().filter_map(|p| p.last());
        last.into_iter().any(|l| l == "*" || bare(l) == bare_name)
    }

    /// Whether the value of this parameter of a URL is a secret.
    pub(super) fn is_secret_parameter(&self, name: &str) -> bool {
        self.is_secret_header(name)
            || matches!(bare(name).as_str(), "code" | "sig")
            || bare(name).ends_with("credential")
    }
}

/// Whether what a name and a sign before a value say is a token that is no secret (`page_token=`).
pub(super) fn names_open_token(found: &[u8]) -> bool {
    let is_name = |b: &&u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let name: Vec<u8> = found.iter().take_while(is_name).copied().collect();
    is_open_token(&bare(&String::from_utf8_lossy(&name)))
}

fn is_open_token(bare_name: &str) -> bool {
    OPEN_TOKENS.iter().any(|e| bare_name.ends_with(e))
}

/// The form of a path.
pub(super) fn is_path(value: &str) -> bool {
    let drive = matches!(value.as_bytes(), [d, b':', b'/' | b'\\', ..] if d.is_ascii_alphabetic());
    drive || ["/", "~/", "./", "../"].iter().any(|s| value.starts_with(s)) || value == "~"
}

/// A name without what spellings differ in.
pub(super) fn bare(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}
