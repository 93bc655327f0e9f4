// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

// blas_library() names the library that gemm() calls, and hints at core types with wider vectors.

#include <map>
#include <string>
#include <type_traits>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/kernel/blas_library.hpp>
#include <heddle/kernel/linalg.hpp>

#include "support.hpp"

namespace test_blas_library {

using namespace kernel_test;

namespace {

/// The functions of a BLAS that does not exist, by name.
using Functions = std::map<std::string, void*>;

/// Returns what a BLAS with these functions says of itself.
hk::BlasLibrary of(const Functions& functions) {
  return hk::impl::describe_blas(
      [&](const std::string& name) {
        const auto found = functions.find(name);
        return found == functions.end() ? nullptr : found->second;
      },
      true, false);
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

constexpr const char* dynamic = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell";

}  // namespace

TEST_CASE("OpenBLAS tells its version and core, and AVX-512 is a hint for old cores only") {
  using hk::impl::describe_openblas;
  CHECK(describe_openblas(dynamic, "Haswell", true, false) ==
        hk::BlasLibrary{"OpenBLAS", "0.3.21", "Haswell", "SkylakeX"});
  CHECK(describe_openblas(dynamic, "Zen", true, false).newer_core == "SkylakeX");
  INFO("no hint: the processor lacks AVX-512, the user has chosen, the kernels use it already");
  CHECK(describe_openblas(dynamic, "Haswell", false, false).newer_core.empty());
  CHECK(describe_openblas(dynamic, "Haswell", true, true).newer_core.empty());
  for (const char* const core : {"SkylakeX", "Cooperlake", "Sapphirerapids", "ARMV8", ""})
    CHECK(describe_openblas(dynamic, core, true, false).newer_core.empty());
  INFO("no hint: a library for one core type does not read OPENBLAS_CORETYPE");
  CHECK(describe_openblas("OpenBLAS 0.3.10 NO_AFFINITY Haswell", "Haswell", true, false) ==
        hk::BlasLibrary{"OpenBLAS", "0.3.10", "Haswell", ""});
  CHECK(describe_openblas("", "", true, false) == hk::BlasLibrary{"OpenBLAS", "", "", ""});
}

TEST_CASE("a BLAS is known by its functions") {
  CHECK(of({{"openblas_get_config", address(+[] { return dynamic; })},
            {"openblas_get_corename", address(+[] { return "Nehalem"; })}}) ==
        hk::BlasLibrary{"OpenBLAS", "0.3.21", "Nehalem", "SkylakeX"});
  CHECK(of({{"openblas_get_config", address(+[] { return dynamic; })}}) ==
        hk::BlasLibrary{"OpenBLAS", "0.3.21", "", ""});
  const Functions blis{
      {"bli_info_get_version_str", address(+[] { return "0.9.0"; })},
      {"bli_arch_query_id", address(+[] { return 5; })},
      {"bli_arch_string", address(+[](int id) { return id == 5 ? "zen3" : "another"; })}};
  CHECK(of(blis) == hk::BlasLibrary{"BLIS", "0.9.0", "zen3", ""});
  CHECK(of({*blis.find("bli_info_get_version_str")}) == hk::BlasLibrary{"BLIS", "0.9.0", "", ""});
  CHECK(of({}) == hk::BlasLibrary{"a BLAS that does not tell its name", "", "", ""});
}

TEST_CASE("a BLAS library is printed in one line") {
  CHECK(heddle::text(hk::BlasLibrary{"OpenBLAS", "0.3.21", "Haswell", "SkylakeX"}) ==
        "OpenBLAS 0.3.21, kernels for Haswell; this processor has AVX-512, try "
        "OPENBLAS_CORETYPE=SkylakeX");
  CHECK(heddle::text(hk::BlasLibrary{"BLIS", "0.9.0", "zen3", ""}) ==
        "BLIS 0.9.0, kernels for zen3");
  CHECK(heddle::text(hk::BlasLibrary{"some", "", "", ""}) == "some");
}

TEST_CASE("the library that gemm() calls here has a name") {
  // The product makes sure that the program needs the library, whatever the linker leaves out.
  const Tensor<double> a(3, 4, "a"), b(4, 5, "b");
  const Tensor<double> c(3, 5, "c");
  hk::gemm(Exec{}, hk::Transpose::no, hk::Transpose::no, 1.0, a.view(), b.view(), 0.0, c.view());
  const hk::BlasLibrary library = hk::blas_library<Exec>();
  INFO(library);
  CHECK(!library.name.empty());
#if defined(HEDDLE_HAS_DEVICE_BLAS)
  if constexpr (std::is_same_v<Exec, hk::impl::DeviceBlasExec>)
    CHECK(library.name == hk::impl::device_blas_name);
#elif defined(HEDDLE_HAS_CBLAS) && !defined(HEDDLE_HAS_KOKKOSKERNELS)
  if constexpr (!hk::runs_on_host<Exec>) {
    CHECK(library.name == "Heddle's team_gemm");
#if defined(OPENBLAS_VERSION)  // by cblas.h
  } else {
    CHECK(library.name == "OpenBLAS");
    CHECK(std::string(openblas_get_config()).find(' ' + library.version + ' ') !=
          std::string::npos);
    CHECK(library.core == openblas_get_corename());
#endif
  }
#endif
}

}  // namespace test_blas_library
