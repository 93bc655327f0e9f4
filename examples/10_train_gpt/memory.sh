#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# memory.sh COMMAND...: starts COMMAND, train_gpt on 2 ranks, with a context of 4096 and a limit of the
# memory of a rank. The probabilities of one sequence need 128 MiB; a rank that has half of a sequence
# keeps none.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/trains.sh"
sizes=(--context 4096 --layers 1 --width 8 --heads 1 --microbatches 1 --memory 24)
command=("$@")
trains "sequence: 2 ranks, ring" --sequence 2 --sequences 1
output=$(timeout 60 "${command[@]}" "${sizes[@]}" --sequences 1 --precision double --data 2 2>&1) && {
  echo "FAILED: a rank that has the whole sequence stays within the limit"
  failures=1
}
if [[ $output != *"cannot allocate"*"within the limit"*"25165824 B are used"* ]]; then
  printf 'FAILED: the error does not name the limit: %s\n' "$output"
  failures=1
fi
exit $((failures > 0))
