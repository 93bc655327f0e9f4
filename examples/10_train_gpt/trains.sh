# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by features.sh and sequence.sh: how they start train_gpt. `command` is what starts it, and
# `sizes` are the options of the model.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# trains PHRASE ARGUMENTS...: is checked against one rank, and prints the phrase.
trains() {
  local phrase=$1 output status=0 sequences=(--sequences 2)
  shift
  [[ $* != *"--plan $folder"* ]] || sequences=()  # a file of a plan says how many
  output=$(timeout 60 "${command[@]}" "${sizes[@]}" "${sequences[@]}" --precision double --steps 2 --sample 0 \
    --check "$@" 2>&1) || status=$?
  if ((status != 0)) || [[ $output != *"check: against one rank"* || $output != *"$phrase"* ]]; then
    failures=$((failures + 1))
    printf 'FAILED (status %s): %s\n  expected: %s\n  printed:  %s\n' \
           "$status" "$*" "$phrase" "$output"
  else
    printf 'ok: %s: %s\n' "$*" "$phrase"
  fi
}
