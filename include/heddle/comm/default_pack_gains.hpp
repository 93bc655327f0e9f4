// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// default_pack_gains(): how much packing speeds up strided messages in host memory, as measured
/// once. It is used if nobody has measured a table on this machine, and by the interposer.

#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/layout/pack_table.hpp>

namespace heddle::inline v0 {

/// Returns the gains for the MPI library with which this is compiled (Open MPI 4.1, else MPICH
/// 4.0). A gain is the time of the library's own strided message divided by the time with packing.
///
/// The messages went between two ranks on two cores of one host and bypassed the interposer. The
/// blocks were runs of doubles with gaps as long as the runs. The values are the medians of three
/// runs on a 4th generation EPYC. For Open MPI they are the geometric mean of that and of a run on
/// a 5th generation EPYC, over blocking and non-blocking calls. Combinations of size and run that
/// cannot exist have the gain of the nearest that can. For messages of 1 MiB and more, the machines
/// differ by up to a factor of four, so measure if this matters.
[[nodiscard]] inline PackTable default_pack_gains() {
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
