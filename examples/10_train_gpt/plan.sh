#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# plan.sh COMMAND...: starts COMMAND, train_gpt on 4 ranks, by plans of 1 to 4 of them. Each time
# --check compares losses and gradients with those of one rank.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/trains.sh"
sizes=(--layers 4 --width 16 --heads 2 --context 16)
command=("$@")

# plan SCHEDULE MICROBATCHES STAGE...: writes a plan to "$folder/plan.json".
plan() {
  local IFS=,
  printf '{"format": "heddle-plan", "version": 1, "plan": {"schedule": "%s", "microbatches": %s,
          "stages": [%s]}}' "$1" "$2" "${*:3}" > "$folder/plan.json"
}
plan gpipe 2 '{"layers": [0, 4], "ranks": [2], "samples": [3]}'
trains "stage 0: layers 0-3, rank 2, samples 3" --plan "$folder/plan.json"
plan 1f1b 2 '{"layers": [0, 4], "ranks": [3, 1, 0], "samples": [2, 1, 1]}'
trains "ranks 3 1 0, samples 2 1 1" --plan "$folder/plan.json"
# Shares 3:1, one rank, and a group that divides layers; one stage recomputes.
plan 1f1b 3 '{"layers": [0, 1], "ranks": [1, 0], "samples": [3, 1], "recompute": true}' \
            '{"layers": [1, 4], "ranks": [3, 2], "samples": [4], "tensor": 2}'
trains "samples 4, tensor degree 2" --plan "$folder/plan.json" --save-plan "$folder/saved.json" --report
trains "plan error:" --plan "$folder/saved.json" --report
plan zb-h1 4 '{"layers": [0, 2], "ranks": [0], "samples": [4]}' \
             '{"layers": [2, 4], "ranks": [1, 3, 2], "samples": [2, 1, 1]}'
trains "layers 2-3, ranks 1 3 2, samples 2 1 1" --plan "$folder/plan.json"
plan 1f1b 2 '{"layers": [0, 4], "ranks": [0, 1, 2, 3], "samples": [4, 2], "tensor": 2}'
trains "ranks 0-3, samples 4 2, tensor degree 2" --plan "$folder/plan.json" --gradient-sum library
trains "planner" --plan auto --batch 8 --microbatches 4 --save-plan "$folder/auto.json"
# Two ranks divide each sequence in both stages, and two layers and sequences in one.
plan 1f1b 3 '{"layers": [0, 1], "ranks": [2, 0], "samples": [3], "sequence": 2, "recompute": true}' \
            '{"layers": [1, 4], "ranks": [1, 3], "samples": [3], "sequence": 2}'
trains "rank" --plan "$folder/plan.json" --order zigzag
sed 's/"schedule"/"attention": "ulysses", "schedule"/' "$folder/plan.json" > "$folder/heads.json"
trains "sharding zero3" --plan "$folder/heads.json" --shard zero3 --attention ulysses --context 15
plan gpipe 2 '{"layers": [0, 4], "ranks": [3, 1, 0, 2], "samples": [2], "tensor": 2, "sequence": 2}'
trains "tensor degree 2, sequence degree 2" --plan "$folder/plan.json" --gradient-sum library --report
# A search among all tensor degrees that divide the heads, and a plan of degree 2.
trains "rank, tensor degree 2, samples 1 2" --plan auto --batch 8 --microbatches 4
trains "tensor degree 2" --plan auto --batch 8 --microbatches 4 --tensor 2 --report
# Degree 1 can be asked for too, and 0 is any degree.
trains "rank" --plan auto --batch 8 --microbatches 4 --tensor 1 --save-plan "$folder/one.json"
if grep -q '"tensor": *[2-9]' "$folder/one.json"; then
  failures=$((failures + 1))
  echo "FAILED: --tensor 1 gives: $(< "$folder/one.json")"
fi
trains "tensor degree" --plan auto --batch 8 --microbatches 4 --tensor 0
# What is trained by a plan generates text at its end.
trains "sample:" --plan "$folder/saved.json" --sample 20
# The ranks with the same weights divide parameters. What one plan has saved, a pipeline without one
# goes on with, and a plan goes on with that.
plan 1f1b 3 '{"layers": [0, 1], "ranks": [1, 0], "samples": [3, 1], "recompute": true}' \
            '{"layers": [1, 4], "ranks": [3, 2], "samples": [2, 2]}'
cp "$folder/plan.json" "$folder/four.json"
trains "sharding zero1" --plan "$folder/four.json" --shard zero1 --save "$folder/checkpoint"
trains "resumed before step 2" --pipe 4 --batch 12 --microbatches 3 --resume "$folder/checkpoint" \
       --save "$folder/without"
sed 's/"schedule"/"sharding": "zero3", "schedule"/' "$folder/four.json" > "$folder/zero3.json"
trains "resumed before step 4" --plan "$folder/zero3.json" --resume "$folder/without"
# Gradients in two buckets, summed as soon as they exist: by rings, by MPI, and by the stages.
plan 1f1b 3 '{"layers": [0, 2], "ranks": [1, 0], "samples": [3, 1]}' \
            '{"layers": [2, 4], "ranks": [3, 2], "samples": [2, 2]}'
sed 's/"schedule"/"buckets": 2, "schedule"/' "$folder/plan.json" > "$folder/buckets.json"
trains "2 buckets" --plan "$folder/buckets.json" --report
trains "2 buckets" --plan "$folder/buckets.json" --gradient-sum library
for sharding in zero1 zero3; do
  trains "sharding $sharding, 2 buckets" --plan "$folder/buckets.json" --shard "$sharding"
done
plan zb-h1 3 '{"layers": [0, 4], "ranks": [0, 1, 2, 3], "samples": [2, 2], "tensor": 2}'
trains "resumed before step 2" --plan "$folder/plan.json" --shard zero2 --resume "$folder/checkpoint"

# Encoded messages in nodes and pairs, of the command line and of the plan.
plan 1f1b 2 '{"layers": [0, 4], "ranks": [0, 1, 2, 3], "samples": [2, 1, 1, 2]}'
trains "sharding zeropp, nodes of 2" --plan "$folder/plan.json" --shard zeropp --node 2 --report
sed 's/"schedule"/"sharding": "three-level", "shard_node": 2, "shard_pair": 2, "schedule"/' \
    "$folder/plan.json" > "$folder/levels.json"
trains "sharding three-level, nodes of 2, pairs of 2" --plan "$folder/levels.json" --node 2
# A search that divides sequences, by rings and by heads, and its plan from the file.
trains "sequence degree 4" --plan auto --batch 2 --microbatches 2 --sequence 4 --report
trains "attention ulysses" --plan auto --batch 2 --microbatches 2 --sequence 2 --attention ulysses \
       --save-plan "$folder/heads.json"
trains "by the plan's file:" --plan "$folder/heads.json" --report

# refused PHRASE ARGUMENTS...: ends with another status than 0 and prints the phrase.
refused() {
  local phrase=$1 output status=0
  shift
  output=$(timeout 60 "${command[@]}" --steps 1 --sample 0 --precision double "$@" 2>&1) || status=$?
  if ((status == 0 || status == 124)) || [[ $output != *"$phrase"* ]]; then
    failures=$((failures + 1))
    printf 'FAILED (status %s): %s\n  expected: %s\n  printed:  %s\n' \
           "$status" "$*" "$phrase" "$output"
  else
    printf 'ok: %s\n' "$phrase"
  fi
}
plan zb-h1 3 '{"layers": [0, 4], "ranks": [0, 1, 2, 3], "samples": [2, 2], "tensor": 2}'
refused "ends behind 4 of 3 layers" --layers 3 --plan "$folder/plan.json"
# Options that contradict the plan are refused with both values; options that agree are not.
refused "(--pipe 4, '$folder/plan.json' has 1)" --pipe 4 --plan "$folder/plan.json"
refused "(--schedule 1f1b, '$folder/plan.json' has zb-h1)" --schedule 1f1b --plan "$folder/plan.json"
refused "(--microbatches 4, '$folder/plan.json' has 3)" --microbatches 4 --plan "$folder/plan.json"
refused "(--batch 8, '$folder/plan.json' has 12)" --batch 8 --plan "$folder/plan.json"
refused "(--sequences 2, '$folder/plan.json' has 4)" --sequences 2 --plan "$folder/plan.json"
refused "(--data 1, '$folder/plan.json' has 2)" --data 1 --plan "$folder/plan.json"
refused "(--sequence 2, '$folder/plan.json' has 1)" --sequence 2 --plan "$folder/plan.json"
refused "(--tensor 1, '$folder/plan.json' has 2)" --tensor 1 --plan "$folder/plan.json"
plan 1f1b 3 '{"layers": [0, 2], "ranks": [0, 1], "samples": [2], "tensor": 2}' \
            '{"layers": [2, 4], "ranks": [2, 3], "samples": [1, 1]}'
refused "(--tensor 2, '$folder/plan.json' has 2, 1 in its stages)" --tensor 2 \
        --plan "$folder/plan.json"
cp "$folder/plan.json" "$folder/layers.json"
trains "tensor degree 2" --pipe 2 --sequence 1 --schedule 1f1b --microbatches 3 --batch 6 \
       --sequences 2 --plan "$folder/plan.json"
plan gpipe 2 '{"layers": [0, 2], "ranks": [0, 1], "samples": [2], "sequence": 2}' \
             '{"layers": [2, 4], "ranks": [2, 3], "samples": [1, 1]}'
refused "give all stages the sequence degree 2 or 1" --layers 4 --plan "$folder/plan.json"
refused "use ring, rsa or ulysses" --plan auto --attention usp
refused "give a --tensor that divides all of them" --plan auto --heads 2 --tensor 4
refused "--stages-per-rank cannot be used with --plan" --stages-per-rank 2 --plan auto
refused "--heads-axis cannot be used with --plan" --heads-axis 1 --plan auto
refused "a plan has microbatches of one size" --plan auto --batch 8 --microbatches 3
refused "(--attention ulysses, '$folder/plan.json' has ring)" --attention ulysses \
        --plan "$folder/plan.json"
refused "pairs of 1, nodes of 3, 2 ranks" --layers 4 --shard zeropp --node 3 \
        --plan "$folder/plan.json"
refused "(sharding zeropp, tensor degree 2)" --layers 4 --shard zeropp --node 1 \
        --plan "$folder/layers.json"
refused "(--node 2, '$folder/plan.json' has 0)" --layers 4 --node 2 --plan "$folder/plan.json"
refused "no sharding 'zero4'" --layers 4 --shard zero4 --plan "$folder/plan.json"
refused "(--shard zero1, '$folder/zero3.json' has zero3)" --layers 4 --shard zero1 --plan "$folder/zero3.json"
refused "sequences of a step: 12, here 18" --layers 4 --width 16 --heads 2 --context 16 --plan auto \
        --batch 18 --microbatches 3 --resume "$folder/checkpoint"
plan 1f1b 2 '{"layers": [0, 4], "ranks": [0, 9], "samples": [2, 2]}'
refused "rank 9 of 4" --plan "$folder/plan.json"
exit $((failures > 0))
