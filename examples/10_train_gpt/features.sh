#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# features.sh COMMAND...: starts COMMAND, train_gpt on 2 ranks, with features that arguments.txt leaves
# out. Each time --check compares losses and gradients with those of one rank.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/trains.sh"
sizes=(--microbatches 4 --layers 4 --width 16 --heads 2 --context 16)
command=("$@")
trains "kFkB P=2 M=4 k=4" --pipe 2 --schedule kfkb --group 4
trains "ZB-H1 P=2 M=4" --pipe 2 --schedule zb-h1
trains "Chimera P=2 M=4" --pipe 2 --schedule chimera
trains "DualPipeV P=2 M=4" --pipe 2 --schedule dualpipe-v
trains "mesh: pipe=1 x data=1 x ring=1 x heads=1 x tensor=2" --tensor 2
trains "mesh: pipe=1 x data=2 x ring=1 x heads=1 x tensor=1" --data 2 --gradient-sum library
for shard in zero1 zero2 zero3; do
  trains "sharding: $shard, nodes of 2, pairs of 1" --data 2 --shard "$shard"
done
trains "sharding: zeropp, nodes of 1, pairs of 1" --data 2 --shard zeropp
trains "sharding: three-level, nodes of 2, pairs of 2" --data 2 --shard three-level --node 2
trains "mesh: pipe=2 x data=1 x ring=1 x heads=1 x tensor=1" --pipe 2 --tied --schedule dualpipe-v
trains "mesh: pipe=1 x data=2 x ring=1 x heads=1 x tensor=1" --data 2 --tied
trains "mesh: pipe=1 x data=1 x ring=1 x heads=1 x tensor=2" --tensor 2 --tied --save "$folder/tied"
trains "resumed before step 2" --pipe 2 --tied --resume "$folder/tied"
# Replicas that divide the parameters; their checkpoint has the embedding once, too.
trains "sharding: zero1, nodes of 2, pairs of 1" --data 2 --tied --shard zero1
trains "sharding: zero3, nodes of 2, pairs of 1" --data 2 --tied --shard zero3 --save "$folder/divided"
trains "resumed before step 2" --pipe 2 --tied --microbatches 8 --resume "$folder/divided"
trains "matrix products: " --pipe 2 --report
trains "offload: 40% of the kept activations" --pipe 2 --offload 40%
trains "offload: 50% of the kept activations" --pipe 2 --schedule zb-v --offload 50%
# 8 sequences in 3 microbatches: 3, 3 and 2.
trains "1F1B P=2 M=3" --pipe 2 --batch 8 --microbatches 3
trains "ZB-H1 P=2 M=3" --pipe 2 --batch 8 --microbatches 3 --schedule zb-h1
trains "mesh: pipe=1 x data=1 x ring=1 x heads=1 x tensor=2" --tensor 2 --batch 8 --microbatches 3
# Slices of sequences, which do not divide the context of 16 tokens.
trains "Seq1F1B P=2 M=12 slices=3" --pipe 2 --slices 3
trains "slices: 3 of each sequence" --tensor 2 --slices 3 --kv-heads 2
# What a pipeline has saved, replicas and a divided layer go on with.
trains "mesh: pipe=2 x data=1 x ring=1 x heads=1 x tensor=1" --pipe 2 --save "$folder/checkpoint"
trains "resumed before step 2" --pipe 2 --resume "$folder/checkpoint"
trains "resumed before step 2" --tensor 2 --resume "$folder/checkpoint"
exit $((failures > 0))
