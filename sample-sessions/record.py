"""Records the sample sessions again, with real servers behind `redial record`.

Needs on PATH: redial, a python with PyPI mcp 1.29.1, node; and in the current folder node_modules with
@modelcontextprotocol/server-everything. Run: python record.py FOLDER [NAME...] (the recordings are written there; with
names, only those, and only what they need has to be there). `.ci/samples` does it with what CI has."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

OUT = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
MODULES = pathlib.Path("node_modules").resolve()
WORK = pathlib.Path(tempfile.mkdtemp())
shutil.copytree(HERE / "servers", WORK / "servers")
(WORK / "node_modules").symlink_to(MODULES)
os.chdir(WORK)
ENV = {**os.environ, "XDG_STATE_HOME": str(WORK / "state")}
LEGACY = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "night-agent", "version": "1.0"}}


class Stdio:
    """A plain client with the tap as its server."""

    def __init__(self, out, *command):
        self.out, self.ids = out, 0
        self.tap = subprocess.Popen(["redial", "record", "--out", out, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV, text=True)

    def send(self, method, params=None, answer=True, notify=False):
        msg = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        if not notify:
            self.ids += 1
            msg["id"] = self.ids
        self.tap.stdin.write(json.dumps(msg, ensure_ascii=False) + "\n")
        self.tap.stdin.flush()
        while answer and not notify:
            line = self.tap.stdout.readline()
            if not line:
                return None
            try:
                got = json.loads(line)
            except ValueError:
                continue
            if got.get("id") == msg["id"]:
                return got
        return msg.get("id")

    def open(self):
        self.send("initialize", LEGACY)
        self.send("notifications/initialized", notify=True)
        self.send("tools/list", {})
        return self

    def call(self, tool, args, **how):
        return self.send("tools/call", {"name": tool, "arguments": args}, **how)

    def server(self):
        while True:
            for line in reversed(pathlib.Path(self.out).read_text(encoding="utf-8").splitlines()):
                event = json.loads(line)
                if event.get("kind") == "opened":
                    return event["pid"]
            time.sleep(0.02)

    def kill(self):
        os.kill(self.server(), signal.SIGKILL)
        self.tap.wait()

    def close(self):
        self.tap.stdin.close()
        self.tap.wait()


def out(name):
    path = OUT / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    return str(path)


def tickets(*more):
    return ("redial", "serve", "tickets", "--ledger", "ledger.db", *more)


def ticket(n, title="Login fails"):
    return {"request_id": f"night-{n:04}", "title": title, "body": "reported at 02:5%d" % (n % 10)}


def clean():
    s = Stdio(out("clean"), *tickets()).open()
    s.call("create_ticket", ticket(1))
    s.call("create_ticket", ticket(2, "障害報告: ログイン不可"))
    s.call("find_request", {"request_id": "night-0002"})
    s.close()


def killed_same_id():
    path = out("killed-same-id")
    s = Stdio(path, *tickets("--work-seconds", "30")).open()
    s.call("create_ticket", ticket(11), answer=False)
    time.sleep(0.5)
    s.kill()
    s = Stdio(path, *tickets()).open()
    s.call("find_request", {"request_id": "night-0011"})
    s.call("create_ticket", ticket(11))
    s.close()


def killed_new_id():
    path = out("killed-new-id")
    s = Stdio(path, "redial", "serve", "charge", "--effects", "charges.jsonl", "--work-seconds", "30").open()
    s.call("charge", {"amount": 1200}, answer=False)
    time.sleep(0.5)
    s.kill()
    s = Stdio(path, "redial", "serve", "charge", "--effects", "charges.jsonl").open()
    s.call("charge", {"amount": 1200})
    s.close()


def cancelled_but_finished():
    s = Stdio(out("cancelled-but-finished"), *tickets("--work-seconds", "1.5")).open()
    call = s.call("create_ticket", ticket(21), answer=False)
    time.sleep(0.5)
    s.send("notifications/cancelled", {"requestId": call, "reason": "timed out after 0.5 s"}, notify=True)
    time.sleep(1.5)
    s.call("find_request", {"request_id": "night-0021"})
    s.close()


def noise_and_flood():
    s = Stdio(out("noise-and-flood"), "python", "servers/noisy.py").open()
    s.call("sum", {"a": 1.5, "b": 2})
    s.call("sum", {"a": 40, "b": 2})
    s.close()


def handle_lost():
    path = out("handle-lost")
    s = Stdio(path, "python", "servers/basket.py").open()
    s.call("create_basket", {})
    s.call("add_item", {"basket_id": "bsk-1", "sku": "book-42"})
    s.kill()
    s = Stdio(path, "python", "servers/basket.py").open()
    s.call("add_item", {"basket_id": "bsk-1", "sku": "pen-7"})
    s.close()


def input_required():
    s = Stdio(out("input-required"), "python", "servers/booking.py")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    s.send("server/discover", {"_meta": meta})
    s.send("tools/list", {"_meta": meta})
    call = {"name": "book_room", "arguments": {"night": "2026-12-01"}, "_meta": meta}
    asked = s.send("tools/call", call)["result"]
    s.send("tools/call", {**call, "inputResponses": {"confirm": {"action": "accept", "content": {"yes": True}}}, "requestState": asked["requestState"]})
    s.close()


def everything():
    s = Stdio(out("everything"), "node", "node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio").open()
    s.call("echo", {"message": "hello"})
    s.call("get-sum", {"a": 2, "b": 3})
    s.send("prompts/list", {})
    s.send("resources/list", {})
    s.call("no_such_tool", {})
    s.close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def session_lost():
    port, listen = free_port(), free_port()
    tap = subprocess.Popen(["redial", "record", "--http", f"http://127.0.0.1:{port}/mcp", "--listen", f"127.0.0.1:{listen}", "--out", out("session-lost")], stderr=subprocess.DEVNULL, env=ENV)

    def up():
        server = subprocess.Popen(["python", "servers/basket.py", str(port)], stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return server
            except OSError:
                time.sleep(0.05)

    session, ids = [None], [0]

    def post(method, params=None, notify=False):
        msg = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        if not notify:
            ids[0] += 1
            msg["id"] = ids[0]
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer not-a-real-token-1"}
        if session[0]:
            headers["Mcp-Session-Id"] = session[0]
        request = urllib.request.Request(f"http://127.0.0.1:{listen}/mcp", json.dumps(msg).encode(), headers)
        try:
            with urllib.request.urlopen(request) as r:
                r.read()
                return r.headers.get("Mcp-Session-Id")
        except urllib.error.HTTPError as e:
            e.read()

    def open_session():
        session[0] = None
        session[0] = post("initialize", LEGACY)
        post("notifications/initialized", notify=True)
        post("tools/list", {})

    server = up()
    time.sleep(0.3)
    open_session()
    post("tools/call", {"name": "create_basket", "arguments": {}})
    server.kill()
    server.wait()
    post("tools/call", {"name": "add_item", "arguments": {"basket_id": "bsk-1", "sku": "book-42"}})
    server = up()
    post("tools/call", {"name": "add_item", "arguments": {"basket_id": "bsk-1", "sku": "book-42"}})
    open_session()
    post("tools/call", {"name": "add_item", "arguments": {"basket_id": "bsk-1", "sku": "book-42"}})
    server.kill()
    tap.terminate()
    tap.wait()


RUNS = (clean, killed_same_id, killed_new_id, cancelled_but_finished, session_lost, noise_and_flood, handle_lost, input_required, everything)
for run in RUNS:
    name = run.__name__.replace("_", "-")
    if not sys.argv[2:] or name in sys.argv[2:]:
        run()
        print(name)
shutil.rmtree(WORK)
