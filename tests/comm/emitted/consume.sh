#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# consume.sh EXAMPLE FOLDER COMPILER MPIGEN|- COMMAND...: the Makefile of EXAMPLE builds a copy of it in
# FOLDER by COMPILER, and COMMAND, which starts ./consumer, prints what the example expects. Its
# pipeline.hpp is what MPIGEN writes now, if there is one. Status 77 without make or a wrapper of MPI.
set -euo pipefail
example=$1
folder=$2
compiler=$3
mpigen=$4
shift 4
fail() { echo "$*" >&2; exit 1; }
command -v make > /dev/null || { echo "skipped: there is no make"; exit 77; }
rm -rf "$folder"
mkdir -p "$folder"
cp "$example"/* "$folder"
cd "$folder"
echo '#include <mpi.h>' > probe.cpp
"$compiler" -fsyntax-only probe.cpp || { echo "skipped: '$compiler' does not find mpi.h"; exit 77; }
if [[ $mpigen != - ]]; then
  "$mpigen" emit 1f1b written.hpp --namespace pipeline --ranks 3 --microbatches 4 --activation 64 \
    --saved 64 --parameters 64
  diff written.hpp pipeline.hpp || fail "pipeline.hpp is not what mpigen writes now"
fi
! grep -n 'heddle/' Makefile main.cpp pipeline.hpp || fail "the example knows Heddle"
make MPICXX="$compiler" CXXFLAGS=-O1
"$@" > printed || fail "the program fails"
diff printed expected.txt || fail "it prints something else"
