#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: the program measure on one rank.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source "$(dirname "$0")/../../scripts/environment.sh"

fail() {
  echo "test.sh: $*" >&2
  exit 1
}

status=0
"$program" > "$folder/out" 2> "$folder/error" || status=$?
[[ $status -eq 2 ]] || fail "without arguments it ends with $status"
grep -q '^usage: ' "$folder/error" || fail "without arguments it does not say how it is used"

if "$program" "$folder/costs" all_reduced > "$folder/out" 2> "$folder/error"; then
  fail "a collective that there is not is accepted"
fi
grep -q "there is no collective 'all_reduced'" "$folder/error" || fail "the error does not name it"
[[ ! -e $folder/costs ]] || fail "a table was written all the same"

"$program" "$folder/costs" all_reduce barrier > "$folder/out"
grep -q '^heddle-costs 1 ' "$folder/costs" || fail "the file is not a table of costs"
grep -q '^time barrier 0 [^ ]* library$' "$folder/costs" || fail "the barrier is not in the table"
grep -q '^all_reduce 8 bytes: library ' "$folder/out" || fail "the table is not shown"
"$program" - all_reduce | grep -q '^all_reduce 1048576 bytes: ' || fail "- shows no table"

"$program" "$folder/sizes" broadcast 64 4000 > "$folder/out"
[[ $(grep -c '^time broadcast \(64\|4000\) ' "$folder/sizes") -eq $(grep -c '^time ' "$folder/sizes") ]] ||
  fail "other sizes are measured than those that are given"
grep -q '^broadcast 4000 bytes: ' "$folder/out" || fail "a size that is given is not measured"
if "$program" "$folder/odd" 7 > "$folder/out" 2> "$folder/error"; then
  fail "a size that is not whole floats is accepted"
fi
grep -q 'a size is whole floats' "$folder/error" || fail "the error does not say what a size is"

if "$program" "$folder/paths" paths > "$folder/out" 2> "$folder/error"; then
  fail "paths are measured on one rank"
fi
grep -q "two ranks are needed" "$folder/error" || fail "the error does not say that two are needed"
[[ ! -e $folder/paths ]] || fail "a table of paths was written all the same"
