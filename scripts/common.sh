# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by the other scripts: setting up, configuring, building, and the environment of a run.

# nproc believes OMP_NUM_THREADS, which is about programs, not about builds.
jobs=$(env -u OMP_NUM_THREADS nproc)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${HEDDLE_PRESET:-openmp}

# Sets up, and configures the preset. Its messages go to standard error.
configure() {
  local prefix toolchain cache=$root/build/$preset/CMakeCache.txt
  prefix=$("$root/scripts/setup" | tail -1)
  if [[ -n $prefix ]]; then
    export CMAKE_TOOLCHAIN_FILE=$prefix/toolchain.cmake
    # CMake cannot change the toolchain of a build folder, so one with another is begun afresh.
    if [[ -e $cache ]]; then
      toolchain=$(sed -n 's/^CMAKE_TOOLCHAIN_FILE:[A-Z]*=//p' "$cache")
      if [[ $toolchain != "$CMAKE_TOOLCHAIN_FILE" ]]; then rm -rf "$cache" "${cache%/*}/CMakeFiles"; fi
    fi
  fi
  (cd "$root" && cmake --preset "$preset") >&2
}

# build [targets...]
build() {
  local targets=()
  if (($# > 0)); then targets=(--target "$@"); fi
  (cd "$root" && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}") >&2
}

# What a variable of the configured build holds.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$root/build/$preset/CMakeCache.txt"; }

# The environment of programs on ranks: root and more ranks than cores are fine, a waiting rank gives
# its core away, one thread a rank. For Open MPI 4 and 5; other MPIs need nothing.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export KOKKOS_DISABLE_WARNINGS=true  # of ranks that share cores, which is meant here
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_PROC_BIND=${OMP_PROC_BIND:-false}
