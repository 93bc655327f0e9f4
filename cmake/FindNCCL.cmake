# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Finds NCCL and the CUDA run-time library that it needs: target NCCL::NCCL, variables NCCL_FOUND,
# NCCL_LIBRARY, NCCL_INCLUDE_DIR, NCCL_VERSION. Set NCCL_ROOT or CUDAToolkit_ROOT to point at them. Debian has
# it as libnccl-dev, NVIDIA's images in the folder of the CUDA toolkit.

set(hints "${CUDAToolkit_ROOT}" "$ENV{CUDA_HOME}" /usr/local/cuda)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${hints} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY nccl HINTS ${hints} PATH_SUFFIXES lib lib64)
find_path(NCCL_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ${hints} PATH_SUFFIXES include)
find_library(NCCL_CUDART_LIBRARY cudart HINTS ${hints} PATH_SUFFIXES lib64 lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY NCCL_CUDA_INCLUDE_DIR NCCL_CUDART_LIBRARY)

if(NCCL_INCLUDE_DIR)
  set(NCCL_VERSION)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" line REGEX "^#define NCCL_${part} [0-9]+")
    string(REGEX REPLACE "[^0-9]" "" number "${line}")
    list(APPEND NCCL_VERSION "${number}")
  endforeach()
  list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR NCCL_CUDART_LIBRARY NCCL_CUDA_INCLUDE_DIR
  VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES
    IMPORTED_LOCATION "${NCCL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR};${NCCL_CUDA_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${NCCL_CUDART_LIBRARY}")
endif()
