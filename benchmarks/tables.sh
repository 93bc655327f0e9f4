#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# tables.sh ROOT [--check]: writes the table of results in ROOT/docs/benchmarks.md from
# ROOT/benchmarks/results.csv; --check writes nothing and fails if it differs.
set -euo pipefail
root=$1 check=${2-}
of=$root/benchmarks document=$root/docs/benchmarks.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -f "$of/verdict.awk" -f "$of/tables.awk" "$of/bars.csv" "$of/results.csv" "$document" > "$work/made"
if [[ $check == --check ]]; then
  diff "$document" "$work/made" > "$work/difference" && exit
  echo "$document: its table is not that of benchmarks/results.csv; run scripts/bench --tables" >&2
  sed -n 1,20p "$work/difference" >&2
  exit 1
fi
cat "$work/made" > "$document"
