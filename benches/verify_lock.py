"""How long a writer of a rollback-journal ledger waits while `redial verify` passes over it.

verify_lock.py REDIAL [ROWS]: the longest and the usual time of a commit, alone and during a verify.
"""
import os, sqlite3, subprocess, sys, tempfile, time

redial, rows = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "ledger.db")
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    db.executescript(f"""
      PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; BEGIN;
      CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT NOT NULL, status TEXT NOT NULL, result TEXT, owner TEXT NOT NULL, claimed_at REAL NOT NULL);
      CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, body TEXT NOT NULL);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < {rows})
      INSERT INTO requests SELECT printf('r-%08d', i), printf('%064x', i), 'done', '{{}}', 'o', 1.0 + i FROM n;
      INSERT INTO tickets SELECT 'T-' || rowid, request_id, 'ticket ' || rowid, 'x' FROM requests; COMMIT;""")

    def commits(until):
        took, n = [], int(time.time() * 1000)
        while until():
            n += 1
            begin = time.monotonic()
            db.execute("INSERT INTO requests VALUES (?, ?, 'running', NULL, 'w', 1.0)", (f"w-{n}", f"w{n}"))
            took.append(time.monotonic() - begin)
            time.sleep(0.01)
        took.sort()
        return f"{len(took)} commits, median {took[len(took) // 2] * 1000:.1f} ms, longest {took[-1] * 1000:.1f} ms"

    end = time.monotonic() + 3
    print("alone:        ", commits(lambda: time.monotonic() < end))
    begin = time.monotonic()
    verify = subprocess.Popen([redial, "verify", "--ledger", path], stdout=subprocess.DEVNULL)
    print("during verify:", commits(lambda: verify.poll() is None))
    print(f"verify took {time.monotonic() - begin:.1f} s, exit {verify.returncode}")
