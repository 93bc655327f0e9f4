// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StageShares: says how the ranks of a stage divide the samples of every microbatch, and how many
/// samples each microbatch has.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// The samples [begin, end) of a microbatch.
struct SampleRange {
  std::int64_t begin = 0;  ///< the first sample
  std::int64_t end = 0;    ///< the first sample after the range

  /// Returns the number of samples.
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return end - begin; }
  friend constexpr bool operator==(SampleRange, SampleRange) = default;
};

/// Returns the samples that are in both ranges. The result has the size 0 if there are none.
[[nodiscard]] constexpr SampleRange overlap(SampleRange a, SampleRange b) noexcept {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// The shares of the samples of a microbatch that the ranks of each stage compute. For example,
/// `{.samples = 8, .stages = {{3, 3, 2}, {8}}}` divides stage 0 between three ranks, and stage 1 is
/// on one rank. All ranks of a stage compute every microbatch, each rank its own samples. Without
/// stages, no stage is divided.
///
/// The first share of a stage belongs to the lowest of its ranks and begins with sample 0. The
/// next shares follow without gaps. A stage with replicas has one share, which is the whole
/// microbatch of each replica.
struct StageShares {
  std::int64_t samples = 0;  ///< the samples of the largest microbatch
  std::vector<std::vector<std::int64_t>> stages =
      {};  ///< for each stage: the samples of each share
  /// The samples of each microbatch. Empty: every microbatch has `samples`. The shares of a smaller
  /// microbatch have the same ratios. Their boundaries are rounded to the nearest sample.
  std::vector<std::int64_t> microbatches = {};

  /// Returns true if no stage is divided and all microbatches have the same size.
  [[nodiscard]] bool empty() const noexcept { return stages.empty(); }
  /// Returns the samples of a microbatch.
  [[nodiscard]] std::int64_t samples_of(Item item) const {
    return microbatches.empty() ? samples : microbatches[+item];
  }
  /// Returns the range of one share of `stage` in a microbatch of `size` samples.
  [[nodiscard]] SampleRange range(Stage stage, std::size_t share, std::int64_t size) const;

  /// Checks all numbers. @throws contract_error if a microbatch has 2^31 samples or more, if a
  /// share or a microbatch has no samples, if the
  ///         shares of a stage do not sum to `samples`, if no microbatch has `samples`, or if a
  ///         rank would compute no sample of a smaller microbatch. The error names the stage or the
  ///         microbatch.
  void check() const;

  friend bool operator==(const StageShares&, const StageShares&) = default;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/stage_shares.ipp>
#endif
