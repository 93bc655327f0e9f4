// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlasLibrary: the library that multiplies matrices, its version and the processor type whose
/// kernels it chose. The library is asked at run time, so programs link with any BLAS.

#include <iosfwd>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#if defined(HEDDLE_HAS_KOKKOSKERNELS)
#include <KokkosKernels_config.h>
#endif
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/impl/device_blas.hpp>
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
  friend std::ostream& operator<<(std::ostream& out, const BlasLibrary& library);
};

namespace impl {

/// Returns whether the processor has the parts of AVX-512 that OpenBLAS's SkylakeX kernels use.
[[nodiscard]] bool has_avx512();

/// Returns what OpenBLAS says of itself. `config` is for example "OpenBLAS 0.3.21 NO_LAPACKE
/// DYNAMIC_ARCH USE_OPENMP Haswell MAX_THREADS=64". `chosen` says whether the user has set
/// OPENBLAS_CORETYPE, which only libraries with DYNAMIC_ARCH read.
[[nodiscard]] BlasLibrary describe_openblas(const std::string& config, std::string core,
                                            bool avx512, bool chosen);

/// Returns what the BLAS says of itself whose functions `find(name)` finds: an address, or null.
[[nodiscard]] BlasLibrary describe_blas(heddle::impl::FunctionRef<void*(const char*)> find,
                                        bool avx512, bool chosen);

#if defined(HEDDLE_HAS_CBLAS) || defined(HEDDLE_HAS_KOKKOSKERNELS)
/// Returns what the BLAS of this process says of itself.
[[nodiscard]] BlasLibrary loaded_blas();
#endif

}  // namespace impl

/// Returns the library that gemm() calls for `Exec`: cuBLAS or hipBLAS, another BLAS, Kokkos
/// Kernels, or Heddle's own team_gemm() if none was found when the program was built. A BLAS of the
/// host is found by its symbols in the shared libraries of the process. One that is linked
/// statically does not tell its name.
template <ExecutionSpace Exec>
[[nodiscard]] BlasLibrary blas_library() {
#if defined(HEDDLE_HAS_DEVICE_BLAS)
  if constexpr (std::is_same_v<Exec, impl::DeviceBlasExec>)
    return {impl::device_blas_name, impl::device_blas_version(), {}, {}};
#endif
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

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/blas_library.ipp>
#endif
