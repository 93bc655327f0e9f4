#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# errors.sh COMMAND...: starts COMMAND, generate on 2 ranks, with what it must refuse. Each time it has
# to end soon, with a status other than 0, and say what is wrong.
. "$(dirname "${BASH_SOURCE[0]}")/../common/refuses.sh"
always=(--pipe 2 --tokens 2)
printf 'a\n\nb\n' > "$folder/empty.txt"
printf '%065d\n' 1 > "$folder/long.txt"
head -c 100 /dev/zero > "$folder/zeros"
refuses "the prompt is empty" --prompts "$folder/empty.txt"
refuses "the prompt is longer than the context" --prompts "$folder/long.txt"
refuses "cannot read $folder/none.txt" --prompts "$folder/none.txt"
refuses "$folder/zeros" --load "$folder/zeros"
refuses "the temperature is negative" --temperature -1
refuses "top-k must be at least 1" --top-k 0
refuses "top-p must lie in (0, 1]" --top-p 1.5
refuses "no token is asked for" --tokens 0
refuses "the mesh does not fit the ranks" --tensor 2
refuses "the mesh does not fit the ranks" --data 2
refuses "--window has no tiers" --window 3

tiers="memory 8MB, file $folder/w.tier 200MB/s"
divided=(--pipe 1 --tensor 2 --precision double)
refuses "the window must hold at least one object" "${divided[@]}" --tiers "$tiers" --window 0
refuses "is larger than the fast tier" "${divided[@]}" --tiers "memory 1kB, file $folder/w.tier"
refuses "is larger than the fast tier" --precision double --tiers "memory 1kB, file $folder/p.tier"
refuses "the largest window that fits is 6" "${divided[@]}" --window 8 \
  --tiers "memory 700kB, file $folder/w.tier"
refuses "of another model" "${divided[@]}" --seed 7 --tiers "$tiers"
refuses "no such tier ('tape x')" "${divided[@]}" --tiers "tape x"
refuses "no unit of bytes ('8parsec')" "${divided[@]}" --tiers "memory 8parsec, file w"
refuses "there is no tier 'file'" "${divided[@]}" --tiers "memory 8MB"
refuses "cannot" "${divided[@]}" --tiers "file $folder/none/w.tier"
(until [[ -e $folder/slow.tier ]]; do sleep 0.1; done; sleep 1
 truncate -c -s 300000 "$folder/slow.tier") &
refuses "object 'block" "${divided[@]}" --tokens 60 --tiers "file $folder/slow.tier 2MB/s"
truncate -s 300000 "$folder/w.tier"
refuses "$folder/w.tier" "${divided[@]}" --tiers "$tiers"
exit $((failures > 0))
