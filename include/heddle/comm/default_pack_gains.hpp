// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// default_pack_gains(): how much packing speeds up strided messages in host memory, as measured
/// once. It is used if nobody has measured a table on this machine, and by the interposer.

#include <heddle/core/linkage.hpp>
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
[[nodiscard]] PackTable default_pack_gains();

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/default_pack_gains.ipp>
#endif
