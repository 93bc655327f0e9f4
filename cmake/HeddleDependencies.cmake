# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Looks for what heddle::heddle stands on and says what it found:
#   HEDDLE_ABSENT               the required packages that are missing, as text; empty when none is
#   HEDDLE_HAS_*                the optional packages that are there
#   HEDDLE_KOKKOSKERNELS_TARGET the name of Kokkos Kernels' target: its own, or the one of Trilinos
#   HEDDLE_NCCL_TARGET          that of NCCL, or of RCCL where Kokkos runs on AMD's devices
#   HEDDLE_{KOKKOS,MPI,CBLAS,KOKKOSKERNELS,NCCL,JSON,CBC}_STATE   a phrase each, for the summary
# Stops where Kokkos lacks the device that HEDDLE_DEVICE asks for.
# A target that the enclosing project has made already (FetchContent, a submodule) is taken as is.

set(missing)

if(NOT TARGET Kokkos::kokkos)
  # Kokkos says that a major version is compatible only with itself, so ask for each in turn.
  foreach(version 5.0 4.6)
    if(NOT Kokkos_FOUND)
      find_package(Kokkos ${version} QUIET CONFIG)
    endif()
  endforeach()
endif()
if(TARGET Kokkos::kokkos)
  set(HEDDLE_KOKKOS_MINIMUM 5.0)
  if(Kokkos_VERSION VERSION_LESS 5.0)
    set(HEDDLE_KOKKOS_MINIMUM 4.6)
  endif()
  string(REPLACE ";" ", " devices "${Kokkos_DEVICES}")
  set(HEDDLE_KOKKOS_STATE "${Kokkos_VERSION} (${devices})")
else()
  set(HEDDLE_KOKKOS_STATE "not found")
  if(Kokkos_CONSIDERED_VERSIONS)
    string(APPEND HEDDLE_KOKKOS_STATE " (too old: ${Kokkos_CONSIDERED_VERSIONS})")
  endif()
  list(APPEND missing "Kokkos >= 4.6 (tested with 5.0 to 5.2)")
endif()
if(HEDDLE_DEVICE AND NOT HEDDLE_DEVICE IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "Heddle: this build needs a Kokkos with the device ${HEDDLE_DEVICE}, and Kokkos "
                      "is ${HEDDLE_KOKKOS_STATE}. Name one that has it in CMAKE_PREFIX_PATH or "
                      "Kokkos_ROOT.")
endif()

# The C++ bindings that MPI removed in 2012 would only add warnings and link time.
set(MPI_CXX_SKIP_MPICXX TRUE)
if(NOT TARGET MPI::MPI_CXX)
  set(MPI_DETERMINE_LIBRARY_VERSION TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(TARGET MPI::MPI_CXX)
  string(REGEX MATCH "^[^,\n]*" HEDDLE_MPI_STATE "${MPI_CXX_LIBRARY_VERSION_STRING}")
  string(REGEX REPLACE "[: \t]+" " " HEDDLE_MPI_STATE "${HEDDLE_MPI_STATE}")
  string(APPEND HEDDLE_MPI_STATE " (standard ${MPI_CXX_VERSION})")
else()
  set(HEDDLE_MPI_STATE "not found")
  list(APPEND missing "MPI")
endif()
list(JOIN missing " and " HEDDLE_ABSENT)

# heddle::json needs no Kokkos and no MPI, only nlohmann_json, a library of headers.
set(HEDDLE_HAS_JSON FALSE)
set(HEDDLE_JSON_STATE "none (nlohmann_json not found)")
if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(nlohmann_json 3.10 QUIET CONFIG)
endif()
if(TARGET nlohmann_json::nlohmann_json)
  set(HEDDLE_HAS_JSON TRUE)
  set(HEDDLE_JSON_STATE "by nlohmann_json ${nlohmann_json_VERSION} (target heddle::json)")
endif()

# heddle::cbc: linear and integer programs by COIN-OR's libraries, for those who ask for them.
set(HEDDLE_HAS_CBC FALSE)
set(HEDDLE_CBC_STATE "Heddle's own (Cbc not found)")
find_package(CBC QUIET MODULE)
if(TARGET CBC::CBC)
  set(HEDDLE_HAS_CBC TRUE)
  set(HEDDLE_CBC_STATE "Heddle's own, and Cbc ${CBC_VERSION} (target heddle::cbc)")
endif()

# Below the line of what is required: optional, and pointless without the rest.
set(HEDDLE_HAS_CBLAS FALSE)
set(HEDDLE_CBLAS_STATE "not found (Heddle's own gemm)")
set(HEDDLE_HAS_DEVICE_BLAS FALSE)
set(HEDDLE_HAS_KOKKOSKERNELS FALSE)
set(HEDDLE_KOKKOSKERNELS_STATE "not found")
set(HEDDLE_HAS_NCCL FALSE)
set(HEDDLE_NCCL_STATE "not found")
if(HEDDLE_ABSENT STREQUAL "")
  find_package(CBLAS QUIET MODULE)
  if(TARGET CBLAS::CBLAS)
    set(HEDDLE_HAS_CBLAS TRUE)
    set(HEDDLE_CBLAS_STATE "${CBLAS_LIBRARY}")
  endif()
  find_package(DeviceBLAS QUIET MODULE)
  if(TARGET DeviceBLAS::DeviceBLAS)
    set(HEDDLE_HAS_DEVICE_BLAS TRUE)
    string(APPEND HEDDLE_CBLAS_STATE "; on devices ${DeviceBLAS_TARGET} ${DeviceBLAS_VERSION}")
  endif()
  find_package(KokkosKernels QUIET CONFIG)
  foreach(target Kokkos::kokkoskernels KokkosKernels::all_libs)
    if(TARGET ${target} AND NOT HEDDLE_HAS_KOKKOSKERNELS)
      set(HEDDLE_HAS_KOKKOSKERNELS TRUE)
      set(HEDDLE_KOKKOSKERNELS_TARGET ${target})
      set(HEDDLE_KOKKOSKERNELS_STATE "found as ${target} ${KokkosKernels_VERSION}")
    endif()
  endforeach()
  if(Kokkos_ENABLE_HIP)
    find_package(rccl QUIET CONFIG)
    set(HEDDLE_NCCL_TARGET roc::rccl)
    set(version "RCCL ${rccl_VERSION}")
  else()
    find_package(NCCL QUIET MODULE)
    set(HEDDLE_NCCL_TARGET NCCL::NCCL)
    set(version "${NCCL_VERSION}")
  endif()
  if(TARGET ${HEDDLE_NCCL_TARGET})
    set(HEDDLE_HAS_NCCL TRUE)
    set(HEDDLE_NCCL_STATE "${version} (target heddle::nccl)")
  endif()
endif()
