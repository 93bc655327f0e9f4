# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Finds COIN-OR's Cbc and the Clp that it uses, with their C interfaces: target CBC::CBC, variables
# CBC_FOUND, CBC_LIBRARY, CBC_CLP_LIBRARY, CBC_INCLUDE_DIR, CBC_VERSION. Set CBC_ROOT to point at them. Debian
# has them as coinor-libcbc-dev.

find_path(CBC_INCLUDE_DIR coin/Cbc_C_Interface.h)
find_path(CBC_CLP_INCLUDE_DIR coin/Clp_C_Interface.h)
find_library(CBC_LIBRARY CbcSolver)
find_library(CBC_CLP_LIBRARY Clp)
mark_as_advanced(CBC_INCLUDE_DIR CBC_CLP_INCLUDE_DIR CBC_LIBRARY CBC_CLP_LIBRARY)

if(CBC_INCLUDE_DIR AND EXISTS "${CBC_INCLUDE_DIR}/coin/CbcConfig.h")
  file(STRINGS "${CBC_INCLUDE_DIR}/coin/CbcConfig.h" CBC_VERSION REGEX "^#define CBC_VERSION ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" CBC_VERSION "${CBC_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CBC
  REQUIRED_VARS CBC_LIBRARY CBC_INCLUDE_DIR CBC_CLP_LIBRARY CBC_CLP_INCLUDE_DIR
  VERSION_VAR CBC_VERSION)
if(CBC_FOUND AND NOT TARGET CBC::CBC)
  add_library(CBC::CBC UNKNOWN IMPORTED)
  set_target_properties(CBC::CBC PROPERTIES
    IMPORTED_LOCATION "${CBC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CBC_INCLUDE_DIR};${CBC_CLP_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${CBC_CLP_LIBRARY}")
endif()
