#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# flex.sh COMMAND...: starts COMMAND, train_gpt on 1, 2 or 4 ranks, with sequences of unequal lengths,
# for which each batch divides the ranks into groups. Each time --check compares losses and gradients
# with those of one rank, which computes one sequence after another.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/trains.sh"
sizes=(--microbatches 4 --layers 2 --width 16 --heads 4 --context 37 --costs nominal --attention flex)
command=("$@")
# The program says on how many ranks it is.
ranks=$(timeout 60 "${command[@]}" --pipe 64 --precision double 2>&1 | sed -n 's/.*the communicator has \([0-9]*\)).*/\1/p')
case $ranks in
  1)
    trains "groups of all steps: 4 of 1 rank" --lengths long-tail
    trains "2 of 1 rank" --lengths uniform --capacity 1000 --kv-heads 1
    ;;
  2)
    trains " of 1 rank, " --sequence 2 --lengths long-tail
    trains " of 2 ranks" --sequence 2 --lengths uniform --kv-heads 1 --order zigzag --shard zero2
    trains "x tensor=2" --tensor 2 --lengths long-tail
    ;;
  4)
    trains " of 1 rank, " --sequence 4 --lengths long-tail
    trains " of 4 ranks" --sequence 4 --lengths long-tail --kv-heads 1 --ways 2 --costs measured
    trains " of 4 ranks" --sequence 4 --lengths uniform --batch 7 --shard zero3
    trains "data=2 x ring=2" --data 2 --sequence 2 --lengths long-tail --gradient-sum library
    trains "x ring=2 x heads=1 x tensor=2" --tensor 2 --sequence 2 --lengths long-tail --kv-heads 2
    trains "pipe=2 x data=1 x ring=2" --pipe 2 --sequence 2 --lengths long-tail --schedule zb-h1 \
           --save "$folder/checkpoint"
    trains "resumed before step 2" --sequence 4 --lengths long-tail --resume "$folder/checkpoint"
    # Equal lengths are those of other methods, which go on with what is saved.
    trains " of 4 ranks" --sequence 4 --save "$folder/equal"
    trains "resumed before step 2" --sequence 4 --attention ring --resume "$folder/equal"
    ;;
  *)
    echo "FAILED: on '$ranks' ranks"
    failures=1
    ;;
esac
exit $((failures > 0))
