#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: what `memory` prints of a small trace, and what it refuses.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "$*" >&2; exit 1; }
# The checksum is that of the lines above it.
cat > small.trace << 'TRACE'
heddle memory trace 1
label "weights"
label ""
+ 0 1000000 64 0
+ 250000 50 8 1
- 500000 1
+ 750000 3000000 64 0
- 900000 0
checksum 0
TRACE
if "$program" show small.trace 2> error.txt; then fail "a wrong checksum is read"; fi
grep -q "another checksum" error.txt || fail "a wrong checksum is not named: $(cat error.txt)"
sed -i 's/^checksum .*/checksum 3643028723/' small.trace
"$program" show small.trace > shown.txt
grep -q '^3 blocks, peak 4000000 B$' shown.txt || fail "$(cat shown.txt)"
grep -q '4000000 B in 2 blocks  weights$' shown.txt || fail "$(cat shown.txt)"
"$program" replay small.trace all > replayed.txt
for line in 'malloc ' 'Pages ' 'Pool of Pages ' 'Pool of huge Pages ' 'to use: '; do
  grep -q "^$line" replayed.txt || fail "$(cat replayed.txt)"
done
# 245 and 733 pages; the small block came back before.
grep -q '^Pages .* 4005888 ' replayed.txt || fail "pages of blocks are not counted: $(cat replayed.txt)"
"$program" picture small.trace small.svg
grep -q 'weights' small.svg || fail "the picture has no labels"
for words in "" "show" "show nothing.trace" "replay small.trace some" "import small.trace other.trace"; do
  # shellcheck disable=SC2086
  if "$program" $words > out.txt 2> error.txt; then fail "'memory $words' is not refused"; fi
  [[ -s error.txt ]] || fail "'memory $words' says nothing"
done
