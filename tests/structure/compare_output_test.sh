#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# compare_output_test.sh COMPARE: the comparison of example outputs accepts what it should and
# nothing else.
set -uo pipefail
compare=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

try() {  # try accepts|refuses EXPECTED OUTPUT
  printf '%b' "$2" > "$folder/expected"
  printf '%b' "$3" > "$folder/output"
  if "$BASH" "$compare" "$folder/expected" cat "$folder/output" > /dev/null 2>&1; then
    verdict=accepts
  else
    verdict=refuses
  fi
  if [[ $verdict != "$1" ]]; then
    printf 'should be "%s": expected %q, printed %q\n' "$1" "$2" "$3"
    status=1
  fi
}

try accepts 'a\nb\n' 'a\nb\n'
try refuses 'a\nb\n' 'a\n'
try refuses 'a\n' 'a\nb\n'
try refuses 'a\nb\n' 'b\na\n'
try refuses 'a.c\n' 'abc\n'
try accepts '' ''
try refuses '' 'a\n'
try refuses 'a\n' ''
try accepts 'took <number> s\n' 'took 1.25e-3 s\n'
try accepts 'took <number> s\n' 'took   -7 s\n'
try refuses 'took <number> s\n' 'took nan s\n'
try refuses 'took <number> s\n' 'took 1 s more\n'
try accepts '[<number>|*] (a+b)\n' '[3|*] (a+b)\n'
try accepts 'a\n...\nz\n' 'a\nz\n'
try accepts 'a\n...\nz\n' 'a\nb\nc\nz\n'
try accepts 'a\n...\nz\n' 'a\nz\nz\n'
try refuses 'a\n...\nz\n' 'a\nz\nb\n'
try refuses 'a\n...\nz\n' 'a\nb\n'
try accepts '...\n' 'a\nb\n'
try accepts '...\n' ''
try accepts 'a\n...\n' 'a\nb\nc\n'
try accepts '...\nb\nc\n...\ne\n' 'a\nb\nb\nc\nd\ne\n'
try refuses '...\nb\nc\n...\ne\n' 'a\nb\nb\nd\ne\n'

# A program that fails is refused, whatever it printed.
printf 'a\n' > "$folder/expected"
if "$BASH" "$compare" "$folder/expected" sh -c 'echo a; exit 3' > /dev/null 2>&1; then
  echo "accepts a program that failed"
  status=1
fi
((status == 0)) && echo "24 comparisons judged rightly"
exit $status
