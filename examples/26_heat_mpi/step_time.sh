#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# step_time.sh COMMAND...: starts the program and the one by hand by the same command, in turn, and prints the
# median over the rounds of the time of a step with Heddle over the time by hand. From the environment: ROUNDS,
# and PLATE, the rows, columns and steps.
set -euo pipefail
export LC_ALL=C
start=("${@:1:$#-1}")
program=${!#}
plate=${PLATE:-101 67 200}

# step PROGRAM: prints the microseconds of a step.
step() {
  # shellcheck disable=SC2086
  "${start[@]}" "$1" $plate 2>&1 > /dev/null | awk '$3 == "takes" { print $4; ok = 1 } END { exit !ok }'
}
for ((round = 0; round < ${ROUNDS:-3}; ++round)); do
  ours=$(step "$program")
  hand=$(step "${program}_by_hand")
  awk -v a="$ours" -v b="$hand" 'BEGIN { if (!(a > 0 && b > 0)) exit 1; print a / b, a, b }'
done | sort -g | awk -v plate="$plate" '
  { ratio[NR] = $1; print "a step takes " $2 " us with Heddle, " $3 " us by hand" }
  END {
    if (NR == 0) exit 1
    printf "plate and steps %s: with Heddle %.3f times as long as by hand (median of %d, %.3f..%.3f)\n",
           plate, ratio[int((NR + 1) / 2)], NR, ratio[1], ratio[NR]
  }'
