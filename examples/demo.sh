#!/usr/bin/env bash
# The main job on the dense example: init, lock, doctor, run, report, apply, all real.
# Works in build/demo on a copy of examples/dense_gpt; run it again and it starts afresh.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
demo=$root/build/demo
python=$root/.venv/bin/python
export INFRARSI_STATE=$demo/state

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

infrarsi runner stop >/dev/null 2>&1 || true
while infrarsi runner status 2>/dev/null | grep -q '^running'; do sleep 0.2; done
rm -rf "$demo"
mkdir -p "$demo/work"
cp -r examples/dense_gpt/. "$demo/work/"
cd "$demo/work"
find . -name __pycache__ -prune -exec rm -rf {} +
git init -q -b main
git add -A
git -c user.name=demo -c user.email=demo@example.invalid commit -qm "The naive trainer"
trap 'infrarsi runner stop >/dev/null 2>&1 || true' EXIT

say "init: read the job and propose a contract"
infrarsi init --launch "python train.py" --python "$python" --yes
say "lock: freeze it"
infrarsi lock
say "doctor: profile the untouched baseline, measure the noise"
infrarsi doctor
say "run: search, verify, confirm"
infrarsi run --trials "${TRIALS:-5}" --minutes "${MINUTES:-12}"
say "report"
infrarsi report --json > "$demo/report.json"
infrarsi report --output "$demo/report.md"
say "apply: one commit on a branch, the working tree untouched"
git config user.name demo
git config user.email demo@example.invalid
infrarsi apply
git --no-pager log --all --stat -1 --format='%h %an%n%n%B' --branches='infrarsi/*'
say "Report: build/demo/report.md and build/demo/report.json"
