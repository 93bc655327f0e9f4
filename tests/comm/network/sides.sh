#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# sides.sh PROGRAM COMMAND...: the same schedules by program.cpp in the emulated network whose script
# HEDDLE_NETLAB names, and through a ShapedTransport under COMMAND, an mpiexec of 4 ranks; beside both
# what simulate() predicts. Each may take longer than that by the tolerance, and no less than 2% below:
#   shaped   10% and 5 ms: it is told links and ports, and adds what ranks take on two cores
#   network  25%: TCP's windows and acknowledgements, and the handshake of a long message, are in no link
# Status 77 where there is no such network.
set -uo pipefail
[[ -x ${HEDDLE_NETLAB-} ]] ||
  { echo "skipped: HEDDLE_NETLAB does not name the script of an emulated network"; exit 77; }
program=$1
shift
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# each UNIT LIST: with the unit behind every number.
each() { echo "${2//,/$1,}$1"; }

# compare BYTES RATES DELAYS [OPTIONS]: Mbit/s and ms, by node; options of the network.
compare() {
  local network=("${@:4}")
  set -- "${@:1:3}"
  "$HEDDLE_NETLAB" run -L "s$$" -n 4 "${network[@]}" -r "$(each mbit "$2")" -d "$(each ms "$3")" -m openmpi -- \
    "$program" network "$@" > "$folder/network" 2> "$folder/errors" ||
    { echo "the run in the network failed:"; cat "$folder/network" "$folder/errors"; exit 1; }
  "${command[@]}" shaped "$@" > "$folder/shaped" 2> "$folder/errors" ||
    { echo "the shaped run failed:"; cat "$folder/shaped" "$folder/errors"; exit 1; }
  while read -r name network predicted _ shaped _; do
    printf '%-22s %12s %12s %12s\n' "$name" "$predicted" "$shaped" "$network"
    awk -v p="$predicted" -v s="$shaped" -v n="$network" 'BEGIN {
        exit !(s > 0.98 * p && s < 1.1 * p + 0.005 && n > 0.98 * p && n < 1.25 * p) }' ||
      { echo "  FAILED: not within the tolerance"; failures=$((failures + 1)); }
  done < <(paste -d ' ' <(grep _of_ "$folder/network") <(grep _of_ "$folder/shaped"))
  (($(grep -c _of_ "$folder/network") == 2)) || { echo "FAILED: lines are missing"; failures=1; }
}

command=("$@")
printf '%-22s %12s %12s %12s\n' "all-reduce, seconds" predicted shaped network
# Where the rate counts: node 0, the middle of the star, has a line that carries all of the others' at
# once, and so no port.
compare 4194304 1000,100,100,100 1,0.5,1,0.5
# And with lines that are alike: the messages of the star take turns at the port of its middle.
compare 2097152 100,100,100,100 1,0.5,1,0.5
# Where the delay counts: messages that are sent without a handshake, and a congestion control that does
# not spread the little that a quiet connection sends over a round trip, as bbr does.
compare 8192 1000,1000,1000,1000 10,20,10,40 -c reno
exit $((failures > 0))
