//! From the command line (or `.mcp.json`) to an endpoint. Checks before anything is sent or started, and never
//! repeats in words what may hold a secret.

use super::args::{EndpointArgs, EraArg};
use super::plain::complain;
use crate::client::{Endpoint, Era, Root};
use crate::config::Config;
use crate::endpoints::{self, Named, is_header, is_http_url};
use crate::error::{Error, Result};

/// Seconds a call may take, unless somebody says otherwise (design: "Waiting").
const CALL_LIMIT_S: f64 = 60.0;

impl EndpointArgs {
    /// The endpoint, if one was named. What there is to say about a `--server` is said on stderr, once.
    ///
    /// # Errors
    /// Exit 2 when the URL isn't one, a header isn't `Name: value`, or `.mcp.json` hasn't that server.
    pub fn endpoint(&self) -> Result<Option<Endpoint>> {
        if let Some(named) = self.named()? {
            return Ok(Some(named.endpoint.clone()));
        }
        if let Some(url) = &self.http {
            if !is_http_url(url) {
                return Err(Error::usage(format!("--http {url:?} is no URL; nothing was sent"))
                    .hint("it looks like http://127.0.0.1:8000/mcp"));
            }
            let headers = self.header.iter().map(|h| header(h)).collect::<Result<_>>()?;
            return Ok(Some(Endpoint::Http { url: url.clone(), headers }));
        }
        if self.endpoint_command.is_empty() {
            return Ok(None);
        }
        Ok(Some(Endpoint::Stdio {
            command: self.endpoint_command.clone(),
            env: Vec::new(),
            cwd: None,
        }))
    }

    /// None was named.
    pub fn is_none(&self) -> bool {
        self.http.is_none() && self.server.is_none() && self.endpoint_command.is_empty()
    }

    /// The endpoint, which must be there.
    ///
    /// # Errors
    /// Exit 2 when none was named.
    pub fn required(&self) -> Result<Endpoint> {
        self.endpoint()?.ok_or_else(|| {
            Error::usage("no endpoint was named")
                .hint("give --http URL, --server NAME, or a server to start: -- COMMAND ARGS…")
        })
    }

    /// The era asked for.
    pub fn era(&self) -> Era {
        match self.era {
            Some(EraArg::Auto) => Era::Auto,
            Some(EraArg::Modern) => Era::Modern,
            Some(EraArg::Legacy) => Era::Legacy,
            None => self.named.get().and_then(|n| n.era).unwrap_or_default(),
        }
    }

    /// Takes what the configuration says of calls.
    pub fn configure(&self, config: &Config) {
        if let Some(limit_s) = config.server.call_limit() {
            // Whoever said it first meant the same.
            self.configured.set(limit_s).ok();
        }
    }

    /// Seconds a call may take: the flag, else the `timeout` of the server's own entry, else what the configuration
    /// says for all servers, else 60. To be asked after the endpoint and [`Self::configure`].
    pub fn call_limit(&self, flag: Option<f64>) -> f64 {
        flag.or_else(|| self.named.get().and_then(|n| n.call_limit_s))
            .or_else(|| self.configured.get().copied())
            .unwrap_or(CALL_LIMIT_S)
    }

    /// How a server of `.mcp.json` is named to people: as it is written there, since what its variables hold may be
    /// secret. To be asked after the endpoint.
    pub fn shown(&self) -> Option<String> {
        self.named.get().map(|n| n.shown.clone())
    }

    /// The folders a server may be told, as URIs.
    ///
    /// # Errors
    /// Exit 2 for one that is no folder here.
    pub fn roots(&self) -> Result<Vec<Root>> {
        self.root.iter().map(|text| root(text)).collect()
    }

    fn named(&self) -> Result<Option<&Named>> {
        let Some(name) = &self.server else { return Ok(None) };
        if let Some(known) = self.named.get() {
            return Ok(Some(known));
        }
        let here = std::env::current_dir()
            .map_err(|e| Error::usage(format!("the current folder can't be told: {e}")))?;
        let found = endpoints::named(name, &here, &|v| std::env::var(v).ok())?;
        found.warnings.iter().for_each(|w| complain(w));
        Ok(Some(self.named.get_or_init(|| found)))
    }
}

/// A folder (or its URI, taken as it is) as the server is told (2025-11-25, client/roots: `file://` only).
fn root(text: &str) -> Result<Root> {
    if text.starts_with("file://") {
        return Ok(Root { uri: text.to_owned(), name: None });
    }
    let bad = |why: &str| Error::usage(format!("the root {text:?} {why}; nothing was sent"));
    let folder = std::fs::canonicalize(text).map_err(|e| bad(&format!("can't be told: {e}")))?;
    if !folder.is_dir() {
        return Err(bad("is no folder"));
    }
    let uri = reqwest::Url::from_file_path(&folder).map_err(|()| bad("is no absolute path"))?;
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
    Ok(Root { uri: uri.into(), name })
}

/// A header line as two parts. A malformed one is not repeated in the error: it may hold a secret.
fn header(text: &str) -> Result<(String, String)> {
    let blank = [' ', '\t'];
    match text.split_once(':').map(|(k, v)| (k.trim_matches(blank), v.trim_matches(blank))) {
        Some((k, v)) if is_header(k, v) => Ok((k.to_owned(), v.to_owned())),
        _ => Err(Error::usage("a --header is not of the form \"Name: value\"; nothing was sent")
            .hint("for example: --header 'Authorization: Bearer …'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_told_as_the_uri_of_a_folder_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a b#é");
        std::fs::create_dir(&folder).unwrap();
        let got = root(folder.to_str().unwrap()).unwrap();
        assert!(got.uri.starts_with("file:///") && got.uri.ends_with("/a%20b%23%C3%A9"), "{got:?}");
        assert_eq!(got.name.as_deref(), Some("a b#é"));
        assert_eq!(root("file:///srv").unwrap().uri, "file:///srv");
        let file = dir.path().join("f");
        std::fs::write(&file, "").unwrap();
        for bad in [file.to_str().unwrap(), "/nowhere/at/all"] {
            assert!(root(bad).unwrap_err().what.contains("nothing was sent"), "{bad}");
        }
    }

    #[test]
    fn a_limit_said_of_one_server_beats_the_one_for_all_and_a_flag_beats_both() {
        let args = EndpointArgs::default();
        assert_eq!(args.call_limit(None), 60.0);
        let mut config = Config::default();
        config.server.call_seconds = 2.0;
        args.configure(&config);
        assert_eq!(args.call_limit(None), 2.0);
        let named = Named {
            endpoint: Endpoint::Http { url: "http://x/".into(), headers: vec![] },
            call_limit_s: Some(20.0),
            era: None,
            file: "f".into(),
            shown: "x".into(),
            warnings: vec![],
        };
        args.named.set(named).unwrap();
        assert_eq!((args.call_limit(None), args.call_limit(Some(1.0))), (20.0, 1.0));
    }

    #[test]
    fn headers_are_checked_before_anything_is_sent() {
        assert_eq!(header("X-A:b:c").unwrap(), ("X-A".into(), "b:c".into()));
        assert_eq!(header("Empty:").unwrap(), ("Empty".into(), String::new()));
        for bad in
            ["no colon secret", ": secret", "a b: secret", "X\n: secret", "X: secret\r\nY: z"]
        {
            let e = header(bad).unwrap_err();
            assert_eq!(e.exit, crate::error::Exit::Usage, "{bad:?}");
            assert!(!e.to_string().contains("secret"), "{e}");
        }
    }
}
