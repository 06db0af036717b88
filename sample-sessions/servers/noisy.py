"""A server that talks on stdout between its messages and floods stderr before each answer."""
import json
import sys

print("noisy server v0.3 ready on stdio", flush=True)
for line in sys.stdin:
    msg = json.loads(line)
    if "id" not in msg:
        continue
    for n in range(60):
        print(f"[debug] step {n} of {msg['method']}: cache miss, retrying", file=sys.stderr, flush=True)
    print("DEBUG handling", msg["method"], flush=True)
    if msg["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "noisy", "version": "0.3"}}
    elif msg["method"] == "tools/list":
        result = {"tools": [{"name": "sum", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    else:
        args = msg["params"]["arguments"]
        print("warning: float result, rounding \u001b[31mRED\u001b[0m", file=sys.stderr, flush=True)
        result = {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": result}), flush=True)
