#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# saves.sh COMMAND...: starts COMMAND, train_gpt on 2 ranks, with checkpoints that are written while steps run. Their
# bytes are those of a run that ends there; a save that fails is told, and the training goes on.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_odls_base_sigkill_timeout=0
failures=0
train() {
  timeout 60 "$@" --pipe 2 --layers 2 --width 16 --heads 2 --context 16 --sequences 1 \
    --microbatches 2 --sample 0 "${options[@]}" > "$folder/printed" 2>&1
}
# expect WHAT COMMAND...: counts a failure and shows what was printed unless COMMAND succeeds.
expect() {
  local what=$1
  shift
  if "$@"; then
    echo "ok: $what"
  else
    failures=$((failures + 1))
    echo "FAILED: $what"
    cat "$folder/printed"
  fi
}
for steps in 2 4; do
  options=(--steps "$steps" --save "$folder/after$steps")
  expect "a run of $steps steps" train "$@"
done
options=(--steps 5 --save "$folder/beside" --save-every 2)
expect "a run that saves every 2 steps" train "$@"
expect "the save behind step 4 has the bytes of a run that ends there" \
       cmp "$folder/after4" "$folder/beside.2"

# FILE.2 cannot be written: it is a folder. The save at the end tries it again.
mkdir "$folder/bad.2"
options=(--steps 5 --save "$folder/bad" --save-every 2 --log "$folder/log")
status=0
train "$@" || status=$?
expect "the status says that the last save failed" test "$status" -ne 0 -a "$status" -ne 124
expect "the file and the reason are told" \
       grep -q "goes on: .*cannot save the checkpoint '$folder/bad.2'" "$folder/printed"
expect "the file that is kept is told" grep -q "checkpoint '$folder/bad' is kept" "$folder/printed"
expect "the training went on to its end" test "$(wc -l < "$folder/log")" -eq 5
expect "the file that is kept is whole" cmp "$folder/after2" "$folder/bad"
exit $((failures > 0))
