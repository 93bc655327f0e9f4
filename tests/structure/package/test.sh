#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh BUILD CXX [COMPONENT]...: makes the Debian packages of the components, "core" unless given, out of
# what stands in BUILD, unpacks them in a fresh root, and uses them there: a project by find_package(),
# a program by pkg-config, the installed programs. Status 77 where this is not Debian.
set -uo pipefail
build=$1
cxx=$2
shift 2
components=${*:-core}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for program in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $program > /dev/null || { echo "skipped: there is no $program"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root/usr
failures=0
fail() { failures=$((failures + 1)); echo "FAILED: $*"; }

# Released packages are compressed, which takes longer.
(cd "$build" && cpack -G DEB -B "$work/packages" -D "CPACK_COMPONENTS_ALL=${components// /;}" \
   -D CPACK_DEBIAN_COMPRESSION_TYPE=none) > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for component in $components; do
  package=$(echo "$work"/packages/heddle-"$component"_*.deb)
  [[ -e $package ]] || { fail "there is no package heddle-$component"; continue; }
  dpkg-deb -x "$package" "$work/root"
  dpkg-deb -f "$package" Depends > "$work/$component.depends"
  dpkg-deb -c "$package" | awk '$1 !~ /^d/ { print $6 }' | sort > "$work/$component.files"
  grep -q 'libc6 (>=' "$work/$component.depends" ||
    fail "heddle-$component depends on $(cat "$work/$component.depends")"
done

# Each file is in one package; headers of rooms that need Kokkos or MPI are not in heddle-core.
has() { grep -qxF "./usr/$2" "$work/$1.files" || fail "heddle-$1 lacks $2"; }
lacks() { ! grep -qE "^\./usr/$2" "$work/$1.files" || fail "heddle-$1 has $2"; }
for file in include/heddle/schedule.hpp include/heddle/core/version.hpp lib/libheddle_core_compiled.a \
  lib/libheddle_malloc.so bin/heddle-schedule lib/pkgconfig/heddle-core.pc share/licenses/heddle/LICENSE \
  share/doc/heddle-core/copyright \
  share/cmake/heddle/heddle-config.cmake share/cmake/heddle/heddle-core.cmake; do
  has core $file
done
for file in include/heddle/pipeline include/heddle/kernel lib/libheddle_mpi share/cmake/heddle/heddle-heddle; do
  lacks core $file
done
whole=FALSE
if [[ " $components " == *" full "* ]]; then
  whole=TRUE
  grep -qE 'heddle-core \(= [0-9.]+\)' "$work/full.depends" || fail "heddle-full depends on no heddle-core"
  for file in include/heddle/pipeline.hpp lib/libheddle_compiled.a lib/libheddle_mpi.so bin/heddle-measure \
    share/doc/heddle-full/copyright share/cmake/heddle/heddle-heddle.cmake; do
    has full $file
  done
  both=$(comm -12 "$work/core.files" "$work/full.files")
  [[ -z $both ]] || fail "in both packages: $both"
fi

# A project of its own, which finds nothing of Heddle elsewhere. CMAKE_TOOLCHAIN_FILE tells where Kokkos is.
if cmake -S "$here" -B "$work/consumer" "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_PREFIX_PATH=$root" \
     > "$work/log" 2>&1 && cmake --build "$work/consumer" >> "$work/log" 2>&1; then
  said=$("$work/consumer/consumer")
  [[ $said == "1F1B P=3 M=4: "*" actions" ]] || fail "the consumer says: $said"
  grep -q "^heddle_DIR:PATH=$root/" "$work/consumer/CMakeCache.txt" || fail "another Heddle was found"
  if [[ $whole == FALSE ]]; then
    grep -q "found 'FALSE' this installation of heddle has no component 'heddle'" "$work/log" ||
      fail "without heddle-full: $(grep found "$work/log")"
  elif [[ -n ${CMAKE_TOOLCHAIN_FILE-} ]]; then
    grep -q "heddle::heddle: found 'TRUE'" "$work/log" || fail "with heddle-full: $(cat "$work/log")"
  fi
else
  fail "a project cannot use the package: $(cat "$work/log")"
fi

# pkg-config: the headers of a line, and a program that links the compiled definitions.
if command -v pkg-config > /dev/null; then
  export PKG_CONFIG_LIBDIR=$root/lib/pkgconfig PKG_CONFIG_PATH=
  version=$(sed -n 's/^#define HEDDLE_VERSION_[A-Z]* //p' "$root/include/heddle/core/version.hpp" | paste -sd .)
  [[ $(pkg-config --modversion heddle-core) == "$version" ]] || fail "heddle-core.pc is not of $version"
  echo '#include <heddle/core/version.hpp>' > "$work/line.cpp"
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 -fsyntax-only $(pkg-config --cflags heddle-core) "$work/line.cpp" ||
    fail "pkg-config --cflags heddle-core: $(pkg-config --cflags heddle-core)"
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 "$here/main.cpp" $(pkg-config --cflags --libs heddle-core-compiled) -o "$work/program" &&
    [[ $("$work/program") == "1F1B P=3 M=4: "* ]] || fail "pkg-config --libs heddle-core-compiled"
else
  echo "pkg-config is not installed: the .pc files are not tried"
fi

"$root/bin/heddle-schedule" show 1f1b > "$work/shown" 2>&1 || fail "heddle-schedule: $(cat "$work/shown")"
grep -q 'makespan 33, bubble ratio 27.3%' "$work/shown" || fail "heddle-schedule shows $(cat "$work/shown")"
[[ $("$root/bin/heddle-schedule" show 2>&1) == *"heddle-schedule show --help says"* ]] ||
  fail "heddle-schedule does not know its name"
LD_PRELOAD=$root/lib/libheddle_malloc.so HEDDLE_MALLOC_REPORT=1 ls "$root" > "$work/listed" 2>&1 ||
  fail "libheddle_malloc.so: $(cat "$work/listed")"
((failures == 0)) && echo "packages of $components: installed and used"
exit $((failures > 0))
