#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# compare_output.sh EXPECTED COMMAND...: runs the command, which must succeed, and compares what it
# prints on standard output with the file EXPECTED. In that file `<number>` stands for any number
# (in such a line the width of blanks does not count) and a line `...` for any run of lines.
set -euo pipefail
expected=$1
shift
[[ -e $expected ]] || { echo "there is no $expected to compare the output with" >&2; exit 1; }
output=$(mktemp)
trap 'rm -f "$output"' EXIT
status=0
"$@" > "$output" || status=$?
if ((status != 0)); then
  cat "$output"
  echo "exit status $status: $*" >&2
  exit 1
fi
awk '
  # A line of the file as a regular expression; everything but <number> stands for itself.
  function pattern(line,    result, place) {
    gsub(/[][\\.^$*+?(){}|]/, "\\\\&", line)
    gsub(/<number>/, "[-+]?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?", line)
    return "^" line "$"
  }
  function squeezed(line) {
    gsub(/[ \t]+/, " ", line)
    sub(/^ /, "", line)
    sub(/ $/, "", line)
    return line
  }
  function same(want, got) {
    if (!index(want, "<number>")) return want == got
    return squeezed(got) ~ pattern(squeezed(want))
  }
  NR == FNR { want[++wants] = $0; next }
  { got[++gots] = $0 }
  END {
    # Both cursors run ahead; after a `...` the output may skip lines, so remember where to go back.
    w = 1; g = 1; back_w = 0; reach_w = 1; reach_g = 1
    while (g <= gots || w <= wants) {
      if (w > reach_w || (w == reach_w && g > reach_g)) { reach_w = w; reach_g = g }
      if (w <= wants && want[w] == "...") { back_w = ++w; back_g = g; continue }
      if (w <= wants && g <= gots && same(want[w], got[g])) { ++w; ++g; continue }
      if (back_w && w > wants && back_w > wants) exit 0
      if (back_w && back_g <= gots) { g = ++back_g; w = back_w; continue }
      printf "line %d of the expected output was not found\n", reach_w
      printf "  expected: %s\n", reach_w <= wants ? want[reach_w] : "(the end)"
      printf "  printed:  %s\n", reach_g <= gots ? got[reach_g] : "(the end)"
      exit 1
    }
  }
' "$expected" "$output" || { echo "--- the whole output:"; cat "$output"; exit 1; }
cat "$output"
