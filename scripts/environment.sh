# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# The environment of programs on ranks: root and more ranks than cores are fine, a waiting rank gives
# its core away, one thread a rank. For Open MPI 4 and 5; other MPIs need nothing.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export KOKKOS_DISABLE_WARNINGS=true  # of ranks that share cores, which is meant here
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_PROC_BIND=${OMP_PROC_BIND:-false}
export HEDDLE_ATHREAD_HOST_THREADS=${HEDDLE_ATHREAD_HOST_THREADS:-1}  # that play a rank's core group
