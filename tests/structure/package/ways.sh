#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# ways.sh ROOT BUILD CXX: three ways to heddle::core for a project of one's own, without Kokkos and MPI:
# add_subdirectory() of the sources, FetchContent of a clone (left out without git), and an installation of BUILD
# that was moved. No text file that is installed may name ROOT, BUILD or the folder that it was installed to.
set -uo pipefail
root=$1
build=$2
cxx=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { failures=$((failures + 1)); echo "FAILED: $*"; }
unset CMAKE_TOOLCHAIN_FILE CMAKE_PREFIX_PATH

use() {  # use NAME PROJECT OPTIONS...: the project is built, and its program says what it should
  local name=$1 project=$2
  shift 2
  if cmake -S "$project" -B "$work/$name" "-DCMAKE_CXX_COMPILER=$cxx" -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON \
       -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON "$@" > "$work/log" 2>&1 &&
     cmake --build "$work/$name" --target consumer >> "$work/log" 2>&1; then
    local said
    said=$("$work/$name/consumer")
    [[ $said == "1F1B P=3 M=4: "*" actions" ]] || fail "$name: the program says '$said'"
  else
    fail "$name: $(tail -20 "$work/log")"
  fi
}

# A project that takes the sources in writes nothing into them, so it may take this folder itself.
use subdirectory "$here/source" "-DFOLDER=$root"

# The repository as it is here, also with changes that nobody has committed, under the tag that examples/consume_fetchcontent names.
if command -v git > /dev/null; then
  mkdir "$work/repository"
  copied() { (cd "$root" && if [[ -e .git ]]; then git ls-files -z --cached --others --exclude-standard; else find . -type f -not -path './build/*' -print0; fi); }
  copied | (cd "$root" && xargs -0 ls -d 2> /dev/null | tar -cf - --files-from=-) | tar -xf - -C "$work/repository"
  (cd "$work/repository" && git init -q && git add -A && git -c user.name=n -c user.email=e commit -qm all && git tag v0.1.0) ||
    fail "the sources cannot be committed"
  use clone "$here/source" "-DREPOSITORY=file://$work/repository"
else
  echo "skipped: a clone, because there is no git"
fi

# Installed, then moved.
cmake --install "$build" --component core --prefix "$work/first" > "$work/log" 2>&1 || fail "$(tail -5 "$work/log")"
named=$(grep -rIlF -e "$root" -e "$build" -e "$work" "$work/first")
[[ -z $named ]] || fail "files that are installed name folders of this machine: $named"
mv "$work/first" "$work/moved"
use relocated "$here" "-DCMAKE_PREFIX_PATH=$work/moved"
grep -q "^heddle_DIR:PATH=$work/moved/" "$work/relocated/CMakeCache.txt" || fail "another Heddle was found"
((failures == 0)) && echo "used as sources, as a clone if there is git, and as an installation that was moved"
exit $((failures > 0))
