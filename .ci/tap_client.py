"""The Python SDK's own client through `redial record`, beside the same client without it. Run by .ci/tap."""
import asyncio
import json
import os
import subprocess

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

REDIAL, WORK = os.environ["REDIAL"], os.environ["WORK"]


def show(recording):
    out = subprocess.run([REDIAL, "show", recording, "--json"], check=True, capture_output=True, text=True)
    doc = json.loads(out.stdout)
    assert not doc["damaged"] and doc["lost"] == 0, doc["damaged"]
    return doc


async def work(session, calls):
    await session.initialize()
    tools = [t.model_dump() for t in (await session.list_tools()).tools]
    answers = []
    for name, args in calls:
        answers.append((await session.call_tool(name, args)).model_dump())
    # Side by side: ids and answers must still belong together.
    many = await asyncio.gather(*[session.call_tool(*calls[0]) for _ in range(50)])
    assert len({json.dumps(m.model_dump()) for m in many}) == 1
    return tools, answers


async def stdio(command, calls):
    params = StdioServerParameters(command=command[0], args=command[1:], env={**os.environ})
    async with stdio_client(params) as (r, w), ClientSession(r, w) as session:
        return await work(session, calls)


async def http(url, calls):
    async with streamablehttp_client(url) as (r, w, _), ClientSession(r, w) as session:
        return await work(session, calls)


def listening(*command):
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    for line in child.stderr:
        if "http://" in line:
            return child, line.split("http://")[1].split("/")[0]
    raise SystemExit(f"{command} never listened")


async def main():
    server = [REDIAL, "serve", "tickets", "--ledger", f"{WORK}/py.db"]
    calls = [("find_request", {"request_id": "nobody"}), ("create_ticket", {"request_id": "r-1", "title": "障害", "body": "b"})]
    everything = ["node", os.environ["EVERYTHING"], "stdio"]
    echo = [("echo", {"message": "hello\n\u2028日本"}), ("get-sum", {"a": 1, "b": 2.5})]
    for name, command, asked in [("py-stdio", server, calls), ("py-everything", everything, echo)]:
        recording = f"{WORK}/{name}.jsonl"
        direct = await stdio(command, asked)
        tapped = await stdio([REDIAL, "record", "--out", recording, "--", *command], asked)
        if name == "py-stdio":
            # The second run finds the ticket of the first: the same number, said to be a replay.
            strip = lambda t: json.dumps(t).replace("true", "false")
            assert strip(direct) == strip(tapped), (direct, tapped)
        else:
            assert direct == tapped, (direct, tapped)
        doc = show(recording)
        assert len(doc["calls"]) == len(asked) + 50 and all(c["outcome"] == "ok" for c in doc["calls"]), doc["calls"]
        print(f"ok: Python SDK client through the tap on stdio ({name})")
    up, at = listening(*server[:-1], f"{WORK}/py-http.db", "--http", "127.0.0.1:0")
    recording = f"{WORK}/py-http.jsonl"
    tap, here = listening(REDIAL, "record", "--out", recording, "--http", f"http://{at}/mcp", "--listen", "127.0.0.1:0")
    try:
        direct = await http(f"http://{at}/mcp", calls)
        first, second = await asyncio.gather(http(f"http://{here}/mcp", calls), http(f"http://{here}/mcp", calls))
        strip = lambda t: json.dumps(t).replace("true", "false")
        assert strip(direct) == strip(first) == strip(second), (direct, first, second)
    finally:
        tap.terminate()
        tap.wait()
        up.kill()
        up.wait()
    doc = show(recording)
    assert len(doc["calls"]) == 104 and all(c["outcome"] == "ok" for c in doc["calls"]), [c["outcome"] for c in doc["calls"]]
    assert len({c["generation"] for c in doc["calls"]}) == 2, "two sessions, told apart"
    print("ok: two Python SDK clients through the tap on HTTP")


asyncio.run(main())
