// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A kernel calls a function of the host.
// expect cuda: calling a __host__ function("host_only(unsigned long)") from a __host__ __device__
// expect hip: reference to __host__ function 'host_only' in __host__ __device__ function

#include "../support.hpp"

double host_only(std::size_t i);

namespace {

struct Fill {
  Kokkos::View<double*, gate::Exec> values;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
#ifdef HEDDLE_OK
    values(i) = static_cast<double>(i);
#else
    values(i) = host_only(i);
#endif
  }
};

}  // namespace

void gate_must_fail() {
  Kokkos::parallel_for("heddle::gate::fill", Kokkos::RangePolicy<gate::Exec>(0, 8),
                       Fill{decltype(Fill::values)("values", 8)});
}
