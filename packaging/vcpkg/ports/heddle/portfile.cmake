# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Not run by vcpkg yet; see packaging/README.md. The source is the working copy that this port stands in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
                     FEATURES
                     tools HEDDLE_TOOLS
                     INVERTED_FEATURES
                     full CMAKE_DISABLE_FIND_PACKAGE_Kokkos
                     full CMAKE_DISABLE_FIND_PACKAGE_MPI
                     json CMAKE_DISABLE_FIND_PACKAGE_nlohmann_json)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
                      OPTIONS ${FEATURE_OPTIONS} -DHEDDLE_COMPILED=ON -DHEDDLE_TESTS=OFF
                              -DHEDDLE_EXAMPLES=OFF -DHEDDLE_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/heddle)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES heddle-elastic heddle-memory heddle-mpigen heddle-plan heddle-race heddle-schedule
                   AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
