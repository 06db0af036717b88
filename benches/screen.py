#!/usr/bin/env python3
"""What the screen costs, with what people use now beside it. Prints a table.

    cargo build --release && python3 benches/screen.py [target/release/redial]

Measured on a pseudo-terminal of 120x40 that answers nothing. "first frame" is from exec to the first frame with a row
of the ledger in it; "key" from a written key to the end of the frame that answers it, while 10,000 lines a second come
on stderr; "idle" is processor time over wall time while nothing happens. Beside the time stands the processor time of
the process: what is left of a number on a machine that does other work too. The 50 MB are one answer of a server,
opened as a tree, searched for what stands at its end, and turned raw. The numbers of the usual inspector were taken
on a machine of two cores with its version 2.12: its terminal UI on a server without data.
"""
import fcntl, os, pty, re, select, signal, sqlite3, struct, subprocess, sys, tempfile, termios, time

EXE = sys.argv[1] if len(sys.argv) > 1 else "target/release/redial"
END = b"\x1b[?2026l"


def ledger(folder, rows):
    path = os.path.join(folder, f"ledger-{rows}.db")
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL)")
    db.execute("CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT UNIQUE, title TEXT, body TEXT)")
    n = ((f"r{i}", f"h{i}", "running" if i == rows - 3 else "done", '{"ok":true}', "me", 1.79e9 + i) for i in range(rows))
    db.executemany("INSERT INTO requests VALUES(?,?,?,?,?,?)", n)
    t = ((f"T{i}", f"r{i}", "Disk almost full", "x") for i in range(rows) if i != rows - 3)
    db.executemany("INSERT INTO tickets VALUES(?,?,?,?)", t)
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return path


# A server whose look-up answers with about 50 MB of JSON.
BIG = """
import json, sys
row = '{"id": 12345, "title": "Disk almost full", "tags": ["a", "b"], "body": "xxxxxxxxxxxxxxxxxxxx"},'
big = '{"status": "done", "rows": [' + row * (50_000_000 // len(row)) + '{"needle": 1}]}'
tool = {"name": "find_request", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "big", "version": "1"}},
         "tools/list": {"tools": [tool]}}.get(m["method"]) or {"content": [{"type": "text", "text": big}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


class Screen:
    def __init__(self, args, folder):
        self.start = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            env = dict(os.environ, TERM="xterm-256color", XDG_STATE_HOME=folder, XDG_CONFIG_HOME=folder)
            os.execve(EXE, [EXE] + args, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.out = b""

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            self.out += os.read(self.fd, 1 << 16)
            return True
        return False

    def until(self, pattern, seconds=20):
        """The time since `start` at which a whole frame with `pattern` in it was there."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            found = re.search(pattern, self.out)
            if found and END in self.out[found.end():]:
                return time.perf_counter() - self.start
            self.read(0.5)
        raise SystemExit(f"never seen: {pattern} in {self.out[-2000:]!r}")

    def drain(self, seconds):
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def key(self, key):
        while self.read(0):
            pass
        self.out, t = b"", time.perf_counter()
        os.write(self.fd, key)
        while END not in self.out:
            self.read(1)
        return time.perf_counter() - t

    def shows(self, key, pattern):
        """Time and processor time from a key to a frame with `pattern` in it."""
        while self.read(0):
            pass
        self.out, t, cpu = b"", time.perf_counter(), self.cpu()
        os.write(self.fd, key)
        while not re.search(pattern, self.out):
            if time.perf_counter() - t > 30:
                raise SystemExit(f"never seen: {pattern} after {key} in {self.out[-2000:]!r}")
            self.read(1)
        return time.perf_counter() - t, self.cpu() - cpu

    def cpu(self):
        f = open(f"/proc/{self.pid}/stat").read().rsplit(") ", 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self):
        return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{self.pid}/status").read())[1]) / 1024

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        try:
            while os.read(self.fd, 1 << 16):
                pass
        except OSError:
            pass
        os.waitpid(self.pid, 0)


def median(values):
    return sorted(values)[len(values) // 2]


def ms(seconds):
    return f"{seconds * 1000:.1f} ms"


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        small, large = ledger(folder, 1_000), ledger(folder, 1_000_000)
        for name, path in [("1,000 rows", small), ("1,000,000 rows", large)]:
            first, frames = [], []
            for _ in range(9):
                s = Screen(["attach", "--ledger", path], folder)
                first.append(s.until(rb"r\d+"))
                s.drain(0.2)
                s.close()
            s = Screen(["attach", "--ledger", path], folder)
            s.until(rb"r\d+")
            s.drain(4)
            before = s.cpu()
            frames = [s.key(b"j") for _ in range(100)]
            each = (s.cpu() - before) / len(frames)
            s.drain(1)
            before, t = s.cpu(), time.perf_counter()
            s.drain(5)
            idle = (s.cpu() - before) / (time.perf_counter() - t)
            rows += [
                (f"first frame, {name}", ms(median(first)), "620 ms" if path == large else ""),
                (f"a key's frame, {name}", f"{ms(median(frames))} ({ms(each)})", ""),
                (f"idle use of a core, {name}", f"{idle * 100:.2f} %", ""),
                (f"peak memory, {name}", f"{s.peak_mb():.0f} MB", "148 MB" if path == large else ""),
            ]
            s.close()
        flood = "import sys,time\nn=0\nwhile True:\n  sys.stderr.write(''.join(f'line {n+i} of the flood\\n' for i in range(100))); sys.stderr.flush(); n+=100; time.sleep(0.01)"
        s = Screen(["attach", "--ledger", large, "--era", "legacy", "--", sys.executable, "-c", flood], folder)
        s.until(rb"r\d+")
        s.until(rb"of the flood")
        s.drain(5)
        keys = sorted(s.key(b"j" if i % 2 else b"k") for i in range(100))
        rows += [
            ("a key's frame, 1,000,000 rows and 10,000 stderr lines a second, median", ms(keys[50]), ""),
            ("  the same, 95th of 100", ms(keys[94]), ""),
            ("peak memory there", f"{s.peak_mb():.0f} MB", ""),
        ]
        s.close()
        s = Screen(["attach", "--era", "legacy", "--", sys.executable, "-c", BIG], folder)
        s.until(rb"ready")
        s.shows(b"o", rb"go to")
        s.shows(b"big\r", rb"not looked up yet")
        s.shows(b"f", rb"the server says")
        took = lambda what, pair: rows.append((what, f"{ms(pair[0])} ({ms(pair[1])})", ""))
        took("50 MB of JSON: open the tree", s.shows(b"J", rb"\d{7}"))
        s.shows(b"/", rb"search")
        took("  search what is at its end", s.shows(b"needle", rb'"needle'))
        s.shows(b"\r", rb"fold")
        took("  turn raw", s.shows(b"r", rb"raw"))
        rows.append(("  peak memory", f"{s.peak_mb():.0f} MB", "660 MB after one 3 MB result"))
        s.close()
        s = Screen([], folder)
        rows.append(("first frame of the demo", ms(s.until(rb"abandoned")), ""))
        s.close()
    wide = max(len(r[0]) for r in rows)
    print(f"{'':{wide}}  {'redial':>22}  the usual inspector's terminal UI")
    for name, own, other in rows:
        print(f"{name:{wide}}  {own:>22}  {other}")


main()
