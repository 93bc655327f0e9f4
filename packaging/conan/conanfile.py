# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# packaging/README.md says with which options Conan has run it.
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Heddle(ConanFile):
    name = "heddle"
    version = "0.1.0"
    description = "Parallel patterns as data, on Kokkos and MPI: schedules, simulator and executor"
    license = "Apache-2.0 WITH LLVM-exception"
    settings = "os", "compiler", "build_type", "arch"
    options = {"full": [True, False], "json": [True, False], "tools": [True, False]}
    default_options = {"full": False, "json": True, "tools": False}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "tools/*", "examples/common/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.full:  # the MPI is the system's
            self.requires("kokkos/[>=4.6 <6]", transitive_headers=True, transitive_libs=True)
        if self.options.json:
            self.requires("nlohmann_json/[>=3.10 <4]")
        if self.options.tools:
            self.requires("cli11/[>=2 <3]")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables["HEDDLE_" + option] = False
        toolchain.cache_variables["HEDDLE_COMPILED"] = True
        toolchain.cache_variables["HEDDLE_TOOLS"] = bool(self.options.tools)
        for package, wanted in (
            ("Kokkos", self.options.full),
            ("MPI", self.options.full),
            ("nlohmann_json", self.options.json),
        ):
            toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_" + package] = not wanted
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):  # the CMake files that are installed say all of it
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("share", "cmake", "heddle"))
