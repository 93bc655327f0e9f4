#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# benchmark_tables_test.sh ROOT: the table of results in docs/benchmarks.md is that of the results file; a
# changed figure is noticed; and what benchmarks print comes to the file and to the table.
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }

"$root/benchmarks/tables.sh" "$root" --check

mkdir "$work/docs"
cp -r "$root/benchmarks" "$work"
cp "$root/docs/benchmarks.md" "$work/docs"
sed -i '/results: begin/,/results: end/s/holds/falls short/' "$work/docs/benchmarks.md"
if "$work/benchmarks/tables.sh" "$work" --check 2> /dev/null; then fail "a changed verdict is not noticed"; fi
cp "$root/docs/benchmarks.md" "$work/docs"

cat > "$work/output" << 'END'
ratio pipeline/gpt_1f1b hand_written_mpi 0.5 0.1..0.9
interval pipeline/gpt_1f1b hand_written_mpi 0.4..0.6
value execute/overhead unrecorded 21 nan..22 ns
ratio no/bar peer 1 1..1
END
save() {
  awk -v machine=M -v today="$1" -f "$work/benchmarks/save.awk" "$work/benchmarks/bars.csv" \
    "$work/benchmarks/results.csv" "$work/output" > "$work/results"
  mv "$work/results" "$work/benchmarks/results.csv"
}
save 2999-01-01
save 2999-01-02  # replaces the former one
"$work/benchmarks/tables.sh" "$work"
has() {  # has FILE TEXT: exactly one line
  [[ $(grep -cF -- "$2" "$work/$1") == 1 ]] || fail "$1: not exactly one line with '$2'"
}
has benchmarks/results.csv 'pipeline/gpt_1f1b,hand_written_mpi,0.5,0.4,0.6,M,2999-01-02'
has docs/benchmarks.md '0.5 (0.4..0.6) | >= 0.98 | falls short | M, 2999-01-02'
has docs/benchmarks.md '21 (nan..22) ns | <= 20 | not a number | M, 2999-01-02'
if grep -q 'no/bar\|2999-01-01' "$work/benchmarks/results.csv"; then fail "a line too many is kept"; fi
if (($(wc -l < "$work/benchmarks/results.csv") != $(wc -l < "$root/benchmarks/results.csv") + 2)); then
  fail "lines of other machines were lost"
fi
