#!/usr/bin/env bash
# verify.sh [ROWS]: a ledger of ROWS rows (10,000,000), then `redial verify` (release build) against the sqlite3
# shell with invariants.sql on the same file in the same run: seconds, peak memory, ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
rows=${1:-10000000}
redial=target/release/redial
[ -x "$redial" ] || cargo build --release --locked
folder=$(mktemp -d "${BENCH_DIR:-target}/verify.XXXXXX")
trap 'rm -rf "$folder"' EXIT
db=$folder/ledger.db
export TMPDIR=$folder # both spill their sorts here
echo "making $rows rows …"
sqlite3 "$db" <<SQL
PRAGMA journal_mode = ${JOURNAL:-WAL}; PRAGMA synchronous = OFF;
CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT NOT NULL, status TEXT NOT NULL, result TEXT,
  owner TEXT NOT NULL, claimed_at REAL NOT NULL);
CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, body TEXT NOT NULL);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $rows)
INSERT INTO requests SELECT printf('r-%08d', i),
  printf('%016x%016x%016x%016x', (i % ($rows - 5)) * 7919, i % ($rows - 5), 1, 2),
  iif(i % 100000 = 1, 'running', 'done'), printf('{"ticket_id": "T-%08x", "title": "ticket %d"}', i, i),
  printf('%032x', i / 1000000), 1.79e9 + i FROM n;
INSERT INTO tickets SELECT printf('T-%08x', rowid), request_id, printf('ticket %d', rowid), 'body'
  FROM requests WHERE status = 'done';
COMMIT;
SQL
run() { # NAME COMMAND…: wall seconds and peak kB
  python3 - "$@" <<'PY'
import os, subprocess, sys, time
name, *command = sys.argv[1:]
print("$", *command)
begin = time.monotonic()
process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=open("benches/invariants.sql"))
out = process.stdout.read().decode().strip()
_, status, usage = os.wait4(process.pid, 0)
print(out, f"\n{name}: {time.monotonic() - begin:.2f} s, peak {usage.ru_maxrss / 1024:.0f} MB")
PY
}
for round in 1 2; do
  echo "-- round $round"
  run "sqlite3 shell" sqlite3 -readonly "$db"
  run "redial verify" "$redial" verify --ledger "$db"
done
