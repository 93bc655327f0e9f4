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

# Help and version go to the standard output; what is wrong with a command line to the other one, with
# the usage of the command and the page that has its options.
expect 0 "Usage: schedule" --help
expect 0 "compare " --help
expect 0 "Usage: schedule show" show --help
expect 0 "--microbatches NUMBER=8" show --help
expect 0 "Times have no unit" show --help
expect 0 "--old-dialect" check --help
expect 0 "schedule (Heddle) " --version
expect 0 "schedule (Heddle) " list --version
expect 0 "schedule (Heddle) " check --version
for page in --help --version "list --version" "show --help" "check --help" "compare --help" "gallery --help" "record --help" "list --help"; do
  # shellcheck disable=SC2086
  [[ $("$program" $page 2> errors | wc -l) -gt 0 && ! -s errors ]] ||
    { failures=$((failures + 1)); echo "FAILED: $page"; }
done
wrong() {  # wrong PHRASE ARGUMENTS...: refused with the usage, and nothing is printed or written
  local phrase=$1
  shift
  expect 2 "$phrase" "$@"
  expect 2 "Usage: schedule" "$@"
  expect 2 " --help says what the options are" "$@"
  [[ -z $("$program" "$@" 2> errors) ]] || { failures=$((failures + 1)); echo "FAILED: $* prints"; }
}
wrong "a command is missing; there are list, show, check, prove, compare, explain, gallery, record"
wrong "no command 'sing'; there are list, show" sing
wrong "no command 'shw'; did you mean 'show'?" shw 1f1b
wrong "no command 'lsit'; did you mean 'list'?" lsit
wrong "no option '--hlep'; did you mean '--help'?" --hlep
wrong "no option '--rank'; did you mean '--ranks'?" show gpipe --rank 3
wrong "no option '--micro-batches'; did you mean '--microbatches'?" show gpipe --micro-batches 3
wrong "no option '--f'; did you mean '--F'?" show gpipe --f 3
wrong "no option '--frobnicate'" show gpipe --frobnicate 3
wrong "schedule show --help says" show gpipe --rank 3
wrong "no option '-x'" show -x
wrong "no option '-x.csv'" check -x.csv
wrong "'--transfers' begins with '-'" show 1f1b --csv --transfers
wrong "'-a.svg' begins with '-'; a file may be called ./-a.svg" show 1f1b --svg=-a.svg
wrong "the standard output is one file" show 1f1b --svg - --csv -
wrong "'-folder' begins with '-'" gallery -- -folder
wrong "no schedule 'zbv'; did you mean 'zb-v'? there are gpipe, 1f1b" show zbv
wrong "no schedule 'one_f_one_b'; did you mean '1f1b'?" show one_f_one_b
wrong "no schedule 'zigzag'; there are gpipe, 1f1b" show zigzag
wrong "no schedule 'zbv'; did you mean 'zb-v'?" compare gpipe zbv
wrong "NAME is required" show
wrong "'1f1b' is one argument too many" show gpipe 1f1b
wrong "--ranks: not a whole number ('four')" show gpipe --ranks four
wrong "--saved: not a whole number of at least 0 ('-1')" show gpipe --saved -1
wrong "--ranks: not a whole number ('1e9')" show gpipe --ranks 1e9
wrong "--ranks: a number out of range ('99999999999999999999')" show gpipe --ranks 99999999999999999999
wrong "--ranks is given 2 times; give it once" show gpipe --ranks 4 --ranks 5
wrong "--ranks" show gpipe --ranks
[[ -z $(ls -A | grep -v '^errors$') ]] || { failures=$((failures + 1)); echo "FAILED: files: $(ls -A)"; }

expect 0 "1f1b" list
expect 0 "zb-v                 zb_v() " list
expect 0 "chimera({.double_forwards = true})" list
expect 0 "makespan 33, bubble ratio 27.3%" show 1f1b
expect 0 "live activations of the ranks: 4 3 2 1; 48 messages" show 1f1b
expect 0 "makespan 16.5," show 1f1b --F 0.5 --I 0.5 --W 0.5
expect 0 "makespan 39," show gpipe --latency 1
expect 0 "makespan 28.5," show interleaved
expect 0 "rank 0  simulated" show 1f1b --saved 1000
expect 1 "a pipeline needs at least one stage" show gpipe --ranks 0
expect 1 "the nearest valid number is 8" show interleaved --microbatches 9
expect 2 "times and bandwidths are numbers of at least 0 (one is -1)" show gpipe --F -1
expect 2 "times and bandwidths are numbers of at least 0 (one is nan)" compare gpipe --latency nan
# What costs 1 is no second, in the terminal and in the picture.
"$program" show 1f1b --svg a.svg > shown
if grep -qE '[0-9] (s|ms|us)\b' shown a.svg; then
  failures=$((failures + 1))
  echo "FAILED: costs without a unit have one: $(grep -ohE '[0-9.]+ (s|ms|us)\b' shown a.svg | head -3)"
fi
# All stages are to be read, on lines of the width that is asked for.
"$program" show zb-v > shown
for cell in 0F0- 7F0- 3W7- 4I5- 6F7-; do holds shown "$cell"; done
for columns in 100 60; do
  "$program" show zb-v --columns $columns > shown
  [[ $(awk 'length($0) > most { most = length($0) } END { print most }' shown) -le $((columns + 8)) ]] ||
    { failures=$((failures + 1)); echo "FAILED: more than $columns columns"; }
done
wrong "a drawing needs at least one column" show gpipe --columns 0

expect 0 "" show 1f1b --svg a.svg --perfetto a.json --dot a.dot --csv a.csv
holds a.svg "<svg xmlns"
holds a.json '"format":"heddle-trace"'
holds a.dot 'digraph "1F1B P=4 M=8"'
holds a.csv "3F0,3B0,3F1,3B1,"
expect 1 "cannot write 'nowhere/a.svg'" show 1f1b --svg nowhere/a.svg

expect 0 "makespan 33," check a.csv
expect 0 "" check a.csv --csv b.csv --transfers
holds b.csv "0F0,0SEND_F0,"
holds b.csv ",0REDUCE_GRAD,0RESHARD"
expect 0 "48 messages" check b.csv
expect 0 "" show looped-bfs --ranks 2 --stages-per-rank 3 --microbatches 2 --csv late.csv --transfers --stagger
holds late.csv "0UNSHARD,2UNSHARD,0F0,"
wrong "--stagger places the UNSHARD of a file with transfers" show 1f1b --csv late.csv --stagger
# The steps of a file are kept, and those that one lacks are told and written.
printf '0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD\n' > steps.csv
expect 0 "" check steps.csv --csv kept.csv --transfers
holds kept.csv "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD"
printf '0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n' > half.csv
expect 0 "it has transfers and no REDUCE_GRAD" check half.csv --csv whole.csv --transfers
holds whole.csv "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD"
printf '0F0,0F1,0B0,0REDUCE_GRAD,0B1\n' > early.csv
expect 1 "a gradient is reduced before it is complete (line 1, cell 4: '0REDUCE_GRAD'" check early.csv
expect 0 "  dualpipe: stage 1 has two copies, on ranks 1 and 2" --help
expect 0 "'c.csv': torch.distributed.pipelining does not run it: stage 1 has two copies" \
       show chimera --csv c.csv
expect 0 "'c.csv': torch.distributed.pipelining does not run it: it has no backward passes" \
       show stream --csv c.csv --transfers
expect 0 "'c.csv': torch.distributed.pipelining does not run it: it is asynchronous" \
       show pipedream --csv c.csv
expect 1 "cannot read 'none.csv' (No such file or directory)" check none.csv
expect 1 "cannot read '.' (Is a directory)" check .
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
expect 1 "this looks like the old dialect" check old.csv
expect 1 "schedule check --old-dialect" check old.csv

# Proofs, of names and of files.
expect 0 "1F1B P=4 M=8: 116 actions compute the serial step of 4 stages and 8 microbatches" prove 1f1b
expect 0 "PipeDream P=3 M=8: " prove pipedream --ranks 3
expect 0 "with weights that lack up to 2 updates" prove pipedream --ranks 3
expect 0 "compute the serial step of 4 stages and 8 microbatches" prove a.csv
expect 0 "compute the serial step" prove best --ranks 2 --microbatches 3
printf '0F0,0F1,0B0,0UPDATE0,0B1,0UPDATE1\n' > mixed.csv
expect 0 "with weights that lack up to 1 updates" prove mixed.csv
expect 1 "the orders cannot progress" prove stuck.csv --replicas
expect 1 "a cell is not an action" prove bad.csv
expect 2 "no schedule 'zbv'; did you mean 'zb-v'?" prove zbv
expect 2 "NAME is required" prove

expect 0 "gpipe        33        27.3%   27.3%        8 8 8 8           48" compare gpipe 1f1b interleaved
# Each schedule has its own closed form, or none; it counts no transfers.
expect 0 "zb-h1     27        11.1%   11.1%" compare 1f1b zb-h1
expect 0 "zb-h1     33        27.3%   11.1%" compare 1f1b zb-h1 --latency 0.5
expect 0 "1f1b-v    31.5      23.8%   -            3 3 3 3" compare 1f1b-v
expect 0 "-            4 3 2 1" compare 1f1b --F 1,2,1,1
expect 0 "48 kB" compare gpipe 1f1b --activation 1000
expect 0 "1 to 16" compare 1f1b --ranks 16 --microbatches 32
expect 2 "NAME is required" compare
expect 2 "no option '--ranks'" gallery nowhere --ranks 8
expect 2 "no option '--ranks'" check a.csv --ranks 4
expect 2 "no option '--svg'" compare gpipe --svg a.svg
expect 2 "no option '--replicas'" show gpipe --replicas
expect 2 "--stages-per-rank means nothing to this schedule; it is for interleaved, grouped-interleaved, combined-1f1b, gis, looped-bfs, interleaved-zb1p" \
       show gpipe --stages-per-rank 2
expect 2 "--group means nothing to this schedule; it is for grouped-interleaved, combined-1f1b, kfkb, seq-1f1b" compare 1f1b gpipe --group 2
expect 0 "kfkb" compare 1f1b kfkb --group 4
expect 0 "makespan 26.25," show interleaved --stages-per-rank 4
expect 0 "live activations of the ranks: 8 8 8 4" show kfkb --group 4
expect 2 "--FB is the time of a fused pair, and there is none" show gpipe --FB 2
expect 2 "--FB is the time of a fused pair, and there is none" check a.csv --FB 2
expect 0 "dualpipe" compare gpipe dualpipe --FB 2
# Halves of a backward that each recompute half of a forward.
expect 0 "makespan 33," show 1f1b --I 1.5 --W 1.5 --B 2
expect 0 "makespan 36.5," show zb-h1 --I 1.5 --W 1.5 --B 2
expect 2 "--B takes one time, or one for each stage" show 1f1b --B 2,2
expect 2 "leave --B or --open out" show 1f1b --B 2 --open
expect 0 "makespan 31.5," show grouped-interleaved --microbatches 9 --group 5
expect 1 "the nearest valid group is 5" show grouped-interleaved --microbatches 9
expect 2 "--transfers says what a csv file holds; name one with --csv" show gpipe --transfers
expect 0 "weights" show 1f1b --parameters 1000

# Several times are those of the stages: 2 ranks, 1 and 3 forward, 2 and 6 backward, the second works
# through from 1 to 19, and the first has its last backward after that.
times=(--F 1,3 --I 1,3 --W 1,3)
expect 0 "makespan 21," show 1f1b --ranks 2 --microbatches 2 "${times[@]}"
expect 2 "--F takes one time, or one for each stage (2 times for 4 stages)" show interleaved --ranks 2 "${times[@]}"
expect 2 "--W: not a number ('')" show 1f1b --W 1,
expect 2 "times and bandwidths are numbers of at least 0 (one is -2)" show 1f1b --ranks 2 --I 1,-2
# A channel is busy for bytes / bandwidth, and where nothing may wait to be sent, so is its stage: t
# for a stage and c for a transfer, S t + (S - 1) c + (M - 1) max(t, c), or + (M - 1)(t + c).
link=(--activation 1000 --bandwidth 4000)
expect 0 "makespan 11.75," show stream "${link[@]}"
expect 0 "makespan 11.75," show stream "${link[@]}" --depth 1
expect 0 "makespan 13.5," show stream "${link[@]}" --depth 0
expect 2 "--bandwidth is for the bytes that stages hand on; say them with --activation" show stream --bandwidth 1
expect 2 "a depth is a number of results" show stream --depth -2
expect 0 "live activations of the ranks: 3 3 3 1" show dapple --most-live 3
expect 1 "a rank needs memory for at least one microbatch" show dapple --most-live -1
expect 0 "f=2" show chimera --pairs 2
expect 1 "use 4 or 8 stages" show chimera --ranks 6 --pairs 2
expect 2 "--most-live means nothing to this schedule; it is for dapple" show 1f1b --most-live 2
expect 2 "--pairs means nothing to this schedule; it is for chimera, chimera-doubled" show dapple --pairs 2

# Files of all schedules of the list, read with what they do not say: the same but for the name.
sizes=(--saved 1000 --parameters 1000 --activation 10)
nameless() { sed -E 's/^[^:]*://'; }
while read -r name _; do
  says=()
  case $name in
    name) continue ;;
    chimera* | dualpipe) says=(--replicas) ;;
    flexpipe) says=(--branches 2) ;;
    pipedream-vertical) says=(--vertical-sync) ;;
  esac
  "$program" show "$name" --csv all.csv --transfers "${sizes[@]}" 2>> warnings | nameless > shown
  "$program" check all.csv "${says[@]}" "${sizes[@]}" 2>> warnings | nameless > checked
  if ! grep -q makespan shown || ! diff shown checked; then
    failures=$((failures + 1))
    echo "FAILED: the file of $name is another schedule (${says[*]})"
  fi
done < <("$program" list)
"$program" show flexpipe --csv all.csv > shown
expect 1 "the orders cannot progress" check all.csv
"$program" show pipedream-vertical --csv all.csv "${sizes[@]}" | nameless > shown
"$program" check all.csv "${sizes[@]}" | nameless > checked
if ! grep -q makespan checked || diff -q shown checked > all; then
  failures=$((failures + 1))
  echo "FAILED: a file of pipedream-vertical is read as one without --vertical-sync"
fi
expect 2 "--vertical-sync is about updates among the orders, and there are none" check a.csv --vertical-sync
expect 1 "a model needs at least one branch" check a.csv --branches 0
expect 0 "most bytes kept" compare 1f1b chimera --parameters 1000

# The chart has a character for each unit of time here: 1F1B, F = 1 and B = 2, on 4 ranks. Rank r has
# at most 4 - r live activations, from its first forward, at r, to its last backward, which ends at 33 - 2r.
"$program" show 1f1b --live --columns 33 > shown
holds shown "rank 0  123444444444444444444444333222111  most 4"
holds shown "rank 3  000111111111111111111111111000000  most 1"
"$program" show gpipe --microbatches 40 --ranks 1 --live --columns 40 > shown
holds shown "rank 0  "
grep -qE '^rank 0  [0-9a-z]+\++[0-9a-z]+  most 40$' shown || { failures=$((failures + 1)); echo "FAILED: the chart of 40 lives"; }
[[ $("$program" show gpipe) != *"over time"* ]] || { failures=$((failures + 1)); echo "FAILED: a chart that nobody wants"; }

# The file of a comparison has the numbers of the table, with all digits and all ranks.
expect 0 "gpipe" compare gpipe 1f1b --F 0.1 --activation 10 --csv table.csv
holds table.csv "schedule,makespan,bubble ratio,closed form,live activations,messages,bytes sent,most bytes kept"
holds table.csv "gpipe,23.1,0.2727272727272"
holds table.csv ",4 3 2 1,48,480,60"
expect 0 "1 to 16" compare 1f1b --ranks 16 --microbatches 32 --csv table.csv
holds table.csv ",16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1,"
expect 1 "cannot write 'nowhere/table.csv'" compare gpipe --csv nowhere/table.csv

# What does not fit is refused before it is made; with --periodic it need not fit. GPipe and 1F1B of M
# microbatches on P ranks take (M + P - 1)(F + B).
large=(--ranks 1000000 --microbatches 1000000)
expect 1 "'1f1b' of 1000000 ranks and 1000000 microbatches is too large" show 1f1b "${large[@]}"
expect 1 "this machine has" compare gpipe 1f1b "${large[@]}"
expect 1 "use fewer ranks or microbatches, or compare --periodic" compare gpipe zb-v "${large[@]}"
million=(--periodic --ranks 16 --microbatches 1000000)
expect 0 "1f1b         3000045    0%      0%           1 to 16           30000000" compare interleaved 1f1b "${million[@]}"
expect 0 "interleaved  3000022.5" compare interleaved 1f1b "${million[@]}"
expect 0 "300 MB" compare 1f1b "${million[@]}" --activation 10
expect 2 "--periodic simulates stages that never wait to send" compare gpipe --periodic --depth 1
for both in "" --periodic; do
  # shellcheck disable=SC2086
  "$program" compare gpipe 1f1b kfkb zb-v dualpipe-v chimera dualpipe pipedream --microbatches 64 \
    --F 1.25 --latency 0.5 $both > "shown$both"
done
diff shown shown--periodic || { failures=$((failures + 1)); echo "FAILED: --periodic has other numbers"; }

# The best schedule for given costs and memory: 1F1B keeps 4 activations on rank 0 and takes 33.
expect 0 "live activations of the ranks: 3 3 3 3" show best --cap 3 --I 1.4 --csv best.csv
holds best.csv "0F0"
expect 0 "above the lower bound" compare 1f1b best --cap 3
expect 0 "optimal for its computations" show best --ranks 1 --microbatches 2
expect 0 "lower bound" show best --cap-bytes 2500 --saved 1000
expect 1 "no schedule of this shape fits the memory" show best --cap 0.1
expect 2 "--cap means nothing to this schedule; it is for best" show 1f1b --cap 3
expect 2 "give one time for each of --F, --I, --W and --B" compare best --F 1,2,1,1
expect 2 "--periodic is for single schedules, not for 'best'" compare best --periodic
expect 1 "is too large" show best "${large[@]}"
expect 2 "--cap is a number of at least 0" show best --cap -1
expect 2 "the explorer has no schedule 'best'" show best --open
# All candidates in one table, and sizes with units.
expect 0 "best: work of zb-v: v-half; 3.9% above the lower bound 25.5" compare --best --cap 3 --csv table.csv
holds table.csv '"v-half",26.5,25.5,'
grep -qE '^"zb-v",25.5,,.*,no$' table.csv || { failures=$((failures + 1)); echo "FAILED: zb-v fits the memory of 3"; }
expect 2 "--best compares all schedules; leave out their names" compare --best 1f1b
"$program" show best --cap-bytes 2500 --saved 1000 > shown
"$program" show best --cap-bytes 2.5kB --saved 1kB | diff shown - || { failures=$((failures + 1)); echo "FAILED: 2.5kB is not 2500"; }
"$program" show 1f1b --saved 2048 > shown
"$program" show 1f1b --saved 2KiB | diff shown - || { failures=$((failures + 1)); echo "FAILED: 2KiB is not 2048"; }
expect 2 "--cap-bytes: no unit of bytes 'XB'; write for example 40GB or 1.5GiB" show best --cap-bytes 40XB
expect 2 "--cap-bytes: not a whole number of bytes ('1.5B')" show best --cap-bytes 1.5B
expect 2 "not a whole number of at least 0 ('-1')" show best --cap-bytes=-1
# Decimal fractions are rounded in binary, and are whole numbers of bytes nevertheless.
for size in 4.1 8.2 16.1 32.2; do
  "$program" show 1f1b --saved "${size/./}00000000" > shown
  "$program" show 1f1b --saved "${size}GB" | diff shown - || { failures=$((failures + 1)); echo "FAILED: $size GB"; }
done
expect 2 "--saved: not a whole number of bytes ('1.1GiB')" show 1f1b --saved 1.1GiB
expect 2 "--saved: not a whole number of bytes ('0.0000000001GB')" show 1f1b --saved 0.0000000001GB
# The unit fits the three digits that are printed, and no number has an exponent: a step is 33 times --F, of 4 times --saved.
expect 0 "1f1b      1 s  " compare 1f1b --F 30.294ms --I 30.294ms --W 30.294ms  # 999.702 ms
expect 0 "1f1b      999 ms  " compare 1f1b --F 30.28ms --I 30.28ms --W 30.28ms  # 999.24 ms
expect 0 "1f1b      3630 s  " compare 1f1b --F 110s --I 110s --W 110s
expect 0 "  1 GB" compare 1f1b --saved 249.925MB
expect 0 "  999 MB" compare 1f1b --saved 249.81MB
expect 0 "  1234 TB" compare 1f1b --saved 308.5TB
# A shorter order for given costs in which no rank keeps more: ZB-V takes 240 and keeps 3.5 4 4 4.
expect 0 "makespan 240" show zb-v --microbatches 6 --F 10 --I 14 --W 10 --latency 1
expect 0 "refined (" show zb-v --microbatches 6 --F 10 --I 14 --W 10 --latency 1 --refine
expect 0 "live activations of the ranks: 3.5 4 4 4" show zb-v --microbatches 6 --F 10 --I 14 --W 10 --latency 1 --refine
expect 0 "makespan 33" show 1f1b --refine
expect 2 "--refine searches for stages that take equally long" show 1f1b --refine --F 1,2,1,1
expect 2 "--periodic simulates schedules as they are" compare 1f1b --refine --periodic
# What limits a schedule.
expect 0 "messages took no time                                                 33        32.7%" explain 1f1b --latency 1
expect 0 "there were no warm-up, no drain and no gap" explain zb-h1
expect 0 "all stages took equally long" explain 1f1b --F 1,2,1,1

# All schedules that there are of the shape, and those that fit the bytes of a rank.
"$program" compare --all > shown
for name in gpipe 1f1b zb-v chimera dualpipe pipedream; do holds shown "$name "; done
"$program" compare --all --ranks 3 > shown
grep -q "^chimera" shown && { failures=$((failures + 1)); echo "FAILED: chimera of 3 ranks"; }
grep -qE "^there are none of this shape: .*chimera, " shown || { failures=$((failures + 1)); echo "FAILED: what is missing"; }
"$program" compare --all --fits 45GB --saved 10GB > shown
grep -qE "^gpipe .*80 GB +no$" shown || { failures=$((failures + 1)); echo "FAILED: 80 GB fit 45 GB"; }
grep -qE "^1f1b .*40 GB +yes$" shown || { failures=$((failures + 1)); echo "FAILED: 40 GB do not fit 45 GB"; }
grep -qE "^(gpipe|1f1b) .*(8 8 8 8|4 3 2 1) .*(no|yes)$" <("$program" compare gpipe 1f1b --cap 4) ||
  { failures=$((failures + 1)); echo "FAILED: --cap says nothing"; }
expect 2 "--all compares all schedules; leave out their names" compare --all 1f1b
expect 2 "the bytes of a rank are not known; give --saved, --activation and --parameters" compare --all --fits 40GB
expect 2 "--periodic does not know the bytes of a rank" compare 1f1b --periodic --fits 40GB --saved 1GB
# Times with units: all of them, or none.
expect 0 "1f1b      165 ms" compare 1f1b --F 5ms --I 5ms --W 5000us
expect 0 "makespan 165 ms" show 1f1b --F 5ms --I 5ms --W 5ms
expect 2 "--I has no unit, and other times have one; give all times units, such as 5ms, or none" show 1f1b --F 5ms
expect 2 "--F: no unit of time 'sec'; there are h, min, s, ms, us" show 1f1b --F 5sec
# Messages take 250 ms. Rank 0 waits for a message each way once in two microbatches, which take 2 x 3 s + 2 x 0.25 s then.
# 4 times that, and 3 s to fill and to drain two ranks, are 29 s; without messages, the step takes 27 s.
expect 0 "1f1b      29 s " compare 1f1b --ranks 2 --F 1s --I 1s --W 1s --activation 1GB --bandwidth 4GB/s
"$program" compare stream --F 1 "${link[@]}" --csv plain.csv > shown
"$program" compare stream --F 1s --I 0 --W 0 --activation 1kB --bandwidth 4kB/s --csv units.csv > shown
diff plain.csv units.csv || { failures=$((failures + 1)); echo "FAILED: times with units are other times"; }
# Files in pipes.
"$program" show 1f1b --csv a.csv --svg a.svg > shown
for file in csv svg; do
  "$program" show 1f1b --$file - 2> errors | cmp - a.$file || { failures=$((failures + 1)); echo "FAILED: --$file -"; }
done
"$program" check a.csv > shown
"$program" check - < a.csv | diff <(sed 's/a.csv//' shown) <(sed 's/.dev.stdin//' /dev/stdin) ||
  { failures=$((failures + 1)); echo "FAILED: check -"; }
"$program" prove - < a.csv > shown
holds shown "compute the serial step of 4 stages and 8 microbatches"
"$program" compare gpipe 1f1b --csv table.csv > shown
"$program" compare gpipe 1f1b --csv - 2> errors | cmp - table.csv || { failures=$((failures + 1)); echo "FAILED: compare --csv -"; }
holds errors "gpipe "

# The page of the explorer: written, and opened where there is a desktop, whose browser is a script here.
export TMPDIR=$folder/pages
mkdir pages desktop
touch "an explorer.html"
printf '#!/bin/sh\necho "$1" > "%s/opened"\n' "$folder" > desktop/xdg-open
chmod +x desktop/xdg-open
unset DISPLAY WAYLAND_DISPLAY
export HEDDLE_EXPLORER="an explorer.html"
page=pages/heddle-kfkb-$(id -u).html
expect 0 "open $folder/$page in a browser" show kfkb --open --ranks 3 --F 0.1 --group 4
holds "$page" "url=file://$folder/an%20explorer.html#schedules=kfkb&amp;ranks=3&amp;group=4&amp;F=0.1\""
[[ ! -e opened ]] || { failures=$((failures + 1)); echo "FAILED: opened without a desktop"; }
DISPLAY=:1 PATH=$folder/desktop:$PATH expect 0 "opened $folder/$page" show kfkb --open
[[ $(cat opened) == "$folder/$page" ]] || { failures=$((failures + 1)); echo "FAILED: opens $(cat opened)"; }
HEDDLE_EXPLORER=none.html expect 1 "HEDDLE_EXPLORER names 'none.html', which does not exist" show gpipe --open
wrong "--open shows one time for all stages" show 1f1b --ranks 2 --F 1,3 --open
unset HEDDLE_EXPLORER TMPDIR

# Colours for a terminal alone, unless NO_COLOR is set; without them the text is the same.
if command -v script > colours; then
  on_terminal() { TERM=xterm script -qec "$program show 1f1b" typescript < /dev/null | tr -d '\r'; }
  "$program" show 1f1b > shown
  on_terminal > coloured
  holds coloured $'\e[94m3F0\e[0m \e[35m3B0\e[0m'
  sed 's/\x1b\[[0-9]*m//g' coloured | diff - shown || { failures=$((failures + 1)); echo "FAILED: coloured is another text"; }
  NO_COLOR=1 on_terminal | diff - shown || { failures=$((failures + 1)); echo "FAILED: colours despite NO_COLOR"; }
  ! grep -q $'\e' shown || { failures=$((failures + 1)); echo "FAILED: colours in a file"; }
fi

"$program" gallery gallery
if ! diff -rq gallery/gallery.md "$docs/gallery.md" ||
   ! diff -rq gallery/pictures/gallery "$docs/pictures/gallery"; then
  failures=$((failures + 1))
  echo "FAILED: the gallery is not the one that is drawn now; run: schedule gallery docs"
fi
((failures == 0)) && echo "all as expected"
exit $((failures > 0))
