// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// shipped_gains(): what packing gains in memory of the host, as measured once. For moves of
/// strided boxes of which nobody has measured a table, and for the interposer.

#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/layout/pack_table.hpp>

namespace heddle::inline v0 {

/// For the MPI library that this is compiled with (Open MPI 4.1, else MPICH 4.0), as
/// bench_comm_strided measures it: two ranks on two cores of one host, blocks of doubles as far
/// apart as they are long, the median of three runs. Where no strided message is possible stands
/// the gain of the nearest that is. Of 1 MiB and more, what is faster changed from run to run:
/// measure where that matters.
[[nodiscard]] inline PackTable shipped_gains() {
#ifdef OPEN_MPI
  std::vector<double> gains{1.50, 1.24, 1.12, 1.12, 1.12, 1.12,  //
                            1.95, 1.39, 1.00, 0.98, 0.98, 0.98,  //
                            1.25, 1.01, 0.57, 0.61, 0.62, 0.62,  //
                            2.25, 1.61, 0.69, 0.67, 0.64, 0.64,  //
                            2.69, 1.86, 0.70, 0.67, 0.65, 0.63,  //
                            3.49, 2.09, 0.97, 0.92, 0.95, 0.93,  //
                            3.35, 2.33, 1.11, 1.02, 0.74, 0.90,  //
                            2.05, 1.28, 1.73, 1.15, 1.11, 1.25};
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
