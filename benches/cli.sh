#!/usr/bin/env bash
# cli.sh [RUNS]: what one-shot commands cost (20 runs each, release build): wall time of `redial tools` and `redial call` over HTTP
# beside the server's own answers to the same requests, the time from the answer to the end of the command on stdio with
# a polite server, with one that ignores end of input, and with one that ignores SIGTERM too, and the peak memory of each.
# Prints what it ran.
set -euo pipefail
cd "$(dirname "$0")/.."
redial=${REDIAL:-target/release/redial}
[ -x "$redial" ] || cargo build --release --locked
folder=$(mktemp -d)
"$redial" serve tickets --http 127.0.0.1:0 --ledger "$folder/ledger.db" 2>"$folder/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
until url=$(grep -o 'http://[^ ]*/mcp' "$folder/log"); do sleep 0.05; done
cat >"$folder/stdio.sh" <<'SH'
# Answers like a server; says when it answered the call; then leaves, or stays for ever (stubborn: through SIGTERM too).
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t"}]}}\n' "$id" ;;
    *'"tools/call"'*) date +%s.%N >"$2"; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" ;;
  esac
done
[ "$1" = deaf ] && while :; do sleep 1; done
[ "$1" = stubborn ] && { trap '' TERM; while :; do sleep 1; done; }
exit 0
SH
python3 - "$redial" "$url" "$folder" "${1:-20}" <<'PY'
import http.client, json, os, shlex, statistics, subprocess, sys, time
redial, url, folder, runs = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
host = url.split("/")[2]
meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}

def ask(method, params):
    """Milliseconds from the connection to the last byte of the answer."""
    name = {"Mcp-Name": params["name"]} if "name" in params else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}})
    begin = time.monotonic()
    c = http.client.HTTPConnection(host)
    c.request("POST", "/mcp", body, {"Content-Type": "application/json", "Mcp-Method": method,
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", **name})
    answer = c.getresponse()
    text = answer.read()
    assert answer.status == 200, (answer.status, text)
    return (time.monotonic() - begin) * 1000

def run(*args):
    """Wall milliseconds, and when it ended as time of day."""
    begin = time.monotonic()
    process = subprocess.Popen([redial, *args], stdout=subprocess.DEVNULL)
    status = process.wait()
    assert status == 0, (args, status)
    return (time.monotonic() - begin) * 1000, time.time()

def peak(*args):
    """MB, looked at in runs of their own (what wait4 says would be this interpreter's own peak before the exec)."""
    most = 0
    for _ in range(5):
        process = subprocess.Popen([redial, *args], stdout=subprocess.DEVNULL)
        while process.poll() is None:
            try:
                status = open(f"/proc/{process.pid}/status").read()
            except OSError:
                break
            if "VmHWM" in status and status.startswith("Name:\tredial"):
                most = max(most, int(status.split("VmHWM:")[1].split()[0]))
        process.wait()
    return most / 1024

def ran(args):
    print("  $ redial " + " ".join(shlex.quote(a) for a in args))

def row(name, own, *args):
    wall = [run(*args)[0] for _ in range(runs)]
    w, o = statistics.median(wall), statistics.median(own)
    print(f"{name:34} {w:8.1f} {o:12.1f} {w - o:8.1f} {max(wall):8.1f} {peak(*args):8.1f}")
    ran(args)

arguments = {"request_id": "bench-1", "title": "t", "body": "b"}
call = {"name": "create_ticket", "arguments": arguments}
version = subprocess.run([redial, "--version"], capture_output=True, text=True).stdout.strip()
print(f"{redial} ({version}) on {os.cpu_count()} cores, {runs} runs each, milliseconds\n")
print(f"{'over HTTP':34} {'median':>8} {'server alone':>12} {'added':>8} {'worst':>8} {'peak MB':>8}")
listing = [ask("server/discover", {}) + ask("tools/list", {}) for _ in range(runs)]
row("redial tools", listing, "tools", "--http", url)
own = [ask("server/discover", {}) + ask("tools/list", {}) + ask("tools/call", call) for _ in range(runs)]
row("redial call", own, "call", "create_ticket", "--args", json.dumps(arguments), "--http", url)
print(f"\n{'on stdio':34} {'median':>8} {'answer→end':>12} {'':>8} {'worst':>8} {'peak MB':>8}")
for kind in ("polite", "deaf", "stubborn"):
    mark = f"{folder}/answered"
    args = ("call", "t", "--", "sh", f"{folder}/stdio.sh", kind, mark)
    wall, after = [], []
    for _ in range(runs):
        w, end = run(*args)
        wall.append(w); after.append((end - float(open(mark).read())) * 1000)
    name = f"redial call, {kind} server"
    print(f"{name:34} {statistics.median(wall):8.1f} {statistics.median(after):12.1f} {'':>8} {max(after):8.1f} {peak(*args):8.1f}")
    ran(args)
PY
