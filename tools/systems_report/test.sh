#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: the command line of the program systems_report, which reruns nothing here.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "$*" >&2; exit 1; }
grep -q '^Usage: systems_report' <("$program" --help) || fail "there is no help"
grep -q '^systems_report (Heddle) ' <("$program" --version) || fail "there is no version"
grep -qx 'DAPPLE runtime' <("$program" --list) || fail "the names are not listed"
# wrong PHRASE ARGUMENTS...: refused, and nothing is printed
wrong() {
  local phrase=$1 status=0
  shift
  "$program" "$@" > out 2> error || status=$?
  [[ $status -eq 2 ]] || fail "'$*' ends with $status"
  grep -qF -- "$phrase" error || fail "'$*' says: $(cat error)"
  grep -q '^Usage: systems_report' error || fail "'$*' does not say how"
  [[ ! -s out ]] || fail "'$*' prints"
}
wrong "no system 'Gpip'; did you mean 'GPipe'?" Gpip
wrong "no system 'nothing'; there are FlexPipe, Chimera" nothing
wrong "no option '--lst'; did you mean '--list'?" --lst
wrong "'1F1B' is one argument too many" GPipe 1F1B
