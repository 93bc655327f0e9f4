# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by the other scripts: setting up, configuring, building, and the environment of a run.

# nproc believes OMP_NUM_THREADS, which is about programs, not about builds.
jobs=$(env -u OMP_NUM_THREADS nproc)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${HEDDLE_PRESET:-openmp}

# What was compiled in one clone is found in another's build.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}

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
