#!/usr/bin/env bash
# killtest.sh [TRIALS]: kill trials a second on the built-in server (release build), at each point. At least 5.
set -euo pipefail
cd "$(dirname "$0")/.."
redial=target/release/redial
[ -x "$redial" ] || cargo build --release --locked
for at in before-claim during-work before-commit after-commit random; do
  printf '$ redial killtest --trials %s --at %s\n  ' "${1:-100}" "$at"
  "$redial" killtest --trials "${1:-100}" --at "$at" | tail -n 1
done
