// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_shares.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/stage_shares.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE SampleRange StageShares::range(Stage stage, std::size_t share,
                                             std::int64_t size) const {
  expects(+stage < stages.size() && share < stages[+stage].size() && samples >= 1 && size >= 0,
          [&] {
            return ErrorInfo{
                "heddle::StageShares::range", "there is no such share or size",
                text("share ", share, " of stage ", stage, ", a microbatch of ", size,
                     " samples; there are ", stages.size(), " stages, samples = ", samples)};
          });
  const std::vector<std::int64_t>& shares = stages[+stage];
  const auto scaled = [&](std::int64_t boundary) {
    return (2 * boundary * size + samples) / (2 * samples);
  };
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < share; ++k) begin += shares[k];
  return {scaled(begin), scaled(begin + shares[share])};
}

HEDDLE_INLINE void StageShares::check() const {
  const auto complaint = [](std::string what, std::string why, std::string fix = {}) {
    return ErrorInfo{"heddle::StageShares", std::move(what), std::move(why), std::move(fix)};
  };
  if (empty()) {
    expects(microbatches.empty(), [&] {
      return complaint("sizes of microbatches need the shares of every stage",
                       text(microbatches.size(), " microbatches, no stages"),
                       "give a stage on one rank one share of all samples");
    });
    return;
  }
  expects(samples >= 1 && samples < std::int64_t{1} << 31, [&] {
    return complaint("a microbatch has between 1 and 2^31 - 1 samples",
                     text("samples = ", samples));
  });
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::vector<std::int64_t>& shares = stages[stage];
    expects(!shares.empty(),
            [&] { return complaint("a stage has no shares", text("stage ", stage)); });
    std::string sum;
    std::int64_t all = 0;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      expects(shares[k] >= 1, [&] {
        return complaint("a share has no samples",
                         text("share ", k, " of stage ", stage, " is ", shares[k]),
                         "leave this rank out of the stage");
      });
      expects(shares[k] <= samples, [&] {
        return complaint(
            "a share has more samples than a microbatch",
            text("share ", k, " of stage ", stage, " is ", shares[k], ", samples = ", samples));
      });
      sum += text(k == 0 ? "" : " + ", shares[k]);
      all += shares[k];
    }
    expects(all == samples, [&] {
      return complaint("the shares of a stage do not sum to a microbatch",
                       text("stage ", stage, ": ", sum, " = ", all, ", but a microbatch has ",
                            samples, " samples"));
    });
  }
  if (microbatches.empty()) return;
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    const std::int64_t size = microbatches[m];
    expects(size >= 1 && size <= samples, [&] {
      return complaint("a microbatch has between 1 and `samples` samples",
                       text("microbatch ", m, " has ", size, ", samples = ", samples));
    });
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      for (std::size_t k = 0; k < stages[stage].size(); ++k)
        expects(range(Stage{stage}, k, size).size() >= 1, [&] {
          return complaint("a rank computes no sample of a microbatch",
                           text("share ", k, " of stage ", stage, " is ", stages[stage][k], " of ",
                                samples, " samples, and microbatch ", m, " has ", size),
                           "use fewer ranks in this stage, or microbatches of more equal sizes");
        });
  }
  expects(std::ranges::max(microbatches) == samples, [&] {
    return complaint("`samples` is the size of the largest microbatch",
                     text("samples = ", samples, ", but the largest microbatch has ",
                          std::ranges::max(microbatches)));
  });
}

}  // namespace heddle::inline v0
