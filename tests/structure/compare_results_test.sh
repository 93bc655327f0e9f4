#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# compare_results_test.sh COMPARE: the comparison of results across back ends accepts what it should
# and nothing else.
set -uo pipefail
compare=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/one" "$folder/two"
status=0
tried=0

judge() {  # judge accepts|refuses WHAT: one and two as they are
  if "$BASH" "$compare" "$folder/one" "$folder/two" > "$folder/said" 2>&1; then
    verdict=accepts
  else
    verdict=refuses
  fi
  tried=$((tried + 1))
  if [[ $verdict != "$1" ]]; then
    printf 'should be "%s": %s\n' "$1" "$2"
    cat "$folder/said"
    status=1
  fi
}
try() {  # try accepts|refuses KIND VALUES OTHER-VALUES
  printf "heddle results 1\n$2\n$3" > "$folder/one/a.txt"
  printf "heddle results 1\n$2\n$4" > "$folder/two/a.txt"
  judge "$1" "$2: $3 and $4"
}

try accepts integers '1\n-2\n' '1\n-2\n'
try refuses integers '1\n2\n' '1\n3\n'
try refuses integers '9007199254740993\n' '9007199254740992\n'  # the same as doubles
try refuses integers '1\n2\n' '1\n'
try refuses integers '1\n' '1\n2\n'
try accepts integers '' ''
try accepts 'floats 1e-10' '1\n-3\n' '1.0000000001\n-3\n'
try refuses 'floats 1e-10' '1\n-3\n' '1.000000001\n-3\n'
try refuses 'floats 1e-10' '1\n2\n' '1\n-2\n'
try refuses 'floats 0' '1\n' '1.0000000000000002\n'
try accepts 'floats 0' '0\n' '0\n'
try refuses 'floats 1e-10' 'nan\n' 'nan\n'
try refuses 'floats 1e-10' '1\n' '-nan\n'
try refuses 'floats 1e-10' '1\n' 'inf\n'
try accepts 'floats 1.2e-14' '-0.5\n1e+20\n' '-0.5\n1e+20\n'
try refuses 'floats 1e-10' '1\n' '1e\n'
try refuses 'floats 1e-10' '1\n' '1nan\n'
try refuses 'floats nan' '1\n' '5\n'
try refuses 'floats' '1\n' '1\n'
try refuses 'words' '1\n' '1\n'
printf 'heddle results 1\nfloats 1e-3\n1\n' > "$folder/two/a.txt"
printf 'heddle results 1\nfloats 1e-9\n1\n' > "$folder/one/a.txt"
judge refuses "another tolerance"
printf 'heddle results 2\nfloats 1e-9\n1\n' > "$folder/two/a.txt"
judge refuses "another format"
cp "$folder/one/a.txt" "$folder/two/a.txt"
judge accepts "the same file"
cp "$folder/one/a.txt" "$folder/two/b.txt"
judge refuses "a file that the reference lacks"
mv "$folder/two/b.txt" "$folder/one/b.txt"
judge refuses "a file that only the reference has"
rm "$folder"/one/* "$folder"/two/*
judge refuses "no files at all"

((status == 0)) && echo "$tried comparisons judged rightly"
exit $status
