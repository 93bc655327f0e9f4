// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of default_pack_gains.hpp.

#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/pack_table.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE PackTable default_pack_gains() {
#ifdef OPEN_MPI
  std::vector<double> gains{1.54, 1.25, 1.12, 1.12, 1.12, 1.12,  //
                            2.19, 1.68, 1.13, 1.07, 1.07, 1.07,  //
                            1.30, 0.91, 0.63, 0.65, 0.65, 0.65,  //
                            2.24, 1.33, 0.73, 0.69, 0.68, 0.67,  //
                            2.60, 1.49, 0.73, 0.67, 0.68, 0.65,  //
                            3.25, 1.47, 0.84, 0.79, 0.83, 0.79,  //
                            3.25, 1.64, 1.00, 0.91, 0.72, 0.80,  //
                            1.60, 0.84, 0.79, 0.58, 0.60, 0.66};
#else
  std::vector<double> gains{1.72, 1.65, 1.70, 1.70, 1.70, 1.70,  //
                            1.69, 1.65, 1.77, 1.82, 1.82, 1.82,  //
                            1.36, 1.30, 1.45, 1.49, 1.51, 1.51,  //
                            8.34, 2.38, 0.98, 0.61, 0.56, 0.55,  //
                            9.27, 2.96, 1.16, 0.77, 0.66, 0.60,  //
                            9.76, 3.47, 1.28, 0.81, 0.64, 0.57,  //
                            7.41, 1.88, 0.90, 0.62, 0.42, 0.52,  //
                            4.78, 1.22, 1.80, 1.11, 0.45, 0.43};
#endif
  return {{256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304},
          {8, 32, 128, 512, 2048, 8192},
          std::move(gains)};
}

}  // namespace heddle::inline v0
