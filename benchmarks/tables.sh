#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# tables.sh ROOT [--check]: writes the tables of results in ROOT/docs/benchmarks.md and ROOT/README.md
# from ROOT/benchmarks/results.csv; --check writes nothing and fails if one of them differs.
set -euo pipefail
root=$1 check=${2-}
of=$root/benchmarks
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make() {  # make TABLE DOCUMENT FILE...: the document, made from these files
  local table=$1 document=$2
  shift 2
  awk -v table="$table" -f "$of/verdict.awk" -f "$of/tables.awk" "$@" "$document" > "$work/made"
  if [[ $check == --check ]]; then
    diff "$document" "$work/made" > "$work/difference" && return
    echo "$document: its table is not that of benchmarks/results.csv; run scripts/bench --tables" >&2
    sed -n 1,20p "$work/difference" >&2
    return 1
  fi
  cat "$work/made" > "$document"
}
make docs "$root/docs/benchmarks.md" "$of/bars.csv" "$of/results.csv"
make readme "$root/README.md" "$of/bars.csv" "$of/results.csv" "$of/readme.csv"
