// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// each_message(): the messages between two stages of a plan.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// The samples of a rank: [first, last) in units of 1 / (degree of its groups) of a sample.
struct RankSamples {
  Bytes first, last;
};

[[nodiscard]] inline std::vector<RankSamples> samples_by_rank(const PlanStage& stage) {
  const std::size_t degree = stage.ranks.size() / stage.groups();
  std::vector<RankSamples> all;
  Bytes at = 0;
  for (const std::int64_t samples : stage.samples)
    for (std::size_t i = 0; i < degree; ++i) {
      all.push_back({at, at + static_cast<Bytes>(samples)});
      at = all.back().last;
    }
  return all;
}

/// Calls `message(from, to, bytes)` for all messages from stage `s` of a plan to the next one. The
/// elements of activations have the type `type`.
template <class Message>
void each_message(const Plan& plan, std::size_t s, const Profile& profile, Scalar type,
                  Message&& message) {
  const PlanStage& from = plan.stages[s];
  const PlanStage& to = plan.stages[s + 1];
  const Bytes output = profile.input_of(to.layers.first);
  const std::vector<RankSamples> sent = samples_by_rank(from), received = samples_by_rank(to);
  const Bytes here = from.ranks.size() / from.groups();
  const Bytes there = to.ranks.size() / to.groups();
  const Bytes unit = here * there;  // the ranges below are in units of 1 / unit of a sample
  const std::optional<Codec>& cast = plan.cast_after(s);
  for (std::size_t i = 0, j = 0; i < sent.size() && j < received.size();) {
    const Bytes first = std::max(sent[i].first * there, received[j].first * here);
    const Bytes end_here = sent[i].last * there, end_there = received[j].last * here;
    const Bytes part = std::min(end_here, end_there) - first;
    Bytes bytes = part / unit * output + (part % unit * output + unit - 1) / unit;
    if (cast) {
      const Bytes element = size_of(type);
      bytes = heddle::impl::encoded_bytes(cast->type, cast->block, (bytes + element - 1) / element);
    }
    message(from.ranks[i], to.ranks[j], bytes);
    i += end_here <= end_there;
    j += end_there <= end_here;
  }
}

}  // namespace heddle::inline v0::plan::impl
