#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# chroot.sh BUILD [SUITE]...: makes the Debian package heddle-core out of what stands in BUILD, and installs it by
# dpkg in fresh systems of Debian, bookworm and trixie unless given. There a project that finds it by
# find_package() and a program that asks pkg-config are compiled by that system's compiler and run. Needs root,
# mmdebstrap (Debian: apt-get install mmdebstrap) and a source of packages; skipped (77) where one is missing.
set -uo pipefail
build=$1
shift
suites=${*:-bookworm trixie}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
skip() { echo "chroot: skipped: $1"; exit 77; }
for program in cpack mmdebstrap; do command -v $program > /dev/null || skip "there is no $program"; done
[[ $(id -u) == 0 ]] || skip "a system of its own is entered by chroot, which needs root"
. "$here/../../../scripts/debian.sh"
work=$(mktemp -d)
# What a killed mmdebstrap has mounted is not removed.
trap 'rm -rf --one-file-system "$work"' EXIT
# shellcheck disable=SC2086
is_known_debian && open_suites "$work" $suites || skip "$trouble"
failures=0 tested=0
fail() { failures=$((failures + 1)); echo "FAILED: $*"; }

(cd "$build" && cpack -G DEB -B "$work/made" -D CPACK_COMPONENTS_ALL=core -D CPACK_DEBIAN_COMPRESSION_TYPE=none) \
  > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
package=$(echo "$work"/made/heddle-core_*.deb)

for suite in $suites; do
  system=$work/$suite
  grep " $suite main" "$work/sources.list" > "$work/$suite.list"
  if ! mmdebstrap --mode=root --variant=apt --include=g++,cmake,make,pkg-config \
         --aptopt='APT::Install-Recommends "false"' "$suite" "$system" "$work/$suite.list" > "$work/log" 2>&1; then
    echo "chroot: skipped: there is no system of $suite: $(tail -3 "$work/log")"
    continue
  fi
  before=$failures
  tested=$((tested + 1))
  inside() { chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"; }
  mkdir "$system/project"
  cp "$package" "$here"/{CMakeLists.txt,main.cpp} "$system/project/"
  inside dpkg -i "/project/$(basename "$package")" > "$work/log" 2>&1 || fail "$suite: dpkg -i: $(cat "$work/log")"
  if inside sh -c 'cmake -S /project -B /project/build && cmake --build /project/build' > "$work/log" 2>&1; then
    said=$(inside /project/build/consumer)
    [[ $said == "1F1B P=3 M=4: "*" actions" ]] || fail "$suite: the program of find_package() says '$said'"
  else
    fail "$suite: find_package(): $(tail -20 "$work/log")"
  fi
  if inside sh -c 'g++ -std=c++20 /project/main.cpp $(pkg-config --cflags --libs heddle-core-compiled) -o /project/program' \
       > "$work/log" 2>&1; then
    said=$(inside /project/program)
    [[ $said == "1F1B P=3 M=4: "*" actions" ]] || fail "$suite: the program of pkg-config says '$said'"
  else
    fail "$suite: pkg-config: $(tail -20 "$work/log")"
  fi
  inside dpkg -r heddle-core > "$work/log" 2>&1 || fail "$suite: dpkg -r: $(cat "$work/log")"
  [[ ! -e $system/usr/include/heddle ]] || fail "$suite: dpkg -r leaves /usr/include/heddle"
  ((failures > before)) || echo "$suite: heddle-core is installed, used by find_package() and pkg-config, and removed" \
    "($(inside g++ -dumpfullversion), $(inside cmake --version | head -1))"
  rm -rf "$system"
done
((tested > 0)) || skip "there was no system to test in"
exit $((failures > 0))
