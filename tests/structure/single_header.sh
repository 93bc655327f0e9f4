#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# single_header.sh ROOT FOLDER COMPILER: generates heddle-single.hpp in FOLDER, whole and small, and
# there is nothing else on the include path: a program that includes only it compiles, links with a
# second unit that includes it too, and runs; after another header it says that it stands alone.
set -euo pipefail
root=$1
folder=$2
compiler=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
"$root/scripts/single-header" > heddle-single.hpp
fail() { echo "heddle-single.hpp: $*"; exit 1; }
compile() { "$compiler" ${CXXFLAGS-} -std=c++20 -pthread -I. "$@"; }

head -2 heddle-single.hpp | cmp -s - <(head -2 "$root/include/heddle/core.hpp") ||
  fail "the licence is missing"
if grep -nE '^[ ]*#[ ]*include *[<"](heddle/|Kokkos|mpi)' heddle-single.hpp; then
  fail "it includes what it should hold or not need"
fi
for header in "$root"/include/heddle/{core,machine,layout,schedule,schedule/*,simulate,plan,plan/planner,plan/solver,trace,execute,pattern,tier}/*.hpp; do
  # What needs another library is a header of its own.
  if grep -q '^#if defined(HEDDLE_HAS_' "$header"; then continue; fi
  grep -qx -- "// --- ${header#"$root"/include/}" heddle-single.hpp || fail "${header##*/} is missing"
done

# Beside the program stands one of the two units that show for the headers that nothing is defined twice.
cp heddle-single.hpp everything.hpp
for unit in "$root/examples/consume_single_header/main.cpp" "$root/tests/structure/odr_one.cpp"; do
  compile -c "$unit" &
done
wait
compile main.o odr_one.o -o consumer || fail "two units define something twice"
if nm -C odr_one.o | grep -E ' [TtDdBb] heddle::'; then fail "a unit has a copy of its own"; fi
output=$(./consumer)
[[ $output == "Heddle "*": 1F1B on 4 stages"*"bubble ratio 0.27"*"sum of the first 100 squares: 328350" ]] ||
  fail "the consumer printed: $output"

# The small form serves a first program.
cp heddle-single.hpp everything.hpp
"$root/scripts/single-header" --small > heddle-single.hpp
compile "$root/examples/consume_single_header/main.cpp" -o consumer
[[ $(./consumer) == "$output" ]] || fail "with --small the consumer prints something else"
small=$(wc -l < heddle-single.hpp)
((2 * small < $(wc -l < everything.hpp))) || fail "--small has $small lines"

printf '#include <heddle/core.hpp>\n#include "heddle-single.hpp"\n' > beside.cpp
if compile -fsyntax-only "-I$root/include" beside.cpp 2> errors; then fail "it can stand beside others"; fi
grep -q 'stands in place of the other headers' errors || fail "beside others it says: $(head -3 errors)"
echo "$(wc -l < everything.hpp) lines, $small with --small, compiled and run"
