#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# compare.sh LIBRARY PROGRAM COMMAND...: COMMAND, which starts PROGRAM, prints the same with LIBRARY
# loaded before all others; the report says what was packed, and that nothing is left. What the
# environment asks for is done, or refused.
set -uo pipefail
library=$1
program=$2
# Built with the address sanitizer, whose library then is not the first.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; cat "$work"/*; exit 1; }

# started NAME SETTING...: what the program prints with these in its environment.
started() {
  local name=$1 words=() word
  shift
  for word in "${command[@]}"; do
    [[ $word == "$program" ]] && words+=(env "$@")
    words+=("$word")
  done
  "${words[@]}" > "$work/$name" 2> "$work/$name.errors"
}
command=("$@")
preload=LD_PRELOAD=$library

started without || fail "the program fails without the library"
for table in always never; do
  started $table $preload HEDDLE_MPI_TABLE=$table HEDDLE_MPI_REPORT="$work/report.$table" ||
    fail "the program fails with $table"
  cmp -s "$work/without" "$work/$table" || fail "another result with $table"
  grep -q "holds 0 datatypes and 0 requests" "$work/report.$table" || fail "something is left"
done
grep -q "rank 0: MPI_Isend [1-9][0-9]* packed ([1-9][0-9]* B) and 0 left" "$work/report.always" ||
  fail "not all was packed"
grep -q "^heddle_mpi rank 0: process [1-9][0-9]*, rank 0: $program$" "$work/report.always" ||
  fail "the report does not say which process it is of"
grep -q "rank 0: about [0-9.e-]*[1-9][0-9.e-]* s gained by packing: an estimate" "$work/report.always" ||
  fail "the report does not say what was gained"
grep -q "rank 0: about 0 s gained" "$work/report.never" || fail "nothing was packed, and gains"
grep -q "rank 0: MPI_Irecv 0 packed (0 B) and [1-9][0-9]* left" "$work/report.never" ||
  fail "something was packed"

started printed $preload HEDDLE_MPI_REPORT=- || fail "the program fails with the shipped table"
grep -q "^heddle_mpi rank 0: holds 0" "$work/printed" || fail "the report is not printed"
grep -qf "$work/without" "$work/printed" || fail "another result with the shipped table"

started off $preload HEDDLE_MPI_OFF=1 HEDDLE_MPI_REPORT="$work/report.off" || fail "it fails when off"
cmp -s "$work/without" "$work/off" && [[ ! -e $work/report.off ]] || fail "it is not off"

printf 'heddle-pack-table 1\nbytes 8 64\n1024 2 0.5\n65536 0.5 2\n' > "$work/gains"
started table $preload HEDDLE_MPI_TABLE="$work/gains" || fail "the program fails with a table"
cmp -s "$work/without" "$work/table" || fail "another result with a table"
# Two tables: for calls that block, as the program's MPI_Recv, and for those that do not.
packed='[1-9][0-9]* packed ([1-9][0-9]* B) and 0 left' left='0 packed (0 B) and [1-9][0-9]* left'
for gains in "2 0.5 $left" "0.5 2 $packed"; do
  read -r blocking nonblocking line <<< "$gains"
  printf 'heddle-pack-table 1\nbytes 8\n8 %s\n' $blocking $nonblocking > "$work/gains.two"
  started two $preload HEDDLE_MPI_TABLE="$work/gains.two" HEDDLE_MPI_REPORT="$work/report.two" ||
    fail "the program fails with two tables"
  cmp -s "$work/without" "$work/two" || fail "another result with two tables"
  grep -q "rank 0: MPI_Isend $line" "$work/report.two" || fail "MPI_Isend goes by the other table"
  ! grep -q "rank 0: MPI_Recv $line" "$work/report.two" || fail "MPI_Recv goes by the other table"
  rm "$work/report.two"
done
printf 'heddle-pack-table 1\nbytes 8\n8 2\nheddle-pack-table 2\n' > "$work/gains.second"
started second $preload HEDDLE_MPI_TABLE="$work/gains.second" && fail "half a file is taken"
grep -q 'the first line must be "heddle-pack-table 1" ("heddle-pack-table 2")' \
  "$work/second.errors" || fail "it does not say what is wrong with the second table"
echo 'heddle-pack-table 2' > "$work/gains.other"
started refused $preload HEDDLE_MPI_TABLE="$work/gains.other" && fail "no table is taken for one"
grep -q 'the first line must be "heddle-pack-table 1" ("heddle-pack-table 2")' \
  "$work/refused.errors" || fail "it does not say what is wrong"
started missing $preload HEDDLE_MPI_TABLE="$work/none" && fail "a file that is not there is read"
grep -q "HEDDLE_MPI_TABLE: the file cannot be read ($work/none)" "$work/missing.errors" ||
  fail "it does not say that the file cannot be read"
cat "$work/report.always"
