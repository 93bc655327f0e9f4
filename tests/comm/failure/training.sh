#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# training.sh FIRST COUNT RANKS COMMAND...: a run of COMMAND, the program training under an mpiexec, in which
# no rank dies, and the runs FIRST, FIRST + 1, ...: COUNT of them, or the share of 68 that HEDDLE_LONG says,
# if that is set and more. Of these each has at least one rank that is killed, every other rank goes on in
# the same process to the end, and all losses are those of a run in which nobody dies. The last line says how
# many ranks were killed.
set -uo pipefail
first=$1 ranks=$3
count=$(awk -v least="$2" -v share="${HEDDLE_LONG:-0}" 'BEGIN { n = int(68 * share); print (n > least ? n : least) }')
shift 3
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failures=0 deaths=0
lines() { grep -c "$1" "$output"; }

for run in none $(seq "$first" $((first + count - 1))); do
  wrong=()
  timeout -k 10 60 "$@" "$run" > "$output" 2>&1
  status=$?
  ((status != 124 && status != 137)) || wrong+=("it hangs")
  killed=$(lines '^rank [0-9]* leaves at ')
  if [[ $run == none ]]; then
    (($(lines "^rank [0-9]*: $ranks ranks are left$") == ranks)) || wrong+=("not all ranks are left")
    (($(lines '^rank [0-9]*: losses as expected$') == ranks)) || wrong+=("not all losses are as expected")
  else
    ((killed > 0)) || wrong+=("no rank has died")
    (($(lines '^rank [0-9]* goes on: losses as expected$') + killed == ranks)) ||
      wrong+=("not all others have gone on, with the losses as expected")
  fi
  deaths=$((deaths + killed))
  ((${#wrong[@]} > 0)) || continue
  failures=$((failures + 1))
  printf 'FAILED: run %s: %s; it printed:\n' "$run" "${wrong[*]}"
  cat "$output"
done
echo "$((count + 1 - failures)) of $((count + 1)) runs on $ranks ranks as they should; $deaths ranks were killed"
exit $((failures > 0))
