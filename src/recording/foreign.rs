//! What a file is that is no recording and none of the forms that are converted: its own program's name, so that a person
//! knows what to do with it. Told by its beginning, never by its name. Reads nothing out of it.

use crate::json::raw;
use crate::magic;

/// How to have such a file read.
pub const HOW_TO_CONVERT: &str = "convert it to the neutral form, one JSON object a line: {\"t\":SECONDS,\"dir\":\"out\"|\"in\",\"msg\":{…}}, {\"t\":…,\"dir\":\"err\",\"text\":\"…\"}, \
{\"t\":…,\"dir\":\"proc\",\"event\":\"start\"|\"exit\",\"code\":N} (src/record/FORMAT.md)";

/// Lines of programs, by what stands in them.
const LINES: [(&[&str], &str); 9] = [
    (&["Message from client: ", "Message from server: "], "a Claude Desktop log"),
    (&["Initializing server...", "Using MCP server command:"], "a Claude Desktop log"),
    (&["[editor -> server]", "[server -> editor]"], "a VS Code MCP log"),
    (&["[Client Says]", "[Server Says]"], "a VS Code MCP log"),
    (&["[server stderr]", "Connection state: "], "a VS Code MCP log"),
    (&["Handling CallTool action for tool '", "Calling tool '"], "a Cursor MCP log"),
    (&["Z [STDIN] ", "Z [STDOUT] "], "a log of mcp-server-logger"),
    (&["[INFO] Subprocess launched:", "Z [STDERR] "], "a log of mcp-server-logger"),
    (&["<!DOCTYPE html", "<html"], "an HTML page"),
];

/// JSON by members that stand in it together.
const MEMBERS: [(&[&str], &str); 13] = [
    (&["log", "entries", "request"], "a HAR file"),
    (&["log", "entries", "version"], "a HAR file"),
    (&["interactions", "metadata"], "a cassette of mcp-recorder"),
    (&["resourceSpans"], "an OpenTelemetry export"),
    (&["direction", "session_id", "seq"], "a log of mcpsnoop"),
    (&["direction", "message", "timestamp"], "an export of the MCP Inspector"),
    (&["ts", "dir", "msg"], "a log of mcp-rec"),
    (&["debug", "timestamp", "sessionId"], "an MCP log of Claude Code"),
    (&["error", "timestamp", "sessionId"], "an MCP log of Claude Code"),
    (&["sessionId", "type", "uuid"], "a transcript of Claude Code"),
    (&["sessionId", "message", "type"], "a transcript of Claude Code"),
    (&["timestamp", "type", "payload"], "a session of Codex"),
    (&["mcpServers"], "a file that names servers (--server NAME uses it)"),
];

/// What this is the beginning of. To be asked where nothing of a session was recognised.
pub fn name(head: &[u8]) -> &'static str {
    if let Some(name) = magic::name(head) {
        return name;
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if head.contains(&0) || text.chars().filter(|c| *c == '\u{fffd}').count() > head.len() / 20 {
        return "no text";
    }
    let lines: Vec<&str> = text.lines().take(50).collect();
    if text.starts_with(['{', '[']) {
        let found = MEMBERS.iter().find(|(members, _)| {
            // A file that is one document has them all in its beginning, one of lines in one line.
            let has = |t: &str| members.iter().all(|m| t.contains(&raw::quote(m)));
            lines.iter().any(|l| has(l)) || (lines.len() > 1 && !is_lines(&lines) && has(text))
        });
        return match found {
            Some((_, name)) => name,
            None if is_lines(&lines) => "JSON Lines of another program",
            None => "JSON of another program",
        };
    }
    let says = |words: &[&str]| lines.iter().any(|l| words.iter().any(|w| l.contains(w)));
    match LINES.iter().find(|(words, _)| says(words)) {
        Some((_, name)) => name,
        None => "plain text, or a log of another program",
    }
}

/// More than one whole object, one a line.
fn is_lines(lines: &[&str]) -> bool {
    lines.iter().filter(|l| raw::members(l).is_some()).count() > 1
        || (lines.len() == 1 && lines.first().is_some_and(|l| raw::members(l).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_file_has_its_programs_name() {
        let desktop = "2026-11-12T02:14:03.201Z [tickets] [info] Message from client: {\"id\":0} { metadata: undefined }\n";
        let vscode = "2026-11-12 02:14:03.130 [trace] [editor -> server] {\"id\":1}\n";
        let logger = "2026-11-12T02:14:03.480Z [STDIN] {\"id\":1}\n";
        let cursor = "2026-02-01 10:00:00.000 [info] kets: Calling tool 'create_ticket'\n";
        let har = "{\"log\": {\"version\": \"1.2\",\n \"entries\": [{\"request\": {}}]}}";
        let snoop = "{\"seq\":1,\"direction\":\"c2s\",\"session_id\":\"x\"}\n{\"seq\":2}\n";
        let codex =
            "{\"timestamp\":\"…\",\"type\":\"session_meta\",\"payload\":{}}\n{\"type\":\"x\"}\n";
        let claude = "{\"type\":\"assistant\",\"message\":{},\"sessionId\":\"x\"}\n{}\n";
        for (text, want) in [
            (desktop, "Claude Desktop"),
            (vscode, "VS Code"),
            (logger, "mcp-server-logger"),
            (cursor, "Cursor"),
            (har, "HAR"),
            (snoop, "mcpsnoop"),
            (codex, "Codex"),
            (claude, "transcript of Claude Code"),
            ("{\"log\":{\"version\":\"1.2\",\"entries\":[]}}", "HAR"),
            ("SQLite format 3\0", "SQLite"),
            ("\x1f", "plain text"),
            ("{\"a\":1}\n{\"b\":2}\n", "JSON Lines"),
            ("{\"a\":\n1}", "JSON of another"),
            ("hello\nworld\n", "plain text"),
            ("\0\0\0\0", "no text"),
            ("<!DOCTYPE html><html>", "HTML"),
        ] {
            assert!(name(text.as_bytes()).contains(want), "{text}: {}", name(text.as_bytes()));
        }
        assert!(name(b"\x1f\x8b\x08\0").contains("gzip"));
        assert!(name(b"\x28\xb5\x2f\xfd").contains("zstd"));
        assert!(name(b"\xff\xfea\0").contains("UTF-16"));
    }
}
