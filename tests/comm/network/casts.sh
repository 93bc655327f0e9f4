#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# casts.sh PROGRAM: HGTrainer's plan by program.cpp on two nodes of two ranks that a line of 10 Mbit/s
# joins, with messages of 8 and of 16 bits between the nodes, in the emulated network whose script
# HEDDLE_NETLAB names. The median step with 8 bits takes what simulate() predicts, within 10%, and the
# one with 16 bits takes at least 1.5 times as long. The line is full there and loses packets at random:
# its least step is within 10% of the prediction. Status 77 where there is no such network.
set -uo pipefail
[[ -x ${HEDDLE_NETLAB-} ]] ||
  { echo "skipped: HEDDLE_NETLAB does not name the script of an emulated network"; exit 77; }
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
lines=$("$HEDDLE_NETLAB" run -L "c$$" -n 2 -k 2 -r 10mbit -m openmpi -- "$1" casts 10 16384 2.7 2> "$errors") ||
  { echo "the run in the network failed: $lines"; cat "$errors"; exit 1; }
printf '%-10s %10s %10s %10s\n' "a step, s" predicted network least
awk 'NF == 4 && /^(8|16)_bits / {
       printf "%-10s %10s %10s %10s\n", $1, $3, $2, $4
       judged = $1 == "8_bits" ? $2 : $4
       near += judged > 0.9 * $3 && judged < 1.1 * $3
       took[$1] = $2
       should[$1] = $3
     }
     END {
       gain = took["8_bits"] > 0 ? took["16_bits"] / took["8_bits"] : 0
       print "gain", gain, "predicted", near > 0 ? should["16_bits"] / should["8_bits"] : 0
       exit !(near == 2 && gain >= 1.5)
     }' <<< "$lines" || { echo "FAILED: a step is not as predicted, or the gain is below 1.5"; exit 1; }
