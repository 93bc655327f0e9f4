#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: what the program `plan` prints, writes and rejects.
set -uo pipefail
program=$1
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
wrong() {  # wrong PHRASE ARGUMENTS...: rejected with the usage, and nothing is printed
  local phrase=$1
  shift
  expect 2 "$phrase" "$@"
  expect 2 "Usage: plan" "$@"
  [[ -z $("$program" "$@" 2> errors) ]] || { failures=$((failures + 1)); echo "FAILED: $* prints"; }
}

# Four equal layers, which take a second forward and three backward for a sample on a fast device, and
# a machine of two fast and two slow devices without a cost of messages.
layer='{"output": 1000, "saved": 4000, "parameters": 1e6, "measured": [{"device": "fast",
        "forward": 1, "backward_input": 2, "backward_weight": 1, "update": 0.5}]}'
cat > profile.json << END
{"format": "heddle-profile", "version": 1, "profile":
  {"model": "four", "reference": "fast", "layers": [$layer, $layer, $layer, $layer]}}
END
cat > machine.json << END
{"format": "heddle-machine", "version": 1, "machine": {
  "devices": [{"name": "fast", "count": 2, "memories": [{"capacity": 12e6}]},
              {"name": "slow", "count": 2, "speed": 0.5, "memories": [{"capacity": 12e6}]}],
  "levels": [{"name": "rank", "ranks": 1}, {"name": "all", "ranks": 4}]}}
END
cat > two.json << END
{"format": "heddle-plan", "version": 1, "plan": {"microbatches": 4, "stages": [
  {"layers": [0, 2], "ranks": [0], "samples": [1]}, {"layers": [2, 4], "ranks": [1], "samples": [1]}]}}
END
sed 's/"ranks": \[1\]/"ranks": [2]/' two.json > slow.json
cat > four.json << END
{"format": "heddle-plan", "version": 1, "plan": {"microbatches": 1, "stages": [
  {"layers": [0, 4], "ranks": [0, 1], "samples": [2, 2]}]}}
END

expect 0 "Usage: plan" --help
expect 0 "search " --help
expect 0 "Planners:" --help
expect 0 "plan (Heddle) " --version
for page in "search --help" "show --help" "check --help" "compare --help" "error --help" \
            "explain --help" "import --help"; do
  # shellcheck disable=SC2086
  expect 0 "Usage: plan ${page%% *}" $page
done
expect 0 "--batch NUMBER" search --help
wrong "a command is missing; there are search, show, check, compare, error, explain, program, import"
wrong "no command 'serch'; did you mean 'search'?" serch
wrong "no option '--bach'; did you mean '--batch'?" search profile.json machine.json --bach 4
wrong "PROFILE is required" search
wrong "--batch is required" search profile.json machine.json
wrong "--batch is 0" search profile.json machine.json --batch 0
wrong "no planner 'Dappel'; did you mean 'DAPPLE'?" \
      search profile.json machine.json --batch 4 --planner Dappel
wrong "no planner 'Meti'; did you mean 'Metis'?" \
      search profile.json machine.json --batch 4 --planner DAPPLE --planner Meti
wrong "--seconds is not above 0" search profile.json machine.json --batch 4 --seconds 0
wrong "--memory is not above 0" search profile.json machine.json --batch 4 --memory 0
wrong "no unit of bytes 'XB'" search profile.json machine.json --batch 4 --memory 5XB
wrong "no unit of time 'sec'; there are h, min, s, ms, us" \
      search profile.json machine.json --batch 4 --seconds 5sec
wrong "the standard input is one file" search - - --batch 4
wrong "the standard input is one file" compare - machine.json two.json -
wrong "the standard output is one file" show two.json profile.json machine.json --svg - --perfetto -
wrong "no schedule '1f1f'; did you mean '1f1b'?" \
      search profile.json machine.json --batch 4 --schedule 1f1f
wrong "no format 'f17'; did you mean 'f16'?" search profile.json machine.json --batch 4 --cast f17
wrong "'i8/x' is no format" search profile.json machine.json --batch 4 --cast i8/x
wrong "MACHINE is missing" show two.json profile.json
wrong "a picture needs times" show two.json --svg a.svg
wrong "a drawing needs at least one column" show two.json profile.json machine.json --columns 0

expect 0 "stage 1: layers 2-3, rank 1, samples 1" show two.json
expect 0 "hash " show two.json
# Two equal stages of F 2 and B 6, four microbatches: (4 - 1 + 2) x 8, and updates of 1.
expect 0 "makespan 41 s" show two.json profile.json machine.json
expect 0 "" show two.json profile.json machine.json --svg a.svg --perfetto a.json
grep -q '<svg xmlns' a.svg || { failures=$((failures + 1)); echo "FAILED: a.svg is no picture"; }
grep -q '"format":"heddle-trace"' a.json || { failures=$((failures + 1)); echo "FAILED: a.json"; }

expect 0 "simulated step 41 s" check two.json profile.json machine.json
expect 0 "0      2 s      6 s       1 s" check two.json profile.json machine.json
# On a slow device: F 4 and B 12; the fast one waits, (4 - 1) x 16 + 2 + 16 + 6, and an update of 1.
expect 0 "simulated step 73 s" check slow.json profile.json machine.json
expect 1 "rank 0 needs 18032000 bytes and has 12000000" check four.json profile.json machine.json
expect 0 "simulated step 34 s" check four.json profile.json machine.json --state 2
sed 's/"ranks": \[0\]/"ranks": [1]/' two.json > twice.json
expect 1 "'twice.json': plan: a rank can be in a plan only once (rank 1 is in stage 0 and again in" \
       check twice.json profile.json machine.json
sed 's/\[2, 4\]/[2, 5]/' two.json > long.json
expect 1 "'long.json': the model has fewer layers than the plan (stage 1 ends behind 5 of 4 layers)" \
       check long.json profile.json machine.json
sed 's/"ranks": \[1\]/"ranks": [4]/' two.json > rank.json
expect 1 "'rank.json': no such rank (stage 1: rank 4 of 4)" check rank.json profile.json machine.json
sed 's/"microbatches": 4/"schedule": "zb-v"/' two.json > folded.json
expect 1 "the schedule 'zb-v' does not fit the plan" check folded.json profile.json machine.json
expect 1 "'none.json': the file cannot be read" check none.json profile.json machine.json
expect 1 "'machine.json': format: this is no file of a plan" check machine.json profile.json machine.json
sed 's/"forward": 1/"forward": -1/' profile.json > minus.json
expect 1 "'minus.json': profile.layers[0].measured[0].forward: expected a number above 0 (got -1)" \
       check two.json minus.json machine.json
sed 's/"reference": "fast", //' profile.json > strict.json
expect 1 "the device 'slow' was not measured" check two.json strict.json machine.json

expect 0 "two.json   " compare profile.json machine.json two.json slow.json
expect 0 "41 s       10.25 s" compare profile.json machine.json two.json slow.json
expect 0 "no: rank 0" compare profile.json machine.json four.json
expect 2 "PLAN is required" compare profile.json machine.json

# A plan of a thousand million microbatches is priced, but not drawn: (1e9 - 1 + 2) x 8, and updates of 1.
sed 's/"microbatches": 4/"microbatches": 1000000000/' two.json > many.json
expect 0 "simulated step 8e+09 s" check many.json profile.json machine.json
expect 0 "8e+09 s" compare profile.json machine.json many.json
expect 1 "'1f1b' of 2 ranks and 1000000000 microbatches is too large" show many.json profile.json machine.json
expect 1 "plan check prices plans of any number of microbatches" show many.json profile.json machine.json
# Files in pipes: the same output, and a file on the standard output stands there alone.
same() {  # same FILE COMMAND...: the command has this output
  local file=$1
  shift
  "$@" 2> errors | cmp - "$file" || { failures=$((failures + 1)); echo "FAILED: $*: $(cat errors)"; }
}
"$program" check two.json profile.json machine.json > checked
same checked "$program" check - profile.json machine.json < two.json
same checked "$program" check two.json - machine.json < profile.json
same checked "$program" check two.json profile.json - < machine.json
"$program" compare profile.json machine.json slow.json | sed 's/slow.json /          /' > compared
"$program" compare profile.json machine.json - < slow.json | sed 's/\/dev\/stdin/         /; s/ *$//' |
  diff -bB compared - || { failures=$((failures + 1)); echo "FAILED: compare of a plan in a pipe"; }
same a.svg "$program" show two.json profile.json machine.json --svg -
same a.json "$program" show - profile.json machine.json --perfetto - < two.json
"$program" error two.json profile.json machine.json a.json > wrong_by
"$program" error two.json profile.json machine.json - < a.json | sed 's/\/dev\/stdin/a.json/' | diff -b wrong_by - ||
  { failures=$((failures + 1)); echo "FAILED: error of a trace in a pipe"; }

# The trace of a step of 41 s, and one of a model with F 4 on each stage: (4 - 1 + 2) x 10 + 1 = 51 s.
sed 's/"forward": 1/"forward": 2/g' profile.json > heavy.json
expect 0 "makespan 51 s" show two.json heavy.json machine.json --perfetto heavy_trace.json
expect 0 "predicted 41 s, measured 41 s (+0%)" error two.json profile.json machine.json a.json
expect 0 "a.json  51 s       41 s      -19.6078 %" error two.json heavy.json machine.json a.json
expect 0 "size of the error: median 12.1951 %, least 0 %, greatest 24.3902 %" \
       error two.json profile.json machine.json a.json heavy_trace.json
expect 1 "'a.json': the trace is of another schedule than the plan's (action 1 is 0F0 in" \
       error four.json profile.json machine.json a.json
expect 1 "cannot read 'none.json'" error two.json profile.json machine.json none.json
expect 1 "'two.json': this is no trace of version 1" error two.json profile.json machine.json two.json
sed 's/"dur":2000000.000/"dur":3000000.000/' a.json > changed.json
expect 1 "'changed.json': the trace is damaged" error two.json profile.json machine.json changed.json
[[ $("$program" error two.json profile.json machine.json a.json) != *"the plan predicted"* ]] ||
  { failures=$((failures + 1)); echo "FAILED: two.json has no prediction"; }
expect 2 "MEASURED is required" error two.json profile.json machine.json

# What is searched, every planner can be asked for alone, and its plan is valid.
expect 0 "planner " search profile.json machine.json --batch 4 --output best.json
expect 0 "simulated step " check best.json profile.json machine.json
# The plan that is found says what was predicted, and is compared with it.
expect 0 "predicted: a step takes " search profile.json machine.json --batch 4
step=$("$program" show best.json | sed -n 's/^predicted: a step takes \([0-9.]* s\); bytes: rank.*/\1/p')
expect 0 "simulated step $step" check best.json profile.json machine.json
# Two ranks with links that are too slow to sum gradients: two stages of one rank.
sed 's/.*"slow".*/ ],/; s/\]},$/]}/; s/"ranks": 4/"ranks": 2, "link": {"bandwidth": 1e5}/' \
    machine.json > links.json
expect 0 "stage 1: " search profile.json links.json --batch 4 --output line.json
"$program" show line.json profile.json links.json --perfetto line_trace.json > /dev/null
expect 0 "the plan predicted  error" error line.json profile.json links.json line_trace.json
expect 0 "+0 %   $("$program" show line.json | sed -n 's/^predicted: a step takes \([0-9.]* s\).*/\1/p')" \
       error line.json profile.json links.json line_trace.json
sed 's/"microbatches": *[0-9]*/"microbatches": 77/; /"checksum"/d' best.json > edited.json
expect 1 "'edited.json': plan.prediction.of: the prediction is of another plan" show edited.json
expect 0 "best.json  " compare profile.json machine.json best.json
planners=$("$program" --help | sed -n '/^Planners:/,$s/^  \([A-Za-z]*\): .*/\1/p')
[[ -n $planners ]] || { failures=$((failures + 1)); echo "FAILED: there are no planners"; }
expect 3 "Replicas: rank 0 lacks 4016000 bytes" \
       search profile.json machine.json --batch 4 --planner Replicas  # the model is too large for a rank
for name in ${planners//Replicas/}; do
  expect 0 "$name " search profile.json machine.json --batch 4 --planner "$name" --output one.json
  expect 0 "simulated step " check one.json profile.json machine.json
done
# Some of the planners, in the order of their list, with files in a pipe, and nothing but the plan on the
# standard output. A search with enough time ends by itself.
expect 0 "Metis " search profile.json machine.json --batch 4 --planner Metis --planner DAPPLE
[[ $("$program" search profile.json machine.json --batch 4 --planner Metis --planner DAPPLE |
     sed -n '2,3s/ .*//p' | tr '\n' ' ') == "DAPPLE Metis " ]] ||
  { failures=$((failures + 1)); echo "FAILED: two planners"; }
"$program" search - machine.json --batch 4 --output - < profile.json > piped.json 2> table
cmp best.json piped.json || { failures=$((failures + 1)); echo "FAILED: a plan in a pipe"; }
grep -q "samples a second; rank [0-9]* needs [0-9.]* MB of 12 MB" table ||
  { failures=$((failures + 1)); echo "FAILED: the summary: $(cat table)"; }
"$program" search profile.json - --batch 4 --seconds 1min --memory 0.5GB --output timed.json < machine.json > table
cmp best.json timed.json || { failures=$((failures + 1)); echo "FAILED: a search with a limit"; }
grep -q "cut off" table && { failures=$((failures + 1)); echo "FAILED: 60 s are not enough"; }
expect 0 "cut off: DAPPLE" search profile.json machine.json --batch 4 --seconds 1e-9
expect 0 "cut off: DAPPLE" search profile.json machine.json --batch 4 --seconds 0.001us
# A search over 10^5 ranks ends, with or without a plan.
cat > huge.json << END
{"format": "heddle-machine", "version": 1, "machine": {"devices": [{"name": "fast", "count": 100000}],
  "levels": [{"name": "rank", "ranks": 1}, {"name": "all", "ranks": 100000}]}}
END
timeout 60 "$program" search profile.json huge.json --batch 100000 --planner DAPPLE --seconds 1 > table 2>&1
grep -q "^cut off: DAPPLE" table || { failures=$((failures + 1)); echo "FAILED: 10^5 ranks: $(cat table)"; }
# Replicas with equal samples are told in few words.
cat > wide.json << END
{"format": "heddle-machine", "version": 1, "machine": {"devices": [{"name": "fast", "count": 16}],
  "levels": [{"name": "rank", "ranks": 1}, {"name": "all", "ranks": 16}]}}
END
expect 0 "ranks 0-15, samples 1 (16 ranks)" search profile.json wide.json --batch 16 --planner Replicas
# A terminal shows work of more than a second.
if command -v script > /dev/null; then
  script -qec "(sleep 2.2; cat profile.json) | '$program' search - machine.json --batch 4" typescript \
    < /dev/null > terminal
  grep -q "reading files, 1 s" terminal || { failures=$((failures + 1)); echo "FAILED: no progress is shown"; }
fi
grep -q "reading files" table && { failures=$((failures + 1)); echo "FAILED: progress without a terminal"; }
"$program" search profile.json machine.json --batch 4 --output again.json > /dev/null
cmp best.json again.json || { failures=$((failures + 1)); echo "FAILED: two searches differ"; }
# One long sample on two ranks: each has half of it. The keys of attention must be known.
expect 1 "sequence degree 2" search profile.json links.json --batch 1 --sequence 2
sed 's/"saved": 4000/"saved": 4000, "keys": 1000/g; s/1e6/1000/g' profile.json > keys.json
expect 0 "sequence degree 2" search keys.json links.json --batch 1 --sequence 2
sed 's/12e6/1e6/g' machine.json > tiny.json
expect 3 "no planner found a plan" search profile.json tiny.json --batch 4 --output tiny_plan.json
expect 3 "the least shortage is that of " search profile.json tiny.json --batch 4
[[ ! -e tiny_plan.json ]] || { failures=$((failures + 1)); echo "FAILED: a plan is written"; }

# A product that the fast devices divide in the ratio of their speeds: 12 rows by 2, 2, 1, 1.
cat > program.json << END
{"format": "heddle-program", "version": 1, "program": {
  "dimensions": [{"name": "b", "size": 12}, {"name": "i", "size": 4}, {"name": "o", "size": 4}],
  "tensors": [{"name": "x", "dims": ["b", "i"], "role": "input"},
              {"name": "w", "dims": ["i", "o"], "role": "parameter"},
              {"name": "y", "dims": ["b", "o"], "role": "output"}],
  "operations": [{"kind": "matmul", "inputs": ["x", "w"], "output": "y"}]}}
END
expect 0 "b          4 4 2 2" explain program.json machine.json --planner HAP --flops 1
expect 0 "time 128 s, computation 128 s, communication 0 s" \
       explain program.json machine.json --planner HAP --flops 1
sed 's/12e6/100/g' machine.json > small.json
expect 1 "largest tensor is 'x' with 48 bytes" explain program.json small.json --planner HAP --flops 1
sed 's/"x", "w"/"x", "v"/' program.json > undefined.json
expect 1 "tensor 'v' is undefined" explain undefined.json machine.json --planner HAP
wrong "MACHINE is required" explain program.json

# A linear layer of few samples and many weights: its output is divided, and no message is needed.
cat > layer.json << END
{"format": "heddle-program", "version": 1, "program": {
  "dimensions": [{"name": "b", "size": 3}, {"name": "i", "size": 512}, {"name": "o", "size": 512}],
  "tensors": [{"name": "x", "dims": ["b", "i"], "role": "input"},
              {"name": "w", "dims": ["i", "o"], "role": "parameter"},
              {"name": "y", "dims": ["b", "o"], "role": "output"}],
  "operations": [{"kind": "matmul", "inputs": ["x", "w"], "output": "y"}]}}
END
expect 0 "axes of 4 ranks" explain layer.json machine.json
expect 0 "divided by o, sharded(o)  yes" explain layer.json machine.json
expect 0 "collectives 0 s" explain layer.json machine.json --level 2
# With all candidates: dividing i gives sums of parts, and replicated work takes 4 times as long.
expect 0 "divided by i, partial" explain layer.json machine.json --all
expect 0 "more than chosen" explain layer.json machine.json --all
expect 0 "seconds gained by a GB more" explain layer.json machine.json --planner HAP
wrong "no planner of programs 'Rino'; did you mean 'Rhino'?" \
      explain layer.json machine.json --planner Rino
expect 1 "level = 3" explain layer.json machine.json --level 3
sed 's/"x", "w"/"x", "v"/' layer.json > undefined.json
expect 1 "'undefined.json': program: tensor 'v' is undefined" explain undefined.json machine.json
sed 's/12e6/1e3/g' machine.json > small.json
expect 1 "the largest tensor, 'w'" explain layer.json small.json
# The program of a transformer block, and what the planners make of it: with samples for all ranks both
# divide them and send nothing.
cat > four_ranks.json << END
{"format": "heddle-machine", "version": 1, "machine": {"devices": [{"name": "fast", "count": 4}],
  "levels": [{"name": "node", "ranks": 4, "link": {"latency": 1e-6, "bandwidth": 1e10}}]}}
END
expect 0 "block0.mlp.contract_product = matmul block0.mlp.activated[sequence, position, hidden], " \
       program --width 8 --heads 2 --output block.json
expect 0 "dimension hidden of 24" program --width 8 --heads 2 --hidden 24
expect 0 "block1.output = " program --layers 2
expect 0 "output loss" program --vocabulary 16
same block.json "$program" program --width 8 --heads 2 --output -
expect 0 "output vocabulary_gradient[" program --vocabulary 16 --gradients
for planner in Rhino HAP; do
  phrase="communication 0 s"
  [[ $planner == Rhino ]] && phrase="collectives 0 s"
  expect 0 "$phrase" program --machine four_ranks.json
  expect 0 "$planner:" program --machine four_ranks.json --planner "$planner"
  expect 0 "$phrase" program --machine four_ranks.json --planner "$planner"
  # The same program from its file.
  "$program" program --width 8 --heads 2 --machine four_ranks.json --planner "$planner" |
    sed "1,/^$planner:/d" > generated
  "$program" explain block.json four_ranks.json --planner "$planner" > read
  cmp generated read || { failures=$((failures + 1)); echo "FAILED: $planner of block.json differs"; }
done
# Of one sequence HAP divides heads, then positions of the MLP.
expect 0 "all_to_all   block0.attention.attended " program --sequences 1 --context 8 --width 512 \
       --heads 8 --machine four_ranks.json --planner HAP
expect 1 "heads" program --width 10 --heads 4
wrong "no planner of programs 'HAPP'" program --machine four_ranks.json --planner HAPP

# Of a profile: the best plan for each number of microbatches.
expect 0 "microbatches  4 " explain profile.json machine.json --batch 4 --planner DAPPLE
wrong "--batch is missing" explain profile.json machine.json

# A text profile of four nodes: an input, two layers, and one without a time between them.
fields() { printf 'forward_compute_time=%s, backward_compute_time=%s, activation_size=%s, parameter_size=%s\n' "$@"; }
{ printf 'n1 -- Input -- %s\n' "$(fields 0.0 0.0 64.0 0.0)"
  printf 'n2 -- Conv(3, 8) -- %s\n' "$(fields 1000 2000 '[96; 32]' 1000000.0)"
  printf 'n3 -- View -- %s\n' "$(fields 0 0 40 0)"
  printf 'n4 -- Linear -- %s\n' "$(fields 3000 6000 8 1000000)"
  printf '\tn1 -- n2\n\tn2 -- n3\n\tn3 -- n4\n'; } > graph.txt
expect 0 "graph.txt: 2 layers, 2000000 bytes of parameters, input of 16 bytes a sample" \
       import graph.txt --samples 4 --device fast --output imported.json
expect 0 "layer 0 (Conv(3, 8)): parameters 1000000, output 10, saved 58" \
       import graph.txt --samples 4
same imported.json "$program" import - --samples 4 --device fast --model graph.txt --output - < graph.txt
"$program" explain layer.json machine.json > explained
same explained "$program" explain - machine.json < layer.json
expect 0 "DAPPLE " search imported.json machine.json --batch 8 --output of_imported.json
expect 0 "simulated step " check of_imported.json imported.json machine.json
sed 's/; 32\]/; 32/' graph.txt > broken.txt
expect 1 "'broken.txt', line 2: the list of 'activation_size' does not end: '[96; 32'; add" \
       import broken.txt --output broken.json
[[ ! -e broken.json ]] || { failures=$((failures + 1)); echo "FAILED: a profile is written"; }
sed 's/-- n4$/-- n5/' graph.txt > broken.txt
expect 1 "line 7: an edge names 'n5', which is no node" import broken.txt
expect 1 "cannot read 'none.txt'" import none.txt
expect 1 "cannot read '.'" import .
wrong "--samples is 0" import graph.txt --samples 0
wrong "FILE is required" import
((failures == 0)) && echo "all as expected"
exit $((failures > 0))
