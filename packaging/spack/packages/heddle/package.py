# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Not run by Spack yet; see packaging/README.md.
import os

from spack.package import *


class Heddle(CMakePackage):
    """Parallel patterns as data, on Kokkos and MPI: schedules, simulator and executor."""

    license("Apache-2.0 WITH LLVM-exception")

    # The working copy that this recipe stands in. A release names an archive here.
    version("0.1.0", git="file://" + os.path.realpath(os.path.join(os.path.dirname(__file__), "../../../..")))

    variant("full", default=True, description="heddle::heddle, on Kokkos and MPI")
    variant("compiled", default=True, description="Compile the definitions once, as libraries")
    variant("json", default=True, when="+compiled", description="Files of profiles, machines and plans")
    variant("tools", default=False, when="+compiled", description="The programs heddle-schedule and others")
    variant("blas", default=True, when="+full", description="Multiply matrices by a BLAS")

    depends_on("cxx", type="build")
    depends_on("cmake@3.23:", type="build")
    depends_on("kokkos@4.6:5 cxxstd=20", when="+full")
    depends_on("mpi@3:", when="+full")
    depends_on("blas", when="+blas")
    depends_on("nlohmann-json@3.10:", when="+json")
    depends_on("cli11@2:", type="build", when="+tools")

    conflicts("%gcc@:12.1", msg="Heddle needs C++20: g++ 12.2 or later")
    conflicts("%clang@:15", msg="Heddle needs C++20: clang 16 or later")

    def cmake_args(self):
        def absent(package, wanted):
            return self.define("CMAKE_DISABLE_FIND_PACKAGE_" + package, not self.spec.satisfies(wanted))

        return [
            self.define("HEDDLE_TESTS", False),
            self.define("HEDDLE_EXAMPLES", False),
            self.define("HEDDLE_BENCHMARKS", False),
            self.define_from_variant("HEDDLE_COMPILED", "compiled"),
            self.define_from_variant("HEDDLE_TOOLS", "tools"),
            absent("Kokkos", "+full"),
            absent("MPI", "+full"),
            absent("CBLAS", "+blas"),
            absent("nlohmann_json", "+json"),
        ]
