#!/usr/bin/env bash
# Tests of datasets on an object store, against a server of this machine. Needs cargo and Python 3.11 or later.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=${GPULEDGER_CLOUD_VENV:-${TMPDIR:-/tmp}/gpuledger-cloud-venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input -r tests/cloud/requirements.txt

scratch=$(mktemp -d)
"$venv/bin/python" tests/cloud/server.py 0 >"$scratch/address" 2>"$scratch/server.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
for _ in $(seq 300); do
  [ -s "$scratch/address" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$scratch/server.log" >&2; exit 1; }
  sleep 0.1
done

export AWS_ENDPOINT_URL AWS_ALLOW_HTTP=true AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
AWS_ENDPOINT_URL=$(cat "$scratch/address")
export AWS_ACCESS_KEY_ID=AKIAOFTHETESTS AWS_SECRET_ACCESS_KEY=secret-of-the-tests-8c1f
export GPULEDGER_CLOUD_PYTHON="$venv/bin/python"
cargo test --features cloud --test all cloud:: "$@"
