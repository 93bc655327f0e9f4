#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# same.sh COMMAND...: the program and the one by hand, started by the same command, print the same bits, for
# plates of odd sizes and for plates that are smaller than the number of ranks; and the program has at most
# 60 % of the lines, without comments and blank lines.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
start=("${@:1:$#-1}")
program=${!#}
for arguments in "" "7 5 30" "3 1 10" "1 9 25" "64 48 100"; do
  # shellcheck disable=SC2086
  ours=$("${start[@]}" "$program" $arguments 2> /dev/null)
  # shellcheck disable=SC2086
  hand=$("${start[@]}" "${program}_by_hand" $arguments 2> /dev/null)
  [[ $ours == *bits* && $ours == "$hand" ]] || { echo "by hand: $hand, ours: $ours"; exit 1; }
  echo "$ours"
done
lines() { grep -cvE '^ *(//.*)?$' "$1"; }
ours=$(lines "$here/heat_mpi.cpp")
hand=$(lines "$here/by_hand/by_hand.cpp")
echo "$ours lines instead of $hand"
((100 * ours <= 60 * hand))
