#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# groups.sh PROGRAM: Holmes' plan and its rival by program.cpp on two nodes of two ranks that a line of
# 20 Mbit/s joins, in the emulated network whose script HEDDLE_NETLAB names. The median step of Holmes'
# plan takes what simulate() predicts, within 10%, and with groups that span the line it takes at least
# 1.5 times as long. The step of the latter is printed only: replicas send several messages over the
# line at once, which loses packets at random, so that medians are 1.06 to 1.18 of the prediction.
# Status 77 where there is no such network.
set -uo pipefail
[[ -x ${HEDDLE_NETLAB-} ]] ||
  { echo "skipped: HEDDLE_NETLAB does not name the script of an emulated network"; exit 77; }
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
lines=$("$HEDDLE_NETLAB" run -L "g$$" -n 2 -k 2 -r 20mbit -m openmpi -- "$1" groups 20 1600000 20 2> "$errors") ||
  { echo "the run in the network failed: $lines"; cat "$errors"; exit 1; }
printf '%-26s %10s %10s %10s\n' "a step, seconds" predicted network least
awk 'NF == 4 && /^(Holmes|groups_over_the_slow_line) / {
       printf "%-26s %10s %10s %10s\n", $1, $3, $2, $4
       near += $1 == "Holmes" && $2 > 0.9 * $3 && $2 < 1.1 * $3
       took[$1] = $2
     }
     END {
       gain = took["Holmes"] > 0 ? took["groups_over_the_slow_line"] / took["Holmes"] : 0
       print "gain", gain
       exit !(near == 1 && gain >= 1.5)
     }' <<< "$lines" || { echo "FAILED: the step of Holmes is not as predicted, or the gain is below 1.5"; exit 1; }
