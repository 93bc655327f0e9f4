#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# implementation.sh INCLUDE FOLDER COMPILER: a program of two sources, of which one has the definitions:
# all of those of its headers, or some rooms' beside another source with the rest. Without them the linker
# names what to do. A source that sees declarations holds none of the definitions.
set -euo pipefail
include=$1
folder=$2
compiler=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
fail() { echo "HEDDLE_IMPLEMENTATION: $*"; exit 1; }
compile() { "$compiler" ${CXXFLAGS-} -std=c++20 -O0 -pthread "-I$include" "$@"; }

cat > main.cpp <<'END'
#include <iostream>
#include <heddle/machine.hpp>
int main() { std::cout << heddle::Machine::uniform(3, {"gpu"}, {1e-6, 1e9}); }
END
printf '#define HEDDLE_IMPLEMENTATION\n#include <heddle/machine.hpp>\n' > all.cpp
printf '#define HEDDLE_IMPLEMENTATION_MACHINE\n#include <heddle/machine.hpp>\n' > machine.cpp
printf '#define HEDDLE_IMPLEMENTATION_CORE\n#include <heddle/core.hpp>\n' > core.cpp
for unit in main all machine core; do compile -c $unit.cpp & done
wait

compile main.o all.o -o by_one || fail "one source of definitions does not serve"
compile main.o machine.o core.o -o by_rooms || fail "a source for each room does not serve"
compile -DHEDDLE_HEADER_ONLY=1 main.cpp -o inline || fail "inline definitions do not serve"
for program in by_one by_rooms inline; do
  [[ $(./$program) == *"3 x gpu"* ]] || fail "$program prints: $(./$program)"
done
if compile main.o -o none 2> errors; then fail "it links without definitions"; fi
grep -q 'heddle::define_HEDDLE_IMPLEMENTATION_in_one_source_or_link_heddle_core_compiled' errors ||
  fail "the linker does not say what to do: $(head -3 errors)"
if compile main.o machine.o all.o -o twice 2> errors; then fail "two sources may hold one definition"; fi
if nm -C main.o | grep -E ' [TW] heddle::.*Machine::uniform'; then fail "the other source has definitions"; fi
echo "definitions in one source, in a source for each room, and inline"
