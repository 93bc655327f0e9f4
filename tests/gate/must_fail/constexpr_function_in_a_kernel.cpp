// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A kernel calls a constexpr function of the host. nvcc only warns of it, and removes the call's
// code; clang compiles constexpr functions for the device, too.
// expect cuda: calling a constexpr __host__ function("bit_cast") from a __host__ __device__
// accepted by hip

#include <bit>
#include <cstdint>

#include <heddle/core/impl/bit_cast.hpp>

#include "../support.hpp"

namespace {

struct Fill {
  Kokkos::View<std::uint64_t*, gate::Exec> values;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
#ifdef HEDDLE_OK
    values(i) = heddle::impl::bit_cast<std::uint64_t>(static_cast<double>(i));
#else
    values(i) = std::bit_cast<std::uint64_t>(static_cast<double>(i));
#endif
  }
};

}  // namespace

void gate_must_fail() {
  Kokkos::parallel_for("heddle::gate::fill", Kokkos::RangePolicy<gate::Exec>(0, 8),
                       Fill{decltype(Fill::values)("values", 8)});
}
