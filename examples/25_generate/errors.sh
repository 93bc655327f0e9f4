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
refuses "no option '--window'" --window 3
exit $((failures > 0))
