#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# runs.sh GENERATOR COMPILER FOLDER MPIGEN|- COMMAND...: the programs that GENERATOR writes into FOLDER compile
# without warnings and without Heddle by COMPILER, the wrapper of an MPI. COMMAND starts ./programs,
# which leaves out programs of more ranks than it has. The buffers end with the bytes of our executor,
# and the messages and bytes of every channel are those of the schedule. With HEDDLE_LONG there are more
# programs. MPIGEN takes all their calls out and puts them back, and they are the same. Status 77 if
# COMPILER is not such a wrapper.
set -euo pipefail
generator=$1
compiler=$2
folder=$3
mpigen=$4
shift 4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fail() { echo "$*" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
echo '#include <mpi.h>' > probe.cpp
if ! "$compiler" -fsyntax-only probe.cpp; then
  echo "skipped: '$compiler' does not find mpi.h"
  exit 77
fi
cp "$here/driver.hpp" .

"$generator" programs.cpp expected ${HEDDLE_LONG:+all}
! grep -n '#include *[<"]\(heddle\|Kokkos\)' programs.cpp || fail "a program includes Heddle"
if [[ $mpigen != - ]]; then
  "$mpigen" strip programs.cpp stripped.cpp calls
  "$mpigen" insert stripped.cpp calls back.cpp
  cmp programs.cpp back.cpp || fail "mpigen strip and insert change the programs"
  "$mpigen" strip stripped.cpp again.cpp rest
  [[ -s calls && ! -s rest ]] || fail "mpigen strip leaves calls in the programs"
fi
"$compiler" -std=c++17 -Wall -Wextra -Werror -O0 programs.cpp -o programs
"$@" expected || fail "the emitted programs do something else"

# A step less is seen by bytes and by messages.
if "$@" expected shorter > shorter.out 2>&1; then fail "a step less is not seen"; fi
for complaint in "ends otherwise" "other messages are sent" "other messages are received"; do
  grep -q "$complaint" shorter.out || fail "of a step less it does not say '$complaint'"
done
