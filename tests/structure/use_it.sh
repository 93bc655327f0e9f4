#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# use_it.sh ROOT BUILD CMAKE TARGET: does what the README's section "Use it" says, in an empty environment: the
# commands of its block in the language of the shell, where build/openmp is BUILD. If TARGET is not
# core_compiled, it stands in the place of core_compiled, as the guide allows, and heddle.hpp in the place
# of heddle_core.hpp if the target has all rooms.
set -euo pipefail
root=$1
build=$2
cmake=$3
target=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/build" "$work/examples"
cp -r "$root/examples/consume_readme" "$work/examples"
ln -s "$build" "$work/build/openmp"
sed -i "s/core_compiled/$target/" "$work/examples/consume_readme/CMakeLists.txt"
if [[ $target == heddle || $target == compiled ]]; then
  sed -i 's/heddle_core[.]hpp/heddle.hpp/' "$work/examples/consume_readme/main.cpp"
fi
awk '/^## / { on = $0 == "## Use it" } on && /^```sh/ { open = 1; next } /^```/ { open = 0 } open' \
  "$root/README.md" > "$work/commands"
grep -q 'cmake --install' "$work/commands" || { echo "the section has no commands"; exit 1; }
(cd "$work" && env -i HOME="$work/home" PATH="$(dirname "$cmake"):/usr/bin:/bin" bash -euo pipefail commands) \
  > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for line in '1F1B P=2 M=4: 2 ranks, 26 actions' 'rank 1  .   1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 .' \
  '1F1B P=2 M=4: makespan 15 s, bubble ratio 20%'; do
  grep -qF "$line" "$work/log" || { echo "the program does not print: $line"; cat "$work/log"; exit 1; }
done
echo "built with $target, and run: $(grep -c '^' "$work/commands") lines of the README"
