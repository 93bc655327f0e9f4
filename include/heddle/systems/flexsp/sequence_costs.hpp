// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceCosts: the time that a group of ranks needs for sequences that are sharded over it, by
/// the size of the group. The costs are FlexSP's constants or are fitted to measured times.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::systems {

/// The cost of a group of `degree` ranks. Sequences of s1, s2, ... tokens take fixed +
/// sum(per_square * s^2 + per_token * s) seconds, including communication.
struct DegreeCost {
  int degree = 1;          ///< ranks of the group, a power of two
  Seconds fixed = 0;       ///< seconds per group that has sequences
  Seconds per_token = 0;   ///< seconds per token
  Seconds per_square = 0;  ///< seconds per squared length of a sequence: attention
  friend bool operator==(const DegreeCost&, const DegreeCost&) = default;
};

/// A measured run of a group: sequences and the time that they took.
struct DegreeSample {
  std::vector<std::int64_t> lengths;  ///< tokens of each sequence
  Seconds time = 0;                   ///< the time of all sequences together
};

/// Returns the costs of `degree` that fit `samples` best, by least squares of relative errors. A
/// coefficient that would be negative is set to 0.
/// @throws contract_error if the degree is not a power of two, if there are fewer than 3 samples,
///         if a length is below 1, or if a time is not positive and finite.
[[nodiscard]] DegreeCost fit_degree_cost(int degree, std::span<const DegreeSample> samples);

/// The costs of the machine and the model for plan_sequence_groups().
struct SequenceCosts {
  int ranks = 1;                     ///< number of all ranks, N
  std::int64_t tokens_per_rank = 0;  ///< memory in tokens; p ranks hold p times as many
  std::vector<DegreeCost> degrees;   ///< the sizes that a group may have, in ascending order

  /// Returns the cost of `degree`. @throws contract_error if there is no such degree.
  [[nodiscard]] const DegreeCost& of(int degree) const;
};

/// The constants of FlexSP's cost model for one model, as in its release.
struct FlexSpModel {
  double square = 0;      ///< alpha1: ms per squared token, on one rank
  double token = 0;       ///< alpha2: ms per token, on one rank
  double fixed = 0;       ///< beta1: ms per group
  double activation = 0;  ///< MB per token
  double parameters = 0;  ///< number of parameters in 10^9
  int layers = 0;         ///< layers, each with 4 all-to-alls in forward and 4 in backward
  int hidden = 0;         ///< width of a token, 2 bytes each
};

/// The constants of FlexSP's release for 7 * 10^9 parameters on A100 devices.
inline constexpr FlexSpModel flexsp_7b{5.128e-6, 0.18396, 629.36, 4.48, 7, 32, 4096};

/// The bandwidths in GB/s of an all-to-all with degree 2, 4, ..., 64, from FlexSP's release.
inline constexpr double flexsp_bandwidths[] = {119.5, 104.1, 96.5, 10.3, 5.94, 4.87};

/// Returns FlexSP's costs. The time in ms is sum(alpha1 s^2 + alpha2 s) / p + beta1 + MB /
/// bandwidth(p), where MB = 8 * layers * hidden * s * 2 / 2^20 / p. A device of `memory` GB stores
/// 16 bytes per parameter, sharded over `ranks` (ZeRO-3), and the rest of it holds tokens. The i-th
/// element of `bandwidths` is that of 2^(i+1) ranks in GB/s. Degree 1 is excluded, as in the
/// release, and so are degrees above `ranks`.
/// @throws contract_error if there are no ranks, no bandwidths, or no memory for a token, and if a
///         number of the model is negative, infinite or not a number, or a bandwidth is not above 0
///         and finite.
[[nodiscard]] SequenceCosts flexsp_costs(const FlexSpModel& model, int ranks, double memory,
                                         std::span<const double> bandwidths = flexsp_bandwidths);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/flexsp/sequence_costs.ipp>
#endif
