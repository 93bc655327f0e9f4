# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# `cpack -G DEB` in a build folder makes two packages of what is built there (docs/decisions/0091):
#   heddle-core   heddle::core, heddle::core_compiled and heddle::json, the CMake and pkg-config files, the
#                 programs that need no MPI, and libheddle_malloc.so
#   heddle-full   the rest: heddle::memory, heddle::heddle, heddle::compiled, heddle-measure and
#                 libheddle_mpi.so
# The CMake files of heddle-core name what the build had. Without heddle-full, find_package() says that
# the component heddle is not installed. Kokkos is no dependency of the package heddle-full, because it may
# come from anywhere: find_package() finds it, or says what is missing.
set(CPACK_PACKAGE_NAME heddle)
set(CPACK_PACKAGE_CONTACT "The Heddle contributors")
set(CPACK_PACKAGE_VENDOR "The Heddle contributors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${HEDDLE_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL core)
if(TARGET heddle::memory)
  list(APPEND CPACK_COMPONENTS_ALL full)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # by dpkg-shlibdeps, of Debian's dpkg-dev
set(CPACK_DEBIAN_CORE_PACKAGE_NAME heddle-core)
set(CPACK_DEBIAN_FULL_PACKAGE_NAME heddle-full)
set(CPACK_DEBIAN_FULL_PACKAGE_DEPENDS "heddle-core (= ${HEDDLE_VERSION})")
set(CPACK_COMPONENT_CORE_DESCRIPTION
    "Schedules, simulator, traces and executor of Heddle, and its programs. They need neither Kokkos nor MPI.")
set(CPACK_COMPONENT_FULL_DESCRIPTION
    "Heddle on Kokkos and MPI: kernels, collectives and pipelines over ranks. It needs Kokkos 4.6 or newer.")
include(CPack)
