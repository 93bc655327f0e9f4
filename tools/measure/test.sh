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

if "$program" "$folder/paths" paths > "$folder/out" 2> "$folder/error"; then
  fail "paths are measured on one rank"
fi
grep -q "two ranks are needed" "$folder/error" || fail "the error does not say that two are needed"
[[ ! -e $folder/paths ]] || fail "a table of paths was written all the same"
