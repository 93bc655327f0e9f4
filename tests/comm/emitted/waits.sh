#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# waits.sh EXAMPLE FOLDER COMPILER PROGRAM COMMAND...: with stages that only wait, an emitted program
# takes as long as our Executor, within 3%. COMMAND starts PROGRAM, which has the latter, and the emitted
# one in its place. Both run in turns, and the fastest run of each is compared, because a busy machine makes
# some slower. There are at most ten runs. Prints the least, median and largest time of both.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
example=$1
folder=$2
compiler=$3
program=$4
shift 4
rm -rf "$folder"
mkdir -p "$folder"
cp "$example/pipeline.hpp" "$here/waits.cpp" "$folder"
cd "$folder"
echo '#include <mpi.h>' > probe.cpp
"$compiler" -fsyntax-only probe.cpp || { echo "skipped: '$compiler' does not find mpi.h"; exit 77; }
"$compiler" -std=c++17 -Wall -Wextra -Werror -O2 waits.cpp -o waits
emitted=("${@/#$program/$PWD/waits}")
ours=9 theirs=9
: > ours.all
: > theirs.all
# spread NAME: the times of all runs.
spread() { sort -g "$1.all" | awk -v n="$1" '{ t[NR] = $1 } END { printf "%s, s a step: median %s (%s to %s) of %d runs\n", n, t[int(NR / 2) + 1], t[1], t[NR], NR }'; }
trap 'spread ours; spread theirs' EXIT
for run in 1 2 3 4 5 6 7 8 9 10; do
  "$@" > ours.out || { echo "our program fails"; exit 1; }
  "${emitted[@]}" > theirs.out || { echo "the emitted program fails"; exit 1; }
  cat ours.out >> ours.all
  cat theirs.out >> theirs.all
  ours=$(printf '%s\n' "$ours" "$(< ours.out)" | sort -g | head -1)
  theirs=$(printf '%s\n' "$theirs" "$(< theirs.out)" | sort -g | head -1)
  awk -v o="$ours" -v t="$theirs" -v run="$run" 'BEGIN {
    printf "run %d: ours %s s a step, emitted %s s, ratio %.3f\n", run, o, t, t / o
    exit !(run >= 2 && t <= 1.03 * o && o <= 1.03 * t) }' && exit 0
done
echo "the times differ by more than 3%"
exit 1
