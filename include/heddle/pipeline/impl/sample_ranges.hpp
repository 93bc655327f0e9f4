// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SampleRanges: the samples of a microbatch that each rank of a stage computes, for Stages.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <heddle/core/index.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The samples of the largest microbatch, by stage and rank. They follow each other in the order of
/// the ranks, so `begin` is right for the schedule of one line only, before data_parallel().
class SampleRanges {
 public:
  explicit SampleRanges(const Schedule& schedule) {
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      if (action.kind != Kind::forward) continue;
      std::int64_t& samples =
          m_ranges[{action.stage, schedule[action.queue].from}].end;  // begins with 0
      samples = std::max(samples, schedule::samples_of(schedule, ActionId{i}));
    }
    SampleRange before;
    Stage stage;
    for (auto& [key, range] : m_ranges) {
      if (key.first != stage) before = {};
      stage = key.first;
      before = range = {before.end, before.end + range.end};
    }
  }

  /// Returns the samples of `stage` on `rank`. The range is empty if the schedule has no shares.
  [[nodiscard]] SampleRange of(Rank rank, Stage stage) const {
    const auto found = m_ranges.find({stage, rank});
    return found == m_ranges.end() ? SampleRange{} : found->second;
  }

 private:
  std::map<std::pair<Stage, Rank>, SampleRange> m_ranges;
};

}  // namespace heddle::inline v0::impl
