//! An MCP server on stdio in shell: small enough to be odd in any way a test wants.

use redial::client::Endpoint;

/// Answers a call properly.
pub const ANSWER: &str = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id""#;

/// Runs `script` with the shell.
pub fn run(script: &str) -> Endpoint {
    let command = ["/bin/sh", "-c", script].map(String::from).to_vec();
    Endpoint::Stdio { command, env: vec![], cwd: None }
}

/// A server that runs `start` first, answers `initialize` and `tools/list`, and does `on_call` at a `tools/call`
/// ($id is its JSON-RPC id, $line the whole frame).
pub fn server(start: &str, on_call: &str) -> Endpoint {
    run(&script(start, on_call))
}

/// The same as a script.
pub fn script(start: &str, on_call: &str) -> String {
    format!(
        r#"{start}
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}\n' "$id" ;;
    *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"sh","version":"1"}}}}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[{{"name":"t"}}]}}}}\n' "$id" ;;
    *'"tools/call"'*) {on_call} ;;
  esac
done"#
    )
}
