# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by the other scripts: setting up, configuring, building, and the environment of a run.

# nproc believes OMP_NUM_THREADS, which is about programs, not about builds.
jobs=$(env -u OMP_NUM_THREADS nproc)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${HEDDLE_PRESET:-openmp}

# What was compiled in one clone is found in another's build.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
# A new source is not preprocessed before it is compiled, only to look for it in the cache.
export CCACHE_DEPEND=${CCACHE_DEPEND-1}

# use_memory: g++ spends a fifth of its time on collecting garbage. It does not do so where the machine, or the
# control group, has 3.5 GB for each compiler. CMake reads CXXFLAGS when a build folder is new.
use_memory() {
  local memory limit version
  memory=$(awk '$1 == "MemTotal:" { print int($2 / 1000) }' /proc/meminfo 2> /dev/null || true)
  limit=$(cat /sys/fs/cgroup/memory.max 2> /dev/null || true)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1000000 < ${memory:-0})); then memory=$((limit / 1000000)); fi
  version=$(${CXX:-g++} --version 2> /dev/null || true)
  if [[ ${CXXFLAGS-} != *ggc-min-heapsize* && $version == *"Free Software Foundation"* ]] &&
     ((${memory:-0} >= 3500 * jobs)); then
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
  case $preset in clang | fuzz | cuda | gpu | hip) ;; *) use_memory ;; esac
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
