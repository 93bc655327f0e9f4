#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM: what `race` predicts from a few runs, and what it refuses.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "$*" >&2; exit 1; }
has() { grep -qE -- "$1" "$2" || fail "no '$1' in: $(cat "$2")"; }

# Of 1, 2, 3 and 6 the least of two is 1, 2, 3, 6 with 7, 5, 3 and 1 sixteenths: 2 on average.
printf '6 1\n3\t2\n' > runs.txt
"$program" predict runs.txt --walkers 1,2 > shown.txt
has '^4 runs, mean 3, least 1$' shown.txt
has '^1 +3 +1 +1 +1$' shown.txt
has '^2 +2 +1\.5 +1\.5 ' shown.txt  # 1 + 2 / 2 by the shifted exponential, too
has '^shifted exponential: .*accepted' shown.txt

# refuses STATUS PHRASE ARGUMENTS...
refuses() {
  local status=0 expected=$1 phrase=$2
  shift 2
  "$program" "$@" > refused.txt 2>&1 || status=$?
  ((status == expected)) || fail "status $status of: $*"
  has "$phrase" refused.txt
}
printf '0 4 5\n' > zero.txt
"$program" predict zero.txt > shown.txt
has 'lognormal: does not apply' shown.txt
printf '1 2\n3 -4\n' > negative.txt
refuses 1 "negative.txt:2: .*'-4'.*leave out runs" predict negative.txt
printf '1 two\n' > word.txt
refuses 1 "word.txt:1: .*'two'" predict word.txt
: > empty.txt
refuses 1 'there are none' predict empty.txt
refuses 1 'none.txt' predict none.txt
refuses 2 "'0' is no number of walkers" predict runs.txt --walkers 0
refuses 2 "'2.5' is no number of walkers" predict runs.txt --walkers 2,2.5
refuses 2 'Usage: race' predict
