# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by the other scripts: setting up, configuring, building, and the environment of a run.

# nproc believes OMP_NUM_THREADS, which is about programs, not about builds.
jobs=$(env -u OMP_NUM_THREADS nproc)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${HEDDLE_PRESET:-openmp}

# What was compiled in one clone is found in another's build.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
# And what was not compiled yet is not preprocessed to look for it.
export CCACHE_DEPEND=1

# use_memory: g++ collects its garbage for a fifth of its time. It need not where every compiler may have 3.5 GB.
# CMake reads CXXFLAGS when a build folder is new.
use_memory() {
  local free
  free=$(awk '$1 == "MemAvailable:" { print int($2 / 1000) }' /proc/meminfo 2> /dev/null || true)
  if [[ ${CXXFLAGS-} != *ggc-min-heapsize* ]] && ((${free:-0} >= 3500 * jobs)) &&
     "${CXX:-g++}" --version 2> /dev/null | grep -q 'Free Software Foundation'; then
    export CXXFLAGS="${CXXFLAGS-} --param=ggc-min-heapsize=3000000"
  fi
}

# Sets up, and configures the preset, with the options in HEDDLE_CMAKE. Its messages go to standard error.
configure() {
  local prefix toolchain device=() wanted=() cache=$root/build/$preset/CMakeCache.txt
  case $preset in
    serial-kernels | bench-serial) device=(serial) ;;
    gpu) device=(cuda) ;;
    cuda | hip | clang) device=("$preset") ;;
    fuzz) device=(clang) ;;
  esac
  prefix=$("$root/scripts/setup" "${device[@]}" | tail -1)
  case $preset in openmp | serial-kernels | athread) use_memory ;; esac
  if [[ -n $prefix ]]; then
    wanted=(CMAKE_TOOLCHAIN_FILE="$prefix/toolchain.cmake")  # not exported: it is this preset's only
    # CMake cannot change the toolchain of a build folder, so one with another is begun afresh.
    if [[ -e $cache ]]; then
      toolchain=$(sed -n 's/^CMAKE_TOOLCHAIN_FILE:[A-Z]*=//p' "$cache")
      if [[ $toolchain != "$prefix/toolchain.cmake" ]]; then rm -rf "$cache" "${cache%/*}/CMakeFiles"; fi
    fi
  fi
  (cd "$root" && env "${wanted[@]}" cmake --preset "$preset" ${HEDDLE_CMAKE-}) >&2
}

# build [targets...]
build() {
  local targets=()
  if (($# > 0)); then targets=(--target "$@"); fi
  (cd "$root" && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}") >&2
}

# What a variable of the configured build holds.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$root/build/$preset/CMakeCache.txt"; }

. "$root/scripts/environment.sh"
