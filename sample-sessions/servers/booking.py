"""A 2026-07-28 server with one tool that asks back: the first answer is input_required, the second the booking."""
import json
import sys

META = {"io.modelcontextprotocol/serverInfo": {"name": "booking", "version": "1.0"}}
for line in sys.stdin:
    msg = json.loads(line)
    if "id" not in msg:
        continue
    params = msg.get("params", {})
    if msg["method"] == "server/discover":
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    elif msg["method"] == "tools/list":
        tool = {"name": "book_room", "inputSchema": {"type": "object", "properties": {"night": {"type": "string"}}}}
        result = {"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"}
    elif msg["method"] == "tools/call" and "inputResponses" not in params:
        ask = {"method": "elicitation/create", "params": {"message": "Non-refundable. Book?", "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}}}}
        result = {"resultType": "input_required", "inputRequests": {"confirm": ask}, "requestState": "state-7f"}
    elif msg["method"] == "tools/call":
        result = {"resultType": "complete", "content": [{"type": "text", "text": "booked room 12"}], "structuredContent": {"room": 12}}
    else:
        error = {"code": -32601, "message": f"Method not found: {msg['method']}"}
        print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": {**result, "_meta": META}}), flush=True)
