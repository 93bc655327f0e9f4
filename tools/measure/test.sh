#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS COMMAND...: the program measure, on one rank and by COMMAND on two.
set -euo pipefail
program=$1
shift 2
two=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source "$(dirname "$0")/../../scripts/environment.sh"
cd "$work"

fail() {
  echo "test.sh: $*" >&2
  exit 1
}
# refused PHRASE COMMAND...: it fails, says PHRASE, prints nothing and writes no file
refused() {
  local phrase=$1 status=0
  shift
  "$@" > "$work/out" 2> "$work/error" || status=$?
  [[ $status -ne 0 ]] || fail "not refused: $*"
  grep -qF -- "$phrase" "$work/error" || fail "'$*' says: $(cat "$work/error")"
  [[ -z $(ls -A | grep -vE '^(out|error)$') ]] || fail "'$*' wrote $(ls -A)"
}
# misused PHRASE ARGUMENTS...: refused with status 2 and the usage
misused() {
  local phrase=$1 status=0
  shift
  refused "$phrase" "$program" "$@"
  "$program" "$@" > out 2> error || status=$?
  [[ $status -eq 2 ]] || fail "'measure $*' ends with $status"
  [[ ! -s out ]] || fail "'measure $*' prints"
  grep -q '^Usage: measure' error || fail "'measure $*' does not say how it is used"
}

[[ $("$program" --help | grep -c '^Usage: measure') -eq 1 ]] || fail "there is no help"
if "$program" --help | grep -q -- '--kokkos'; then fail "the help is that of Kokkos"; fi
[[ $("${two[@]}" --help | grep -c '^Usage: measure') -eq 1 ]] || fail "help is not printed once"
"$program" --version | grep -q '^measure (Heddle) ' || fail "there is no version"
[[ -z $(ls -A) ]] || fail "a file was written: $(ls -A)"
misused "FILE is required"
misused "no option '--hlep'; did you mean '--help'?" --hlep
misused "no option '-costs'" -costs
misused "'-costs' begins with '-'" -- -costs
misused "no collective 'all_reduced'; did you mean 'all_reduce'?" costs all_reduced
misused "no collective 'path'; did you mean 'paths'?" costs path
misused "paths is measured alone" costs paths 8
misused "machine is measured alone" machine.json machine all_reduce
misused "profile is measured alone" profile.json profile 8
misused "no collective 'machin'; did you mean 'machine'?" machine.json machin
misused "one rank has no links to measure" machine.json machine
misused "no collective 'zigzag'; there are " costs zigzag
misused "one rank has no links to measure" costs
misused "one rank has no links to measure" - all_reduce 64
misused "start it by mpiexec -n RANKS measure" paths.txt paths
refused "a size must be a multiple of 4 bytes" "${two[@]}" odd 7
refused "the width must be a multiple of the number of heads" "${two[@]}" - profile --width 7 --heads 2

"${two[@]}" costs all_reduce barrier > out
grep -q '^heddle-costs 1 ' costs || fail "the file is not a table of costs"
grep -q '^time barrier 0 [^ ]* library$' costs || fail "the barrier is not in the table"
grep -q '^all_reduce 8 bytes: ' out || fail "the table is not shown"
"${two[@]}" - broadcast 64 | grep -q '^broadcast 64 bytes: ' || fail "- shows no table"
[[ ! -e - ]] || fail "- is a file"

"${two[@]}" sizes broadcast 64 4000 > out
[[ $(grep -c '^time broadcast \(64\|4000\) ' sizes) -eq $(grep -c '^time ' sizes) ]] ||
  fail "other sizes are measured than those that are given"
grep -q '^broadcast 4000 bytes: ' out || fail "a size that is given is not measured"

"${two[@]}" - machine > out || fail "- shows no machine"
grep -q '^2 x rank' out || fail "the machine has another number of ranks: $(cat out)"
sizes=(--layers 2 --width 8 --heads 2 --context 8 --samples 2 --device a100)
"$program" - profile "${sizes[@]}" > out || fail "- shows no profile"
grep -q '^ranks: a100$' out || fail "the profile does not name the kind of the rank: $(cat out)"
[[ ! -e - ]] || fail "- is a file"
if "${two[@]}" machine.json machine --device a100 > out 2> error; then
  grep -q '"format": *"heddle-machine"' machine.json || fail "the file is not a machine"
  grep -q '"a100"' machine.json || fail "the file does not name the device"
  "${two[@]}" profile.json profile "${sizes[@]}" > out || fail "no profile is measured"
  grep -q '"format": *"heddle-profile"' profile.json || fail "the file is not a profile"
  # The program plan, which lies beside it, reads both. Kinds may differ on a busy machine.
  if [[ -x $(dirname "$program")/plan ]] && grep -q '^ranks: a100 a100$' out; then
    "$(dirname "$program")/plan" search profile.json machine.json --batch 4 > out 2>&1 ||
      fail "plan does not read what is measured: $(cat out)"
  fi
else
  grep -q 'no nlohmann_json' error || fail "machine: $(cat error)"
fi
