#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: what the program `schedule` prints, writes and refuses, and that the gallery in
# DOCS is the one that it draws now.
set -uo pipefail
program=$1
docs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failures=0

# expect STATUS PHRASE ARGUMENTS...
expect() {
  local wanted=$1 phrase=$2 output status=0
  shift 2
  output=$(timeout 60 "$program" "$@" 2>&1) || status=$?
  if ((status != wanted)) || [[ $output != *"$phrase"* ]]; then
    failures=$((failures + 1))
    printf 'FAILED (status %s): %s\n  expected: %s\n  printed:  %s\n' \
           "$status" "$*" "$phrase" "$output"
  fi
}
# holds FILE PHRASE
holds() {
  grep -qF -- "$2" "$1" || { failures=$((failures + 1)); echo "FAILED: $1 lacks $2"; }
}

expect 2 "usage: schedule list"
expect 2 "usage: schedule list" sing
expect 0 "usage: schedule list" --help
expect 0 "1f1b" list
expect 0 "--microbatches VALUE" show --help
expect 0 "makespan 33 s, bubble ratio 27.3%" show 1f1b
expect 0 "live activations of the ranks: 4 3 2 1; 48 messages" show 1f1b
expect 0 "makespan 16.5 s" show 1f1b --F 0.5 --I 0.5 --W 0.5
expect 0 "makespan 39 s" show gpipe --latency 1
expect 0 "makespan 28.5 s" show interleaved
expect 0 "rank 0  simulated" show 1f1b --saved 1000
expect 1 "no schedule 'zigzag'; there are gpipe, 1f1b" show zigzag
expect 1 "a pipeline has at least one stage" show gpipe --ranks 0
expect 1 "the nearest number that does is 8" show interleaved --microbatches 9
expect 1 "takes the name of a schedule (0 names)" show
expect 1 "takes the name of a schedule (2 names)" show gpipe 1f1b
expect 1 "no option '--rank'" show gpipe --rank 3
expect 1 "--ranks: not a number ('four')" show gpipe --ranks four
expect 1 "times are numbers of at least 0 (one is -1)" show gpipe --F -1
expect 1 "times are numbers of at least 0 (one is nan)" compare gpipe --latency nan

expect 0 "" show 1f1b --svg a.svg --perfetto a.json --dot a.dot --csv a.csv
holds a.svg "<svg xmlns"
holds a.json '"format":"heddle-trace"'
holds a.dot 'digraph "1F1B P=4 M=8"'
holds a.csv "3F0,3B0,3F1,3B1,"
expect 1 "cannot write 'nowhere/a.svg'" show 1f1b --svg nowhere/a.svg

expect 0 "makespan 33 s" check a.csv
expect 0 "" check a.csv --csv b.csv --transfers
holds b.csv "0F0,0SEND_F0,"
expect 0 "48 messages" check b.csv
expect 1 "cannot read 'none.csv'" check none.csv
expect 1 "schedule: " check .
printf '0F0,,0B0\n1F0,1X0\n' > bad.csv
expect 1 "rank 1   1F0  > 1X0 <" check bad.csv
expect 1 "a cell is not an action (line 2, cell 2: '1X0')" check bad.csv
printf '0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n' > two.csv
expect 1 "a stage is on two ranks (line 2, cell 1: '0F1', stage 0 is on rank 0 already)" check two.csv
printf '1F1,0F0,1B1,0B0\n1F0,0F1,1B0,0B1\n' > stuck.csv
expect 1 "rank 0 waits at 1F1 for 0F1, rank 1 waits at 1F0 for 0F0" check stuck.csv --replicas
printf '0F0,0B0,0W0\n' > old.csv
expect 0 "0I0" check old.csv --old-dialect
expect 1 "an action appears twice" check old.csv

expect 0 "gpipe        33        27.3%   8 8 8 8           48" compare gpipe 1f1b interleaved
expect 0 "48000" compare gpipe 1f1b --activation 1000
expect 0 "1 to 16" compare 1f1b --ranks 16 --microbatches 32
expect 1 "takes one or more names" compare
expect 1 "no option '--ranks'" gallery nowhere --ranks 8
expect 1 "no option '--ranks'" check a.csv --ranks 4
expect 1 "no option '--svg'" compare gpipe --svg a.svg
expect 1 "no option '--replicas'" show gpipe --replicas
expect 1 "--stages-per-rank means nothing to this schedule; it is for interleaved, looped-bfs, interleaved-zb1p" \
       show gpipe --stages-per-rank 2
expect 1 "--group means nothing to this schedule; it is for kfkb" compare 1f1b gpipe --group 2
expect 0 "kfkb" compare 1f1b kfkb --group 4
expect 0 "makespan 26.25 s" show interleaved --stages-per-rank 4
expect 0 "live activations of the ranks: 8 8 8 4" show kfkb --group 4
expect 1 "--FB is the time of a fused pair, and there is none" show gpipe --FB 2
expect 1 "--FB is the time of a fused pair, and there is none" check a.csv --FB 2
expect 0 "dualpipe" compare gpipe dualpipe --FB 2
expect 1 "--transfers says what a csv file holds; name one with --csv" show gpipe --transfers
expect 0 "weights" show 1f1b --parameters 1000
expect 0 "most bytes kept" compare 1f1b chimera --parameters 1000

"$program" gallery gallery
if ! diff -rq gallery/gallery.md "$docs/gallery.md" ||
   ! diff -rq gallery/pictures/gallery "$docs/pictures/gallery"; then
  failures=$((failures + 1))
  echo "FAILED: the gallery is not the one that is drawn now; run: schedule gallery docs"
fi
((failures == 0)) && echo "all as expected"
exit $((failures > 0))
