// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The prices of stages of any layers, from sums that are computed once. Planners try many layers
/// for the same ranks. The prices equal those of stage_prices() and plan_memory().

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/layer_time_sums.hpp>
#include <heddle/plan/impl/sample_shares.hpp>
#include <heddle/plan/impl/traffic_round.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::plan::impl {

/// The sums of bytes of the first l layers, for one tensor degree.
struct ByteSums {
  std::vector<Bytes> parameters{0}, saved{0}, delta{0};

  [[nodiscard]] static Bytes of(const std::vector<Bytes>& sums, LayerRange range) {
    return sums[static_cast<std::size_t>(range.last)] - sums[static_cast<std::size_t>(range.first)];
  }
};

/// The sums of a problem, each computed when it is first needed.
class LayerTable {
 public:
  explicit LayerTable(const PlanProblem& problem) : m_problem(&problem) {
    const Machine& machine = problem.machine();
    const auto kinds = device_kinds(machine);
    m_kind = site_by_rank(kinds, machine.ranks());
  }

  [[nodiscard]] const PlanProblem& problem() const noexcept { return *m_problem; }
  /// Returns the kind of a rank's device; kinds are in the order of device_kinds().
  [[nodiscard]] std::size_t kind(Rank rank) const noexcept { return m_kind[+rank]; }

  [[nodiscard]] const LayerTimeSums& sums(Rank rank, int tensor, std::int64_t samples) {
    LayerTimeSums& sums = m_sums[{kind(rank), tensor, samples}];
    fill(sums, *m_problem, m_problem->machine().device(rank), tensor, samples);
    return sums;
  }

  [[nodiscard]] const ByteSums& bytes(int tensor) {
    const auto [place, inserted] = m_bytes.try_emplace(tensor);
    ByteSums& sums = place->second;
    for (int l = 0; inserted && l < m_problem->layers(); ++l) {
      const Profile& profile = m_problem->profile();
      const Bytes delta = profile.layers[static_cast<std::size_t>(l)].delta;
      const auto degree = static_cast<Bytes>(tensor);
      sums.parameters.push_back(sums.parameters.back() + profile.parameters({l, l + 1}, tensor));
      sums.saved.push_back(sums.saved.back() + profile.saved({l, l + 1}, tensor));
      sums.delta.push_back(sums.delta.back() + (delta + degree - 1) / degree);
    }
    return sums;
  }

  /// Returns whether the profile has this degree for the kind of the rank.
  [[nodiscard]] bool has_degree(Rank rank, int tensor) {
    const auto [place, inserted] = m_degrees.try_emplace(kind(rank));
    if (inserted)
      place->second = m_problem->profile().tensor_degrees(m_problem->machine().device(rank));
    return std::ranges::find(place->second, tensor) != place->second.end();
  }

 private:
  const PlanProblem* m_problem;
  std::vector<std::size_t> m_kind;  ///< by rank
  std::map<std::tuple<std::size_t, int, std::int64_t>, LayerTimeSums> m_sums;
  std::map<int, ByteSums> m_bytes;                    ///< by tensor degree
  std::map<std::size_t, std::vector<int>> m_degrees;  ///< by kind
};

/// The ranks and samples of a stage, without its layers.
class StageShape {
 public:
  StageShape(LayerTable& table, std::vector<Rank> ranks, std::vector<std::int64_t> samples,
             int tensor)
      : m_problem(&table.problem()),
        m_bytes(&table.bytes(tensor)),
        m_ranks(std::move(ranks)),
        m_samples(std::move(samples)),
        m_tensor(tensor) {
    std::int64_t microbatch = 0;
    for (const std::int64_t of_group : m_samples) microbatch += of_group;
    m_microbatches = m_problem->options().batch / std::max<std::int64_t>(microbatch, 1);
    for (std::size_t i = 0; i < m_ranks.size(); ++i) {
      const LayerTimeSums* const sums = &table.sums(m_ranks[i], tensor, m_samples[group_of(i)]);
      if (std::ranges::find(m_sums, sums) == m_sums.end()) m_sums.push_back(sums);
      const std::pair memory(capacity_of(m_problem->machine().device(m_ranks[i])),
                             m_samples[group_of(i)]);
      if (std::ranges::find(m_memories, memory) == m_memories.end()) m_memories.push_back(memory);
    }
  }

  [[nodiscard]] const std::vector<Rank>& ranks() const noexcept { return m_ranks; }
  [[nodiscard]] const std::vector<std::int64_t>& samples() const noexcept { return m_samples; }
  [[nodiscard]] int tensor() const noexcept { return m_tensor; }
  /// Returns the times of the rank that takes longest for all layers.
  [[nodiscard]] const LayerTimeSums& slowest() const {
    return **std::ranges::max_element(m_sums, {}, [](const LayerTimeSums* sums) {
      return sums->all().forward + sums->all().backward();
    });
  }

  /// Returns the time of a forward and a backward of the slowest ranks.
  [[nodiscard]] Seconds time(LayerRange range, bool recompute = false) const {
    Seconds forward = 0, backward = 0;
    for (const LayerTimeSums* sums : m_sums) {
      const LayerTimes times = sums->of(range);
      forward = std::max(forward, times.forward);
      backward = std::max(backward, times.backward() + (recompute ? times.forward : 0));
    }
    return forward + backward;
  }

  /// Returns the time of the sum of gradients over the groups.
  [[nodiscard]] Seconds gradient_sum(LayerRange range) const {
    if (m_samples.size() < 2) return 0;
    const auto bytes = static_cast<double>(ByteSums::of(m_bytes->parameters, range));
    Seconds longest = 0;
    std::vector<Rank> ring;
    for (std::size_t t = 0; t < static_cast<std::size_t>(m_tensor); ++t) {
      ring.clear();
      for (std::size_t i = t; i < m_ranks.size(); i += static_cast<std::size_t>(m_tensor))
        ring.push_back(m_ranks[i]);
      longest = std::max(longest, ring_all_reduce_time(m_problem->machine(), ring, bytes));
    }
    return longest;
  }

  /// Returns the most bytes that a rank needs whose capacity is smaller; 0 if all ranks fit.
  [[nodiscard]] Bytes lacking(LayerRange range, const KeptMicrobatches& held,
                              bool recompute = false) const {
    Bytes most = 0;
    for (const auto& [capacity, samples] : m_memories) {
      if (capacity == 0) continue;
      const Bytes needed = bytes(range, samples, held, recompute);
      if (needed > capacity) most = std::max(most, needed);
    }
    return most;
  }

  /// Returns an upper bound of the state of weights that the stage can have, in bytes of all of its
  /// tensor ranks together.
  [[nodiscard]] double room() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [capacity, samples] : m_memories)
      if (capacity != 0) least = std::min(least, static_cast<double>(capacity) * m_tensor);
    return least;
  }

  /// Returns the least bytes that a rank has left; ranks of unknown capacity have none to begin
  /// with.
  [[nodiscard]] double headroom(LayerRange range, const KeptMicrobatches& held) const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [capacity, samples] : m_memories)
      least = std::min(least, static_cast<double>(capacity) -
                                  static_cast<double>(bytes(range, samples, held, false)));
    return least;
  }

 private:
  [[nodiscard]] std::size_t group_of(std::size_t rank) const noexcept {
    return rank / static_cast<std::size_t>(m_tensor);
  }

  [[nodiscard]] Bytes bytes(LayerRange range, std::int64_t samples, const KeptMicrobatches& held,
                            bool recompute) const {
    const double state = m_problem->options().state_per_parameter *
                         static_cast<double>(ByteSums::of(m_bytes->parameters, range));
    const Profile& profile = m_problem->profile();
    const bool first = range.first == 0, last = range.last == m_problem->layers();
    const SampleBytes each{
        .saved = static_cast<double>(ByteSums::of(m_bytes->saved, range)),
        .delta = static_cast<double>(ByteSums::of(m_bytes->delta, range)),
        .input = profile.input_of(range.first),
        .output = profile.layers[static_cast<std::size_t>(range.last) - 1].output};
    const MessageSlots slots =
        message_slots(held, m_microbatches, first, last, any_cast(m_problem->options().codecs));
    const double sum = ring_bytes(ByteSums::of(m_bytes->parameters, range), m_samples.size(),
                                  size_of(m_problem->options().activation));
    const double all =
        state + sum +
        kept_bytes(each, held, slots, m_tensor, first, recompute) * static_cast<double>(samples);
    return static_cast<Bytes>(std::ceil(std::min(all, 0x1p63)));
  }

  const PlanProblem* m_problem;
  const ByteSums* m_bytes;
  std::vector<Rank> m_ranks;
  std::vector<std::int64_t> m_samples;
  int m_tensor;
  std::int64_t m_microbatches = 1;
  std::vector<const LayerTimeSums*> m_sums;                ///< the different ones of the ranks
  std::vector<std::pair<Bytes, std::int64_t>> m_memories;  ///< the different capacities and samples
};

/// Returns the samples of the groups of a stage, or nothing if there are fewer samples than groups.
/// They are in proportion to the groups' speed with all layers, by sample_shares(). Then samples of
/// the slowest group go to other groups while all of these remain faster than it was. Samples go
/// around in units of PlanOptions::sample_unit().
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> balanced_samples(
    LayerTable& table, std::span<const Rank> ranks, int tensor, std::int64_t samples) {
  const auto degree = static_cast<std::size_t>(tensor);
  const std::size_t groups = ranks.size() / degree;
  const std::int64_t unit = table.problem().options().sample_unit(tensor);
  if (samples % unit != 0 || std::cmp_greater(groups, samples / unit)) return {};
  samples /= unit;
  const auto time_of = [&](std::size_t g, std::int64_t share) {
    Seconds longest = 0;
    for (const Rank rank : ranks.subspan(g * degree, degree)) {
      const LayerTimes& all = table.sums(rank, tensor, share * unit).all();
      longest = std::max(longest, all.forward + all.backward());
    }
    return longest;
  };
  std::vector<Seconds> times;
  for (std::size_t g = 0; g < groups; ++g)
    times.push_back(time_of(g, samples / static_cast<std::int64_t>(groups)));
  std::vector<std::int64_t> shares = sample_shares(times, samples);
  for (std::size_t g = 0; g < groups; ++g) times[g] = time_of(g, shares[g]);
  while (true) {
    const auto slowest = static_cast<std::size_t>(std::ranges::max_element(times) - times.begin());
    std::size_t best = slowest;
    Seconds least = times[slowest];
    for (std::size_t g = 0; g < groups && shares[slowest] > 1; ++g)
      if (const Seconds more = g == slowest ? least : time_of(g, shares[g] + 1); more < least) {
        least = more;
        best = g;
      }
    if (best == slowest) break;
    times[best] = time_of(best, ++shares[best]);
    times[slowest] = time_of(slowest, --shares[slowest]);
  }
  for (std::int64_t& share : shares) share *= unit;
  return shares;
}

/// The times of the messages at a cut, for one microbatch.
struct CutTimes {
  Seconds forward = 0;   ///< activations to the next stage
  Seconds backward = 0;  ///< gradients from the next stage

  [[nodiscard]] Seconds longer() const { return std::max(forward, backward); }
  [[nodiscard]] Seconds both() const { return forward + backward; }
};

/// Prices the messages from one stage to the next.
class CutPricer {
 public:
  explicit CutPricer(const PlanProblem& problem)
      : m_problem(&problem),
        m_traffic{TrafficRound(problem.machine()), TrafficRound(problem.machine())} {}

  /// Returns the times of the messages in front of layer `layer`, in a format or uncompressed.
  [[nodiscard]] CutTimes times(const StageShape& from, const StageShape& to, int layer,
                               const std::optional<Codec>& codec) {
    const Bytes output = m_problem->profile().input_of(layer);
    const auto here = static_cast<Bytes>(from.tensor()), there = static_cast<Bytes>(to.tensor());
    const Bytes unit = here * there;  // the ranges below are in units of 1 / unit of a sample
    Bytes sent = 0, received = 0;     // the ends of the ranges of ranks i and j
    Bytes begin = 0;
    std::size_t i = 0, j = 0;
    const auto grow = [](Bytes& end, const StageShape& stage, std::size_t rank, Bytes other) {
      const auto degree = static_cast<std::size_t>(stage.tensor());
      end += static_cast<Bytes>(stage.samples()[rank / degree]) * other;
    };
    grow(sent, from, i, there);
    grow(received, to, j, here);
    for (TrafficRound& traffic : m_traffic) traffic.clear();
    while (true) {
      const Bytes end = std::min(sent, received);
      const Bytes part = end - begin;
      Bytes bytes = part / unit * output + (part % unit * output + unit - 1) / unit;
      if (codec) {
        const Bytes element = size_of(m_problem->options().activation);
        bytes =
            heddle::impl::encoded_bytes(codec->type, codec->block, (bytes + element - 1) / element);
      }
      m_traffic[0].add(from.ranks()[i], to.ranks()[j], static_cast<double>(bytes));
      m_traffic[1].add(to.ranks()[j], from.ranks()[i], static_cast<double>(bytes));
      begin = end;
      const bool next = sent == end, next_there = received == end;
      if (next && ++i == from.ranks().size()) break;
      if (next_there && ++j == to.ranks().size()) break;
      if (next) grow(sent, from, i, there);
      if (next_there) grow(received, to, j, here);
    }
    return {m_traffic[0].time(), m_traffic[1].time()};
  }

 private:
  const PlanProblem* m_problem;
  TrafficRound m_traffic[2];
};

}  // namespace heddle::inline v0::plan::impl
