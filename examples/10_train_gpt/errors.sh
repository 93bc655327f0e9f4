#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# errors.sh COMMAND...: starts COMMAND, train_gpt on 2 ranks, with what it must refuse. Each time it
# has to end soon, with a status other than 0, and say what is wrong.
. "$(dirname "${BASH_SOURCE[0]}")/../common/refuses.sh"
always=(--steps 2 --sample 0)
: > "$folder/empty.txt"
echo "too short" > "$folder/short.txt"
pipe=(--pipe 2)
refuses "$folder/none.txt" "${pipe[@]}" --text "$folder/none.txt"
refuses "$folder/empty.txt" "${pipe[@]}" --text "$folder/empty.txt"
refuses "is too short" "${pipe[@]}" --text "$folder/short.txt"
refuses "the mesh does not fit the ranks" --pipe 2 --data 2
refuses "the mesh does not fit the ranks" --pipe 1
refuses "an axis needs at least one rank" --pipe 0
refuses "there are more stages than layers" "${pipe[@]}" --layers 1
refuses "a step needs at least one microbatch" "${pipe[@]}" --microbatches 0
refuses "ranks of --tensor do not divide the sequences of unequal microbatches" \
        --tensor 2 --context 15 --batch 8 --microbatches 3
refuses "there are fewer samples than microbatches" "${pipe[@]}" --batch 2 --microbatches 4
refuses "at least one sample and one microbatch" "${pipe[@]}" --batch -8
refuses "no schedule 'zigzag'" "${pipe[@]}" --schedule zigzag
refuses "schedule 'pipedream' is not synchronous" "${pipe[@]}" --schedule pipedream
refuses "schedule 'flexpipe' is for models of several branches" "${pipe[@]}" --schedule flexpipe
refuses "the nearest valid number is 4" "${pipe[@]}" --schedule interleaved --microbatches 5 --layers 8
refuses "a group needs at least one microbatch" "${pipe[@]}" --schedule kfkb --group -1
refuses "the width must be a multiple of the number of heads" "${pipe[@]}" --width 10 --heads 4
refuses "no option '--stepz'; did you mean '--steps'? try --help" "${pipe[@]}" --stepz 3
refuses "--save: the option lacks its value ('--check' is an option)" "${pipe[@]}" --save --check
refuses "--save-every 2 --save ''" "${pipe[@]}" --save-every 2
refuses "no schedule 'zbv'; did you mean 'zb-v'?" "${pipe[@]}" --schedule zbv
refuses "not a number" "${pipe[@]}" --layers three
refuses "at least 1" "${pipe[@]}" --steps 0
refuses "no precision 'half'" "${pipe[@]}" --precision half
refuses "no gradient sum 'tree'" "${pipe[@]}" --gradient-sum tree
refuses "--save-plan needs a plan" "${pipe[@]}" --save-plan "$folder/plan.json"
refuses "cannot write" "${pipe[@]}" --trace "$folder/no/such/folder/trace.json"
refuses "give a --data that 4 divides, or a --node and a --pair that fit" --data 2 --shard three-level
refuses "--shard zeropp --data 2 --node 3 --pair 1" --data 2 --shard zeropp --node 3
refuses "a sharding that encodes its messages needs whole layers" --tensor 2 --shard zeropp --node 1
refuses "no sharding 'zero4'" --data 2 --shard zero4
refuses "the heads axis does not divide the ranks of a sequence" --sequence 2 --heads-axis 3
refuses "the heads axis does not divide the ranks of a sequence" --sequence 0
refuses "ulysses uses no ring axis" --sequence 2 --attention ulysses --heads-axis 1
refuses "the method uses no heads axis" --sequence 2 --attention ring --heads-axis 2
refuses "2 heads ranks; expected at most 1" --sequence 2 --attention ulysses --kv-heads 1
refuses "the K,V heads do not divide the heads" --sequence 2 --heads 4 --kv-heads 3
refuses "1 K,V heads, 2 ranks" --tensor 2 --kv-heads 1
refuses "context 1, 2 ranks" --sequence 2 --context 1
refuses "expected 1 or 2, got ways = 3" --sequence 2 --ways 3
refuses "blocks of this method go around in one way" --sequence 2 --attention rsa --ways 2
refuses "no attention suits" --sequence 2 --attention automatic --heads-axis 2 --kv-heads 1
refuses "no attention 'flash'" --sequence 2 --attention flash
refuses "use one of contiguous, zigzag, striped" --sequence 2 --order even
refuses "sequences of unequal lengths need groups of ranks" --sequence 2 --lengths long-tail
refuses "only groups of ranks have a capacity" --sequence 2 --capacity 8
flex=(--sequence 2 --attention flex)
refuses "no lengths 'short'; use one of equal, uniform, long-tail" "${flex[@]}" --lengths short
refuses "no costs 'guessed'; use one of measured, nominal" "${flex[@]}" --costs guessed
refuses "each group of flex has axes of its own" "${flex[@]}" --heads-axis 2
refuses "a rank must hold at least one token" "${flex[@]}" --capacity -1
refuses "a step needs at least one sequence" "${flex[@]}" --batch -1
refuses "of 64 tokens; it needs degree 8, the widest group has 2" "${flex[@]}" --capacity 8
refuses "at least 1" "${flex[@]}" --steps 0
refuses "a plan divides its ranks once" "${flex[@]}" --plan auto
refuses "1 K,V heads, 2 ranks" --tensor 2 --kv-heads 1 --attention flex
refuses "expected 1 or 2, got ways = 3" "${flex[@]}" --ways 3 --capacity 32 --kv-heads 1
refuses "a share to offload is a percentage from 0 to 99" "${pipe[@]}" --offload 100%
refuses "a share to offload is a percentage from 0 to 99" "${pipe[@]}" --offload much
refuses "a rank needs memory" "${pipe[@]}" --memory -1
refuses "the steps are not whole rounds of local steps" --data 2 --local-steps 3
refuses "the steps are not whole rounds of local steps" --data 2 --local-steps -1
refuses "local steps do not have this option (--local-steps 2 --shard)" --data 2 --local-steps 2 --shard zero1
refuses "--outer-momentum needs local steps" --data 2 --outer-momentum 0.9
refuses "momentum = 1" --data 2 --local-steps 2 --outer-momentum 1
refuses "a slice has no token of a sequence" "${pipe[@]}" --slices 0
refuses "sequences that are cut do not have this option" "${pipe[@]}" --slices 2 --offload 40%
refuses "precedes the backward of a later slice" "${pipe[@]}" --slices 2 --schedule 1f1b
refuses "within the limit" "${pipe[@]}" --memory 1
exit $((failures > 0))
