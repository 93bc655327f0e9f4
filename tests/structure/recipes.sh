#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# recipes.sh ROOT: what can be said of ROOT/packaging without running it.
#   - Each HEDDLE_* option that a file there sets is an option of CMakeLists.txt, and each package that one
#     disables is looked for.
#   - The Dockerfile runs the two commands of the README's section "Try it". DOCKERFILELINT, if it is set,
#     is the program of the npm package dockerfilelint, and finds nothing.
set -uo pipefail
root=$1
packaging=$root/packaging
status=0
complain() { echo "$*"; status=1; }

while IFS=: read -r file option; do
  grep -qE "^(option|set)\($option " "$root/CMakeLists.txt" || complain "$file sets $option, which is no option"
done < <(cd "$packaging" && grep -roE 'HEDDLE_[A-Z]+' . | sort -u)
while IFS=: read -r file package; do
  package=${package#CMAKE_DISABLE_FIND_PACKAGE_}
  grep -q "find_package($package " "$root/cmake/HeddleDependencies.cmake" ||
    complain "$file disables $package, which is not looked for"
done < <(cd "$packaging" && grep -roE 'CMAKE_DISABLE_FIND_PACKAGE_[A-Za-z_]*[A-Za-z]' . | sort -u)

wanted=$(awk '/^## Try it/ { on = 1 } on && /^```sh/ { open = 1; next } open && /^```/ { exit } open && /^scripts\// { print $1 }' "$root/README.md")
run=$(sed -nE 's/^RUN (scripts\/.*)/\1/p' "$packaging/docker/Dockerfile")
[[ -n $run && $run == "$wanted" ]] || complain "the Dockerfile runs $run, and the README says $wanted"
if [[ -n ${DOCKERFILELINT-} ]]; then
  found=$(node "$DOCKERFILELINT" "$packaging/docker/Dockerfile" 2>&1) || complain "dockerfilelint: $found"
fi
((status == 0)) && echo "packaging/ names options and commands that there are"
exit $status
