// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Prints "0-3" or "2".
inline void print_range(std::ostream& out, std::uint64_t first, std::uint64_t last) {
  out << first;
  if (last != first) out << '-' << last;
}

/// Prints "ranks 0-3 8".
inline void print_ranks(std::ostream& out, const std::vector<Rank>& ranks) {
  out << (ranks.size() == 1 ? "rank" : "ranks");
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && +ranks[end] == +ranks[end - 1] + 1) ++end;
    out << ' ';
    print_range(out, +ranks[begin], +ranks[end - 1]);
    begin = end;
  }
}

/// Prints "a step takes 2 s; bytes: ranks 0-3 1000, rank 4 500", without ranks that need none.
inline void print_prediction(std::ostream& out, const PlanPrediction& prediction) {
  out << "a step takes " << prediction.step << " s";
  const std::vector<Bytes>& memory = prediction.memory;
  const char* separator = "; bytes: ";
  for (std::size_t begin = 0; begin < memory.size();) {
    std::size_t end = begin + 1;
    while (end < memory.size() && memory[end] == memory[begin]) ++end;
    if (memory[begin] > 0) {
      out << separator << (end - begin == 1 ? "rank " : "ranks ");
      print_range(out, begin, end - 1);
      out << ' ' << memory[begin];
      separator = ", ";
    }
    begin = end;
  }
}

/// Checks plans, and names the stage of a wrong entry.
class PlanCheck {
 public:
  PlanCheck(const Plan& plan, int layers, int ranks)
      : m_plan(&plan), m_layers(layers), m_owner(ranks < 0 ? 0 : static_cast<std::size_t>(ranks)) {}

  void run() {
    need(
        !m_plan->stages.empty(), "a plan has at least one stage", [] { return text("stages: 0"); },
        "add a stage with all layers");
    need(m_plan->microbatches >= 1, "a step has at least one microbatch",
         [&] { return text("microbatches = ", m_plan->microbatches); });
    need(
        !m_plan->schedule.empty(), "a plan names a schedule", [] { return std::string("''"); },
        "use a name of schedule::catalogue(), such as 1f1b");
    need(
        m_plan->buckets >= 1, "a stage has at least one bucket",
        [&] { return text("buckets = ", m_plan->buckets); },
        "use 1 to sum gradients behind the whole backward");
    for (std::size_t s = 0; s < m_plan->stages.size(); ++s) check_stage(s);
    need(m_next == m_layers, "the stages must hold all layers of the model",
         [&] { return text("they end behind ", m_next, " of ", m_layers, " layers"); });
    const std::vector<std::optional<Codec>>& casts = m_plan->casts;
    need(casts.empty() || casts.size() + 1 == m_plan->stages.size(),
         "a plan has no casts, or one for each cut",
         [&] { return text(casts.size(), " casts for ", m_plan->stages.size() - 1, " cuts"); });
    for (const auto& cast : casts)
      if (cast) heddle::check(*cast);
    need(m_plan->shard_node >= 0 && m_plan->shard_pair >= 0,
         "a node and a pair have at least one rank, or 0 for the default", [&] {
           return text("shard_node = ", m_plan->shard_node, ", shard_pair = ", m_plan->shard_pair);
         });
    using enum SequenceMethod;
    const SequenceMethod method = m_plan->attention;
    expect_enumerator(where, "attention", method, automatic);
    need(
        method == ring || method == rsa || method == ulysses,
        "a plan does not say which axes divide the ranks of a sequence",
        [&] { return text("attention = ", method); }, "use ring, rsa or ulysses");
    if (m_plan->prediction) check_prediction(*m_plan->prediction);
  }

 private:
  static constexpr const char* where = "heddle::check(Plan)";
  static constexpr std::int64_t most_samples = 1'000'000'000'000;

  template <class Why>
  static void need(bool ok, const char* what, const Why& why, const char* fix = "") {
    expects(ok, [&] { return ErrorInfo{where, what, why(), fix}; });
  }

  void check_stage(std::size_t s) {
    const PlanStage& stage = m_plan->stages[s];
    need(stage.layers.first == m_next, "the stages must hold all layers, without gap or overlap",
         [&] {
           return text("stage ", s, " begins with layer ", stage.layers.first, ", expected ",
                       m_next);
         });
    need(stage.layers.last > stage.layers.first, "a stage has at least one layer", [&] {
      return text("stage ", s, ": layers ", stage.layers.first, " to ", stage.layers.last);
    });
    need(
        stage.layers.last <= m_layers, "the model has fewer layers than the plan",
        [&] {
          return text("stage ", s, " ends behind ", stage.layers.last, " of ", m_layers, " layers");
        },
        "use the profile of the model that was planned");
    m_next = stage.layers.last;
    check_groups(s, stage);
    check_ranks(s, stage);
  }

  void check_groups(std::size_t s, const PlanStage& stage) {
    need(stage.tensor >= 1 && stage.sequence >= 1, "a degree is at least 1", [&] {
      return text("stage ", s, ": tensor ", stage.tensor, ", sequence ", stage.sequence);
    });
    const std::size_t degree =
        static_cast<std::size_t>(stage.tensor) * static_cast<std::size_t>(stage.sequence);
    need(
        !stage.samples.empty() && stage.ranks.size() == stage.groups() * degree,
        "a stage consists of whole groups of ranks, and each has its samples",
        [&] {
          return text("stage ", s, " has ", stage.ranks.size(), " ranks, expected ", stage.groups(),
                      " groups of ", stage.tensor, " x ", stage.sequence);
        },
        "give one number of samples for each tensor * sequence ranks");
    std::int64_t sum = 0;
    for (std::size_t g = 0; g < stage.groups(); ++g) {
      need(
          stage.samples[g] >= 1 && stage.samples[g] <= most_samples,
          "a group has at least one sample, and at most 10^12",
          [&] { return text("stage ", s, ", group ", g, ": samples ", stage.samples[g]); },
          "leave its ranks out of the plan if it has none");
      sum += stage.samples[g];
    }
    if (s == 0) {
      m_samples = sum;
      return;
    }
    need(sum == m_samples, "all stages must have the same samples of a microbatch",
         [&] { return text("stage ", s, " has ", sum, ", stage 0 has ", m_samples); });
  }

  void check_ranks(std::size_t s, const PlanStage& stage) {
    for (const Rank rank : stage.ranks) {
      need(
          +rank < m_owner.size(), "no such rank",
          [&] { return text("stage ", s, ": rank ", rank, " of ", m_owner.size()); },
          "use the machine that was planned for");
      std::optional<std::size_t>& owner = m_owner[+rank];
      need(!owner, "a rank can be in a plan only once",
           [&] { return text("rank ", rank, " is in stage ", *owner, " and again in stage ", s); });
      owner = s;
    }
  }

  void check_prediction(const PlanPrediction& prediction) {
    constexpr const char* fix = "predict again with plan::predict(), or remove the prediction";
    need(
        std::isfinite(prediction.step) && prediction.step >= 0,
        "the predicted time of a step must be finite and at least 0",
        [&] { return text(prediction.step, " s"); }, fix);
    std::size_t used = 0;  // ranks up to the highest of the plan
    for (const PlanStage& stage : m_plan->stages)
      for (const Rank rank : stage.ranks) used = std::max(used, +rank + std::size_t{1});
    const std::size_t known = prediction.memory.size();
    need(
        known == 0 || known >= used, "a prediction has the bytes of all ranks of the plan, or none",
        [&] { return text("bytes of ", known, " ranks; the plan has ranks up to ", used - 1); },
        fix);
  }

  const Plan* m_plan;
  int m_layers;
  int m_next = 0;                                   // the first layer without a stage
  std::int64_t m_samples = 0;                       // of a microbatch, in stage 0
  std::vector<std::optional<std::size_t>> m_owner;  // by rank: its stage
};

}  // namespace impl

HEDDLE_INLINE bool operator==(const Plan& a, const Plan& b) {
  const auto members = [](const Plan& p) {
    return std::tie(p.stages, p.microbatches, p.schedule, p.casts, p.sharding, p.shard_node,
                    p.shard_pair, p.attention, p.buckets);
  };
  return members(a) == members(b);
}

HEDDLE_INLINE std::int64_t Plan::microbatch_samples() const {
  std::int64_t sum = 0;
  if (!stages.empty())
    for (const std::int64_t samples : stages.front().samples) sum += samples;
  return sum;
}

HEDDLE_INLINE int Plan::bucket_count() const {
  int count = buckets;
  for (const PlanStage& stage : stages) count = std::min(count, stage.layers.size());
  return std::max(count, 1);
}

HEDDLE_INLINE const std::optional<Codec>& Plan::cast_after(std::size_t stage) const {
  static const std::optional<Codec> none;
  return stage < casts.size() ? casts[stage] : none;
}

namespace impl {

/// Prints the samples of the groups of a stage. Of more than eight groups, neighbours with equal
/// samples are counted.
inline void print_samples(std::ostream& out, const PlanStage& stage) {
  constexpr std::size_t few = 8;
  const std::span<const std::int64_t> samples = stage.samples;
  if (samples.size() <= few) {
    for (const std::int64_t of_group : samples) out << ' ' << of_group;
    return;
  }
  const bool single = stage.ranks.size() == samples.size();
  for (std::size_t first = 0; first < samples.size();) {
    const auto rest = samples.subspan(first);
    const auto equal = static_cast<std::size_t>(
        std::ranges::find_if(rest, [&](std::int64_t other) { return other != rest[0]; }) -
        rest.begin());
    const char* const unit = single ? "rank" : "group";
    out << ' ' << rest[0] << " (" << equal << ' ' << unit << (equal == 1 ? ")" : "s)");
    first += equal;
  }
}

}  // namespace impl

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  out << plan.schedule << ", " << plan.microbatches
      << (plan.microbatches == 1 ? " microbatch of " : " microbatches of ")
      << plan.microbatch_samples() << (plan.microbatch_samples() == 1 ? " sample" : " samples");
  if (!plan.sharding.empty()) out << ", sharding " << plan.sharding;
  if (plan.shard_node != 0) out << ", nodes of " << plan.shard_node;
  if (plan.shard_pair != 0) out << ", pairs of " << plan.shard_pair;
  if (plan.attention != SequenceMethod::ring) out << ", attention " << plan.attention;
  if (plan.buckets != 1) out << ", " << plan.buckets << " buckets";
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    out << "\nstage " << s << ": " << (stage.layers.size() == 1 ? "layer " : "layers ")
        << stage.layers.first;
    if (stage.layers.size() != 1) out << '-' << stage.layers.last - 1;
    out << ", ";
    impl::print_ranks(out, stage.ranks);
    impl::print_samples(out << ", samples", stage);
    if (stage.tensor != 1) out << ", tensor degree " << stage.tensor;
    if (stage.sequence != 1) out << ", sequence degree " << stage.sequence;
    if (stage.recompute) out << ", recompute";
    if (plan.cast_after(s)) out << ", sends " << *plan.cast_after(s);
  }
  if (plan.prediction) impl::print_prediction(out << "\npredicted: ", *plan.prediction);
  return out;
}

HEDDLE_INLINE std::uint64_t hash(const Plan& plan) {
  std::uint64_t state = fnv1a(plan.schedule);
  const auto mix = [&state](auto... numbers) {
    const std::uint64_t words[] = {static_cast<std::uint64_t>(numbers)...};
    for (const std::uint64_t word : words) {
      state = (state ^ word) * 0x100000001b3u;
      state ^= std::rotl(state, 29);  // because a product moves bits up only
    }
  };
  mix(fnv1a(plan.sharding), plan.microbatches, plan.stages.size(), plan.casts.size());
  for (const PlanStage& stage : plan.stages) {
    mix(stage.layers.first, stage.layers.last, stage.tensor, stage.sequence, stage.recompute,
        stage.ranks.size(), stage.samples.size());
    for (const Rank rank : stage.ranks) mix(+rank);
    for (const std::int64_t samples : stage.samples) mix(samples);
  }
  for (const auto& cast : plan.casts) {
    mix(cast.has_value());
    if (cast) mix(cast->type, cast->block, cast->feedback, cast->agree);
  }
  // Plans without these members have the hash that they had before there were such members.
  if (plan.shard_node != 0 || plan.shard_pair != 0) mix(1, plan.shard_node, plan.shard_pair);
  if (plan.attention != SequenceMethod::ring) mix(2, plan.attention);
  if (plan.buckets != 1) mix(3, plan.buckets);
  return state;
}

namespace schedule {

HEDDLE_INLINE Plan in_buckets(const Plan& plan) {
  Plan result = plan;
  result.stages.clear();
  result.casts.clear();
  result.buckets = 1;
  const int count = plan.bucket_count();
  if (count > 1) result.prediction.reset();  // it is that of the stages
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const int layers = stage.layers.size();
    int first = stage.layers.first;
    for (int b = 0; b < count; ++b) {
      if (s > 0 || b > 0) result.casts.emplace_back(b == 0 ? plan.cast_after(s - 1) : std::nullopt);
      PlanStage& bucket = result.stages.emplace_back(stage);
      bucket.layers = {first, first + heddle::impl::even_count(layers, count, b)};
      first = bucket.layers.last;
    }
  }
  if (plan.casts.empty()) result.casts.clear();
  return result;
}

}  // namespace schedule

HEDDLE_INLINE void impl::check_alone(const Plan& plan, int layers) {
  std::size_t ranks = 0;
  for (const PlanStage& stage : plan.stages)
    for (const Rank rank : stage.ranks) ranks = std::max(ranks, +rank + std::size_t{1});
  heddle::check(plan, layers, static_cast<int>(std::min<std::size_t>(ranks, most_rank + 1)));
}

HEDDLE_INLINE void check(const Plan& plan, int layers, int ranks) {
  impl::PlanCheck(plan, layers, ranks).run();
}

}  // namespace heddle::inline v0
