//! How an address is named to people: without what may be a secret in it. Pure text in, text out.

use crate::urls;

/// A URL (or the relative one of a `Location`) without its user information, without the values of its query and without what
/// looks like a key in its path.
/// Everything else stands as it was written.
pub(crate) fn shown_url(url: &str) -> String {
    let (head, fragment) = url.split_once('#').map_or((url, None), |(h, f)| (h, Some(f)));
    let (head, query) = head.split_once('?').map_or((head, None), |(h, q)| (h, Some(q)));
    let mut out = String::with_capacity(url.len());
    match head.split_once("//") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '\\']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority.rsplit_once('@');
            out.push_str(scheme);
            out.push_str("//");
            out.push_str(
                &host.map_or_else(|| authority.to_owned(), |(_, host)| format!("…@{host}")),
            );
            out.push_str(&urls::shown(path));
        }
        None => out.push_str(&urls::shown(head)),
    }
    if let Some(query) = query {
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((key, "")) => format!("{key}="),
                Some((key, _)) => format!("{key}=…"),
                None => "…".into(),
            })
            .collect();
        out.push('?');
        out.push_str(&pairs.join("&"));
    }
    if fragment.is_some() {
        out.push_str("#…");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_shown_and_the_rest_stands() {
        for (url, shown) in [
            ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
            ("http://user:hunter2@host/mcp?api_key=S99&x=", "http://…@host/mcp?api_key=…&x="),
            ("https://token@host", "https://…@host"),
            ("http://a:b@c@host/p@q", "http://…@host/p@q"),
            ("http://host?S99", "http://host?…"),
            ("/login?next=/mcp&token=S99#S99", "/login?next=…&token=…#…"),
            ("not a url", "not a url"),
            ("https://h/s/NjA0Zjk3ZDItOGM0Yy00ZWQ1OjEyMzQ1Njc4OTAxMjM0/mcp", "https://h/s/…/mcp"),
            ("/s/NjA0Zjk3ZDItOGM0Yy00ZWQ1OjEyMzQ1Njc4OTAxMjM0?a=b", "/s/…?a=…"),
            (
                "https://h/604f97d2-8c4c-4ed5-9a3b-123456789012",
                "https://h/604f97d2-8c4c-4ed5-9a3b-123456789012",
            ),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
