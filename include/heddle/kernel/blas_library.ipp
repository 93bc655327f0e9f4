// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of blas_library.hpp.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#if defined(HEDDLE_HAS_CBLAS) || defined(HEDDLE_HAS_KOKKOSKERNELS)
#include <dlfcn.h>
#endif

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/kernel/blas_library.hpp>

namespace heddle::inline v0::kernel {

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const BlasLibrary& library) {
  out << library.name;
  if (!library.version.empty()) out << ' ' << library.version;
  if (!library.core.empty()) out << ", kernels for " << library.core;
  if (!library.newer_core.empty())
    out << "; this processor has AVX-512, try OPENBLAS_CORETYPE=" << library.newer_core;
  return out;
}

namespace impl {

HEDDLE_FULL_INLINE bool has_avx512() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDA_ARCH__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

HEDDLE_FULL_INLINE BlasLibrary describe_openblas(const std::string& config, std::string core,
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

HEDDLE_FULL_INLINE BlasLibrary describe_blas(heddle::impl::FunctionRef<void*(const char*)> find,
                                             bool avx512, bool chosen) {
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
HEDDLE_FULL_INLINE BlasLibrary loaded_blas() {
  const char* const chosen = std::getenv("OPENBLAS_CORETYPE");
  return describe_blas([](const char* name) { return ::dlsym(RTLD_DEFAULT, name); }, has_avx512(),
                       chosen != nullptr && *chosen != '\0');
}
#endif

}  // namespace impl
}  // namespace heddle::inline v0::kernel
