#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# same.sh COMMAND...: starts COMMAND, nbody on some ranks. They have to find the positions of one rank to
# 1e-10, a run that stops and goes on has to write the file of a run that does not, 100 steps keep the
# momentum, and a plane wave moves as Zel'dovich's solution does. The program says the last two itself.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command=("$@")
one=("${!#}")  # the program alone

# run START RESULTS ARGUMENTS...: a run by the command that the array START has
run() {
  local -n start=$1
  HEDDLE_RESULTS=$folder/$2 timeout 200 "${start[@]}" "${@:3}" > "$folder/output" || { cat "$folder/output"; exit 1; }
}
clusters=(--start clusters --particles 7 --mesh 16 --dt 0.001)
run one one "${clusters[@]}" --steps 6
run command ranks "${clusters[@]}" --steps 6 --save "$folder/whole"
"$here/../../cmake/compare_results.sh" "$folder/one" "$folder/ranks"
run command ranks "${clusters[@]}" --steps 6 --stop 3 --save "$folder/half"
run command ranks "${clusters[@]}" --steps 6 --resume "$folder/half" --save "$folder/resumed"
cmp "$folder/whole" "$folder/resumed"
if cmp -s "$folder/whole" "$folder/half"; then echo "FAILED: three steps change nothing"; exit 1; fi
run command momentum "${clusters[@]}" --steps 100
cat "$folder/output"
run command wave --start zeldovich --particles 16 --theta 0 --softening 0.02 --meshes 1 --to 0.8 --steps 10
grep "Zel'dovich" "$folder/output"
