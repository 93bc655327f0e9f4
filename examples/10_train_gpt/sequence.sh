#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# sequence.sh COMMAND...: starts COMMAND, train_gpt on 4 ranks, with sequences that ranks divide, of
# a length that is a prime. Each time --check compares losses and gradients with those of one rank.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/trains.sh"
sizes=(--microbatches 2 --layers 2 --width 16 --heads 4 --context 37)
command=("$@")
trains "sequence: 4 ranks, ring, zigzag order" --sequence 4 --attention ring --order zigzag
trains "sequence: 4 ranks, ulysses, even order" --sequence 4 --attention ulysses --shard zero3
trains "x ring=2 x heads=2 x tensor=1" --sequence 4 --attention usp --kv-heads 2 --ways 2
trains "sequence: 4 ranks, rsa, zigzag order" --sequence 4 --attention rsa --order zigzag
trains "pair over all heads, measured" --sequence 4 --attention automatic --heads-axis 4
# 2 * 16 floating-point operations of 1 ps.
trains "attention: 0.032 ns for a product" --sequence 4 --attention automatic --costs nominal
trains "x data=1 x ring=2 x heads=1 x tensor=1" --pipe 2 --sequence 2 --schedule zb-h1 --kv-heads 1 \
       --save "$folder/checkpoint"
# Whole sequences go on with what divided ones have saved, and the other way round.
trains "resumed before step 2" --pipe 2 --data 2 --microbatches 1 --kv-heads 1 \
       --resume "$folder/checkpoint" --save "$folder/next"
trains "resumed before step 4" --sequence 4 --order striped --kv-heads 1 --resume "$folder/next"
exit $((failures > 0))
