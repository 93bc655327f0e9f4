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
"$program" picture small.trace - | cmp - small.svg || fail "the picture on the standard output is another one"
grep -q '^Usage: memory' <("$program" --help) || fail "there is no help"
grep -q 'WRITTEN' <("$program" replay --help) || fail "there is no help of a command"
grep -q '^memory (Heddle) ' <("$program" --version) || fail "there is no version"
# wrong STATUS PHRASE ARGUMENTS...: refused, and nothing is printed
wrong() {
  local wanted=$1 phrase=$2 status=0
  shift 2
  "$program" "$@" > out.txt 2> error.txt || status=$?
  [[ $status -eq $wanted ]] || fail "'memory $*' ends with $status"
  grep -qF -- "$phrase" error.txt || fail "'memory $*' says: $(cat error.txt)"
  [[ ! -s out.txt ]] || fail "'memory $*' prints"
  [[ $wanted -ne 2 ]] || grep -q "^Usage: memory" error.txt || fail "'memory $*' does not say how"
}
wrong 2 "a command is missing; there are show, replay, picture, import"
wrong 2 "no command 'replya'; did you mean 'replay'?" replya small.trace
wrong 2 "TRACE is required" show
wrong 2 "memory show --help says what the options are" show
wrong 2 "no option '--trace'" show --trace small.trace
wrong 2 "no way to write 'al'; did you mean 'all'?" replay small.trace al
wrong 2 "no way to write 'some'; there are none, pages, all" replay small.trace some
wrong 2 "'-x.svg' begins with '-'" picture small.trace -- -x.svg
wrong 2 "no option '-x.svg'" picture small.trace -x.svg
wrong 1 "nothing.trace" show nothing.trace
wrong 1 "has no events" import small.trace other.trace
wrong 1 "cannot read 'none' (No such file or directory)" import none other.trace
wrong 1 "cannot read '.' (Is a directory)" import . other.trace
[[ -z $(find . -name '-*') ]] || fail "a file was written"
