#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# expect.sh success|failure SENTENCE COMMAND...: the command ends so, and has printed the sentence. Open MPI's
# mpiexec sometimes stays in PMIx_server_finalize() when all ranks have ended by an abort: if it has had no child
# for five seconds, it is killed, and the command runs again. A rank that stays is not excused.
set -uo pipefail
outcome=$1
sentence=$2
shift 2
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# run COMMAND...: its status, or 125 if only the launcher is left
run() {
  local started='' childless=0
  "$@" > "$output" 2>&1 &
  while kill -0 $! 2> /dev/null; do
    if pgrep -P $! > /dev/null; then
      started=yes childless=0
    elif [[ -n $started ]] && ((++childless >= 50)); then
      kill -KILL $!
      wait $! 2> /dev/null
      return 125
    fi
    sleep 0.1
  done
  wait $!
}
run "$@"
status=$?
if ((status == 125)); then
  echo "the launcher hung without ranks: once more"
  run "$@"
  status=$?
fi
printed=$(< "$output")
printf '%s\n' "$printed"
ended=failure
((status == 0)) && ended=success
if [[ $ended != "$outcome" ]]; then
  echo "expected $outcome, the exit status is $status"
  exit 1
fi
if [[ $printed != *"$sentence"* ]]; then
  echo "expected the sentence: $sentence"
  exit 1
fi
