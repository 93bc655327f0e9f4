// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlasLibrary: the library that multiplies matrices, its version and the processor type whose
/// kernels it chose. The library is asked at run time, so programs link with any BLAS.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#if defined(HEDDLE_HAS_KOKKOSKERNELS)
#include <KokkosKernels_config.h>
#endif
#if defined(HEDDLE_HAS_CBLAS) || defined(HEDDLE_HAS_KOKKOSKERNELS)
#include <dlfcn.h>
#endif

#include <heddle/core/text.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// A library that multiplies matrices, as it describes itself.
struct BlasLibrary {
  std::string name;     ///< for example "OpenBLAS"
  std::string version;  ///< for example "0.3.21"; empty if the library does not tell it
  std::string core;     ///< the processor type of its kernels ("Haswell"); empty if not told
  /// A core type for OPENBLAS_CORETYPE that this processor supports and whose kernels use wider
  /// vectors than those of `core`; empty if there is none. Heddle never sets the variable. Measure
  /// before you set it.
  std::string newer_core;

  friend bool operator==(const BlasLibrary&, const BlasLibrary&) = default;
  /// Prints for example "OpenBLAS 0.3.21, kernels for Haswell", and the hint if there is one.
  friend std::ostream& operator<<(std::ostream& out, const BlasLibrary& library) {
    out << library.name;
    if (!library.version.empty()) out << ' ' << library.version;
    if (!library.core.empty()) out << ", kernels for " << library.core;
    if (!library.newer_core.empty())
      out << "; this processor has AVX-512, try OPENBLAS_CORETYPE=" << library.newer_core;
    return out;
  }
};

namespace impl {

/// Returns whether the processor has the parts of AVX-512 that OpenBLAS's SkylakeX kernels use.
[[nodiscard]] inline bool has_avx512() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDA_ARCH__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

/// Returns what OpenBLAS says of itself. `config` is for example "OpenBLAS 0.3.21 NO_LAPACKE
/// DYNAMIC_ARCH USE_OPENMP Haswell MAX_THREADS=64". `chosen` says whether the user has set
/// OPENBLAS_CORETYPE, which only libraries with DYNAMIC_ARCH read.
[[nodiscard]] inline BlasLibrary describe_openblas(const std::string& config, std::string core,
                                                   bool avx512, bool chosen) {
  // The names of the x86 core types without AVX-512 that OpenBLAS falls back to.
  constexpr std::array<std::string_view, 11> narrow{
      "Prescott",  "Core2",     "Nehalem",    "Sandybridge", "Haswell",  "Zen",
      "Barcelona", "Bulldozer", "Piledriver", "Steamroller", "Excavator"};
  BlasLibrary library{"OpenBLAS", {}, std::move(core), {}};
  bool dynamic = false;
  std::istringstream words(config);
  for (std::string word, before; words >> word; before = word) {
    if (before == "OpenBLAS") library.version = word;
    dynamic = dynamic || word == "DYNAMIC_ARCH";
  }
  if (dynamic && avx512 && !chosen &&
      std::find(narrow.begin(), narrow.end(), library.core) != narrow.end())
    library.newer_core = "SkylakeX";
  return library;
}

/// Returns what the BLAS says of itself whose functions `find(name)` finds: an address, or null.
template <class Find>
[[nodiscard]] BlasLibrary describe_blas(Find&& find, bool avx512, bool chosen) {
  const auto word = [&](const char* name) -> std::string {
    void* const found = find(name);
    const char* const said =
        found == nullptr ? nullptr : reinterpret_cast<const char* (*)()>(found)();
    return said == nullptr ? "" : said;
  };
  if (const std::string config = word("openblas_get_config"); !config.empty())
    return describe_openblas(config, word("openblas_get_corename"), avx512, chosen);
  if (const std::string version = word("bli_info_get_version_str"); !version.empty()) {
    BlasLibrary library{"BLIS", version, {}, {}};
    void* const query = find("bli_arch_query_id");
    void* const name = find("bli_arch_string");
    if (query != nullptr && name != nullptr)
      library.core =
          reinterpret_cast<const char* (*)(int)>(name)(reinterpret_cast<int (*)()>(query)());
    return library;
  }
  return {"a BLAS that does not tell its name", {}, {}, {}};
}

#if defined(HEDDLE_HAS_CBLAS) || defined(HEDDLE_HAS_KOKKOSKERNELS)
/// Returns what the BLAS of this process says of itself.
[[nodiscard]] inline BlasLibrary loaded_blas() {
  const char* const chosen = std::getenv("OPENBLAS_CORETYPE");
  return describe_blas([](const char* name) { return ::dlsym(RTLD_DEFAULT, name); }, has_avx512(),
                       chosen != nullptr && *chosen != '\0');
}
#endif

}  // namespace impl

/// Returns the library that gemm() calls for `Exec`: a BLAS, Kokkos Kernels, or Heddle's own
/// team_gemm() if neither was found when the program was built. A BLAS is found by its symbols in
/// the shared libraries of the process. One that is linked statically does not tell its name.
template <ExecutionSpace Exec>
[[nodiscard]] BlasLibrary blas_library() {
#if defined(HEDDLE_HAS_KOKKOSKERNELS)
  if constexpr (!std::is_same_v<Exec, Athread>) {
    std::string version;
#if defined(KOKKOSKERNELS_VERSION)
    version = text(KOKKOSKERNELS_VERSION / 10000, '.', KOKKOSKERNELS_VERSION / 100 % 100, '.',
                   KOKKOSKERNELS_VERSION % 100);
#endif
#if defined(KOKKOSKERNELS_ENABLE_TPL_BLAS)
    if constexpr (runs_on_host<Exec>) {
      BlasLibrary library = impl::loaded_blas();
      library.name =
          text("Kokkos Kernels ", version, version.empty() ? "" : " ", "with ", library.name);
      return library;
    }
#endif
    return {"Kokkos Kernels", version, {}, {}};
  }
#elif defined(HEDDLE_HAS_CBLAS)
  if constexpr (runs_on_host<Exec>) return impl::loaded_blas();
#endif
  return {"Heddle's team_gemm", {}, {}, {}};
}

}  // namespace heddle::inline v0::kernel
