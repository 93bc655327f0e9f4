// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A View of device memory taken for one of the host.
// expect cuda: no suitable user-defined conversion from "const Kokkos::View<double *, gate::Exec>"
// expect hip: no viable conversion from 'const View<[...], gate::Exec>'

#include "../support.hpp"

double gate_must_fail() {
  const Kokkos::View<double*, gate::Exec> values("values", 8);
#ifdef HEDDLE_OK
  const auto host = Kokkos::create_mirror_view(values);
#else
  const Kokkos::View<double*, Kokkos::HostSpace> host = values;
#endif
  return host(0);
}
