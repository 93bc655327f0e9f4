#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# same.sh COMMAND...: starts COMMAND, graph500 on some ranks. All policies and directions have to find the
# parents and distances that one rank finds, and so has a file with the same edges in any order.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command=("$@")
one=("${!#}")  # the program alone

# results START ARGUMENTS...: what the searches found, by a command that the array START has
results() {
  local -n start=$1
  timeout 100 "${start[@]}" "${@:2}" > "$folder/output"
  grep -E '^(bfs |sssp) +valid:' "$folder/output" || { cat "$folder/output"; exit 1; }
}
# same WHAT EXPECTED PRINTED
same() {
  [[ $2 == "$3" ]] || { printf 'FAILED: %s\n%s\ninstead of\n%s\n' "$1" "$3" "$2"; exit 1; }
  echo "$1: $(tr '\n' ' ' <<< "$3")"
}

graph=(--scale 9 --edgefactor 8 --roots 5)
expected=$(results one "${graph[@]}")
[[ $expected == *"bfs  valid: 5 of 5"*"sssp valid: 5 of 5"* ]] || { echo "$expected"; exit 1; }
for policy in nodes edges splitting hierarchy; do
  same "$policy, top-down" "$expected" \
    "$(results command "${graph[@]}" --policy $policy --direction top-down --delta 7)"
done
same bottom-up "$expected" "$(results command "${graph[@]}" --direction bottom-up --delta 100000)"
same "decomposition, both directions" "$expected" "$(results command "${graph[@]}")"

# A grid of 7 x 19 crossings, of which each is 1 from its neighbours, and the same in another order.
awk 'BEGIN { for (r = 0; r < 7; ++r) for (c = 0; c < 19; ++c) {
  if (c < 18) print 19 * r + c, 19 * r + c + 1
  if (r < 6) print 19 * r + c, 19 * r + c + 19 } }' > "$folder/grid.txt"
(echo "# turned round"; tac "$folder/grid.txt" | awk '{ print $2 "\t" $1, 1; print $1, $2, 3; print $1, $1 }') \
  > "$folder/turned.txt"
expected=$(results one --edges "$folder/grid.txt" --root 0)
same "a grid, turned round" "$expected" "$(results command --edges "$folder/turned.txt" --root 0)"
# Each edge has length 1, so both searches find the same.
[[ $(sed -n 's/.*results //p' <<< "$expected" | sort -u | wc -l) == 1 ]] || { echo "$expected"; exit 1; }
