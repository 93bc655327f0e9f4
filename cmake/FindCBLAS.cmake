# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Finds a BLAS with the C interface (cblas.h): target CBLAS::CBLAS, variables CBLAS_FOUND,
# CBLAS_LIBRARY, CBLAS_INCLUDE_DIR. Set CBLAS_ROOT to point at one.
# OpenBLAS built on OpenMP comes first: it shares its threads with Kokkos, where the pthread build
# would start a second set of them on the same cores.

set(builds openblas-openmp blis-openmp openblas-serial openblas openblas-pthread)
find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES ${builds})
find_library(CBLAS_LIBRARY NAMES openblas blis cblas NAMES_PER_DIR PATH_SUFFIXES ${builds})
mark_as_advanced(CBLAS_INCLUDE_DIR CBLAS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_LIBRARY CBLAS_INCLUDE_DIR)
if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS UNKNOWN IMPORTED)
  set_target_properties(CBLAS::CBLAS PROPERTIES
    IMPORTED_LOCATION "${CBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CBLAS_INCLUDE_DIR}")
endif()
