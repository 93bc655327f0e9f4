#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# silent.sh fails|restarts WATCHDOG RANKS LINE COMMAND...: COMMAND starts an example on RANKS ranks, which
# wait at most WATCHDOG seconds for each other. Once it has printed LINE, or written it to the file `log`, a
# rank is stopped or killed, and all ranks end within WATCHDOG + 5 s. If LINE ends in @SECONDS, the rank has
# so much more time. Then COMMAND fails; or it is an `elastic`, which starts the example again and succeeds.
# One rank is drawn for each signal, and none is stopped if WATCHDOG is 10 or more; with HEDDLE_LONG, every
# rank is stopped and killed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/processes.sh"
outcome=$1 watchdog=$2 ranks=$3 line=${4%@*} pause=0
[[ $4 != *@* ]] || pause=${4##*@}
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fail TEXT: ends the run and the test.
fail() {
  echo "$signal of rank $victim: $*" >&2
  cat out.txt >&2
  kill_all
  exit 1
}
# wait_for SECONDS WHAT CONDITION...
wait_for() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < until)) || fail "$what"
    sleep 0.02
  done
}
printed() { grep -qs -- "$line" out.txt log; }
gone() { [[ ! " $(processes | tr '\n' ' ') " =~ \ $1\  ]]; }

# run: signals $victim by $signal.
run() {
  local status=0 pid
  rm -rf "$work/run"
  mkdir "$work/run"
  cd "$work/run"
  SILENT_RUN=$work "$@" > out.txt 2>&1 & local command=$!
  wait_for 100 "the rank does not start" started  # it takes a while to find it
  [[ -z $line ]] || wait_for 100 "the line '$line' is not printed" printed
  sleep "$pause"
  local begin=$EPOCHREALTIME
  kill -"$signal" "$pid" || fail "the rank has ended before"
  if [[ $outcome == restarts ]]; then
    wait_for $((watchdog + 5)) "the rank is there after $((watchdog + 5)) s" gone "$pid"
  else
    wait_for $((watchdog + 5)) "ranks are there after $((watchdog + 5)) s" ranks_gone
  fi
  local took
  took=$(awk -v a="$EPOCHREALTIME" -v b="$begin" 'BEGIN { printf "%.1f", a - b }')
  # Open MPI 4.1's mpiexec can deadlock in its own end if a rank that it wakes ends by itself meanwhile.
  local until=$((SECONDS + 5)) launcher
  while [[ $outcome == fails ]] && kill -0 $command 2> /dev/null; do
    if ((SECONDS >= until)); then
      echo "the launcher hangs without ranks, and is killed"
      for launcher in $(processes | awk '{ print $1 }'); do kill -KILL "$launcher" || true; done
    fi
    sleep 0.1
  done
  wait $command || status=$?
  if [[ $outcome == restarts ]]; then
    ((status == 0)) || fail "elastic ends with $status"
    grep -q "the job on $ranks ranks ended with status [1-9]" out.txt || fail "elastic has not restarted"
  else
    ((status != 0)) || fail "the status is 0"
  fi
  ranks_gone || fail "a process is left"
  echo "$signal of rank $victim: the ranks ended after $took s"
}
if [[ -n ${HEDDLE_LONG-} ]]; then
  for signal in KILL STOP; do
    for ((victim = 0; victim < ranks; ++victim)); do run "$@"; done
  done
else
  RANDOM=$ranks
  signal=KILL victim=$((RANDOM % ranks))
  run "$@"
  signal=STOP victim=$((RANDOM % ranks))
  ((watchdog >= 10)) || run "$@"
fi
