// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_schedule.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/plan_orders.hpp>
#include <heddle/plan/impl/stage_exchange.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/in_shares.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

namespace impl {

/// Throws contract_error if a Schedule cannot express the stages of a plan.
inline void check_degrees(const Plan& plan, const char* where) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const int sequence = plan.stages.front().sequence;
    expects(stage.sequence == sequence, [&] {
      return ErrorInfo{
          where, "a Schedule cannot join stages that divide sequences in different ways",
          text("stage 0 has sequence degree ", sequence, ", stage ", s, " has ", stage.sequence),
          text("give all stages the sequence degree ", sequence, " or 1")};
    });
    for (std::size_t g = 0; g < stage.groups(); ++g)
      expects(stage.samples[g] % stage.tensor == 0, [&] {
        return ErrorInfo{where,
                         "the ranks that divide a layer divide whole samples between the layers",
                         text("stage ", s, ", group ", g, " has ", stage.samples[g],
                              " samples and tensor degree ", stage.tensor),
                         "give each group a multiple of its tensor degree, or search with "
                         "PlanOptions::executable = true"};
      });
  }
}

/// Returns the plan of the ranks that hold part `part` of the sequences. They hand on among
/// themselves, so that the plan has no sequence degree.
[[nodiscard]] inline Plan plan_of_part(Plan plan, int part) {
  for (PlanStage& stage : plan.stages) {
    const auto tensor = static_cast<std::size_t>(stage.tensor);
    const auto group = tensor * static_cast<std::size_t>(stage.sequence);
    std::vector<Rank> ranks;
    for (std::size_t i = tensor * static_cast<std::size_t>(part); i < stage.ranks.size();
         i += group)
      for (std::size_t t = 0; t < tensor; ++t) ranks.push_back(stage.ranks[i + t]);
    stage.ranks = std::move(ranks);
    stage.sequence = 1;
  }
  return plan;
}

/// Returns the samples of each rank of a stage between the layers that its groups divide.
[[nodiscard]] inline std::vector<std::int64_t> samples_between_layers(const PlanStage& stage) {
  std::vector<std::int64_t> all;
  for (const std::int64_t samples : stage.samples)
    all.insert(all.end(), static_cast<std::size_t>(stage.tensor), samples / stage.tensor);
  return all;
}

/// The bytes of the buffers of a stage. A sample is one that a rank has between the layers.
struct StageBytes {
  Bytes input = 0;       ///< a sample
  Bytes output = 0;      ///< a sample
  Bytes saved = 0;       ///< a sample
  Bytes delta = 0;       ///< a sample
  Bytes parameters = 0;  ///< of the part of the stage that a rank holds
};

/// Returns the bytes of a stage, rounded up to whole elements.
[[nodiscard]] inline StageBytes stage_bytes(const PlanStage& stage, const Profile& profile,
                                            Scalar type, double most) {
  const LayerRange layers = stage.layers;
  StageBytes bytes{.input = profile.input_of(layers.first),
                   .output = profile.layers[static_cast<std::size_t>(layers.last) - 1].output,
                   .saved = profile.saved(layers),
                   .parameters = profile.parameters(layers)};
  double delta = 0;
  for (int l = layers.first; l < layers.last; ++l) {
    const ProfiledLayer& layer = profile.layers[static_cast<std::size_t>(l)];
    bytes.delta += layer.delta;
    delta += static_cast<double>(layer.delta);
  }
  // All samples of a step, in as many parts as there are ranks and microbatches.
  for (const auto& [name, size] : {std::pair{"input", static_cast<double>(bytes.input)},
                                   {"output", static_cast<double>(bytes.output)},
                                   {"saved", static_cast<double>(bytes.saved)},
                                   {"delta", delta},
                                   {"parameters", static_cast<double>(bytes.parameters)}})
    expects(size * most < 0x1p62, [&, name = name, size = size] {
      return ErrorInfo{"heddle::plan::schedule", "the bytes of a step do not fit in 62 bits",
                       text(name, " of layers ", layers.first, " to ", layers.last, ": ", size,
                            " bytes, times ", most),
                       "correct the bytes of the profile"};
    });
  // A rank of a group that divides sequences holds a share of them.
  const auto parts = static_cast<Bytes>(stage.sequence) * size_of(type);
  for (Bytes* const each : {&bytes.input, &bytes.output, &bytes.saved, &bytes.delta})
    *each = (*each + parts - 1) / parts * size_of(type);
  // So does a rank of a group that divides layers.
  const auto degree = static_cast<Bytes>(stage.tensor), unit = degree * size_of(type);
  for (Bytes* const each : {&bytes.saved, &bytes.delta, &bytes.parameters})
    *each = (*each + unit - 1) / unit * unit;
  bytes.parameters /= degree;
  return bytes;
}

/// Sets the type and the size of a buffer of a stage with `samples` samples a microbatch.
inline void size_buffer(Buffer& buffer, std::string_view label, const StageBytes& bytes,
                        Scalar type, std::int64_t samples) {
  buffer.type = type;
  Bytes each = bytes.output;  // output, output_grad
  switch (heddle::impl::role_of(label)) {
    case Role::weights:
    case Role::gradients: buffer.bytes = buffer.parts * bytes.parameters; return;
    case Role::input:
    case Role::input_grad: each = bytes.input; break;
    case Role::saved: each = bytes.saved; break;
    case Role::delta: each = bytes.delta; break;
    default: break;
  }
  if (buffer.granules != nullptr)
    heddle::impl::size_by_samples(buffer, each);
  else
    buffer.bytes = buffer.parts * static_cast<Bytes>(samples) * each;
}

/// Returns a schedule with rank r renamed to `places[r]` and with buffers changed by `change`. A
/// group action becomes one sum for each of the `degree(stage)` parts of the stage's weights; a sum
/// over one rank is left out.
template <class Change, class Degree>
[[nodiscard]] Schedule on_ranks(const Schedule& schedule, const std::vector<Rank>& places,
                                int ranks, Change&& change, Degree&& degree) {
  Builder builder(schedule.name(), ranks);
  builder.reserve_actions(schedule.size(), schedule.all_uses().size());
  for (Buffer buffer : schedule.buffers()) {
    change(buffer);
    buffer.rank = places[+buffer.rank];
    buffer.label = builder.label(schedule[buffer.label]);
    builder.add_buffer(buffer);
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const Queue& queue = schedule[action.queue];
    const std::span<const Use> uses = schedule.uses(ActionId{i});
    if (action.kind == Kind::group && degree(action.stage) > 1) {
      const std::size_t parts = degree(action.stage);
      if (uses.size() == parts) continue;
      for (std::size_t t = 0; t < parts; ++t) {
        std::vector<Use> part;
        for (std::size_t u = t; u < uses.size(); u += parts) part.push_back(uses[u]);
        const Rank first = places[+schedule[part.front().buffer].rank];
        builder.add({action.kind, builder.local(first, queue.lane), action.stage, action.item,
                     action.flags, action.units},
                    part);
      }
      continue;
    }
    builder.add({action.kind, builder.queue(places[+queue.from], places[+queue.to], queue.lane),
                 action.stage, action.item, action.flags, action.units},
                uses);
  }
  return std::move(builder).build();
}

}  // namespace impl

HEDDLE_INLINE Schedule schedule(const Plan& plan, const Profile& profile,
                                const ScheduleOptions& options) {
  constexpr const char* where = "heddle::plan::schedule";
  expects(options.ranks >= 0, [&] {
    return ErrorInfo{where, "a Schedule has at least 0 ranks",
                     text("ScheduleOptions::ranks = ", options.ranks),
                     "use 0 for the ranks of the plan"};
  });
  heddle::impl::expect_enumerator(where, "ScheduleOptions::type", options.type, Scalar::i8);
  std::size_t highest = 0;
  for (const PlanStage& stage : plan.stages)
    for (const Rank rank : stage.ranks) highest = std::max(highest, +rank);
  const int ranks = options.ranks > 0 ? options.ranks : static_cast<int>(highest) + 1;
  heddle::check(plan, static_cast<int>(profile.layers.size()), ranks);
  impl::check_degrees(plan, where);

  const int parts = plan.stages.front().sequence;
  const Plan line = impl::plan_of_part(plan, 0);
  std::vector<Rank> places;  // of the ranks of all parts, rank after rank of a line
  for (const PlanStage& stage : line.stages)
    places.insert(places.end(), stage.ranks.begin(), stage.ranks.end());
  const auto of_line = static_cast<int>(places.size());
  const Plan line_buckets = schedule::in_buckets(line),
             buckets = schedule::in_buckets(plan);  // stages as woven
  Orders orders = impl::bucket_orders(line, where);
  const bool divided = std::ranges::any_of(
      line.stages, [](const PlanStage& stage) { return stage.ranks.size() > 1; });
  if (divided) {
    StageShares shares{.samples = plan.microbatch_samples()};
    for (const PlanStage& stage : line_buckets.stages)
      shares.stages.push_back(impl::samples_between_layers(stage));
    orders = schedule::in_shares(std::move(orders), std::move(shares));
  }
  std::vector<impl::StageBytes> bytes;
  for (const PlanStage& stage : buckets.stages)
    bytes.push_back(impl::stage_bytes(stage, profile, options.type,
                                      8.0 * static_cast<double>(plan.microbatches) *
                                          static_cast<double>(plan.microbatch_samples())));
  const Schedule woven = weave(orders);
  const auto size = [&](Buffer& buffer) {
    impl::size_buffer(buffer, woven[buffer.label], bytes[+buffer.stage], options.type,
                      plan.microbatch_samples());
  };
  const auto degree = [&](Stage stage) {
    return static_cast<std::size_t>(buckets.stages[+stage].tensor);
  };
  Schedule made;
  if (parts == 1) {
    made = impl::on_ranks(woven, places, ranks, size, degree);
  } else {
    // A line of ranks for each part of the sequences, with gradients summed over all lines.
    std::vector<Rank> same;
    for (int r = 0; r < of_line; ++r) same.push_back(Rank{r});
    const MeshShape lines({{"pipe", of_line}, {"sequence", parts}});
    made = schedule::data_parallel(impl::on_ranks(woven, same, of_line, size, degree), lines);
    std::vector<Rank> all(static_cast<std::size_t>(lines.size()));
    for (int part = 0; part < parts; ++part) {
      std::size_t at = 0;
      for (const PlanStage& stage : impl::plan_of_part(plan, part).stages)
        for (const Rank rank : stage.ranks)
          all[at++ * static_cast<std::size_t>(parts) + static_cast<std::size_t>(part)] = rank;
    }
    made = impl::on_ranks(
        made, all, ranks, [](const Buffer&) {}, [](Stage) { return std::size_t{1}; });
  }

  const auto recomputes = [&](Stage stage) { return buckets.stages[+stage].recompute; };
  if (std::ranges::any_of(plan.stages, &PlanStage::recompute))
    made = schedule::recompute(made, recomputes);
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max() - 1;
  std::vector<std::size_t> stage_of(static_cast<std::size_t>(ranks), none);
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (const Rank rank : plan.stages[s].ranks) stage_of[+rank] = s;
  for (std::size_t s = 0; s + 1 < plan.stages.size(); ++s)
    if (const std::optional<Codec>& codec = plan.cast_after(s))
      made = schedule::cast_at_cut(made, *codec, [&](Rank from, Rank to) {
        const auto [low, high] = std::minmax(stage_of[+from], stage_of[+to]);
        return low == s && high == s + 1;
      });
  return plan.bucket_count() > 1 ? schedule::eager_updates(made) : made;
}

HEDDLE_INLINE RankCosts::RankCosts(const Plan& plan, const Profile& profile, Machine machine,
                                   Scalar type)
    : m_machine(std::move(machine)), m_times(static_cast<std::size_t>(m_machine.ranks())) {
  check(profile);
  heddle::check(plan, static_cast<int>(profile.layers.size()), m_machine.ranks());
  impl::check_degrees(plan, "heddle::plan::costs");
  heddle::impl::expect_enumerator("heddle::plan::costs", "type", type, Scalar::i8);
  m_stages.resize(m_times.size());
  const Plan buckets = schedule::in_buckets(plan);
  for (std::size_t s = 0; s < buckets.stages.size(); ++s) {
    const PlanStage& stage = buckets.stages[s];
    const auto degree = static_cast<std::size_t>(stage.tensor * stage.sequence);
    const impl::WeightExchange weights =
        impl::weight_exchange(plan, stage, profile, m_machine, type);
    for (const Rank rank : stage.ranks) {
      StageTimes& of_rank = m_stages[+rank];
      if (of_rank.times.empty()) of_rank.first = s;
      of_rank.times.emplace_back();
    }
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const impl::KeyExchange keys =
          impl::key_exchange(plan, stage, i / degree, profile, m_machine);
      LayerTimes& slowest = m_stages[+stage.ranks[i]].times.back();  // of its group
      for (std::size_t j = i / degree * degree; j < (i / degree + 1) * degree; ++j) {
        LayerTimes times =
            profile.times(stage.layers, m_machine.device(stage.ranks[j]), stage.tensor,
                          static_cast<double>(stage.samples[i / degree]) / stage.sequence);
        impl::add_exchange(times, weights, keys);
        for (const auto time :
             {&LayerTimes::forward, &LayerTimes::backward_input, &LayerTimes::backward_weight})
          slowest.*time = std::max(slowest.*time, times.*time);
        if (i == j) slowest.update = times.update;
      }
      m_times[+stage.ranks[i]] += slowest;
    }
    m_sums.push_back(weights.step);
  }
}

HEDDLE_INLINE Seconds RankCosts::time(const Schedule& schedule, ActionId id) const {
  const Action& action = schedule[id];
  const bool sums = action.kind == Kind::group;
  if (!sums && (!schedule::is_work(action.kind) || action.kind == Kind::user)) return 0;
  const Rank rank = schedule[action.queue].from;
  const StageTimes& of_rank = m_stages[+rank];
  expects(
      sums ? +action.stage < m_sums.size() : +action.stage - of_rank.first < of_rank.times.size(),
      [&] {
        return ErrorInfo{
            "heddle::plan::RankCosts", "the schedule is not one of this plan",
            text("action ", id, " is of stage ", action.stage, " on rank ", rank, ", which has ",
                 of_rank.times.size(), " stages from ", of_rank.first, " on")};
      });
  if (sums) return m_sums[+action.stage];
  const LayerTimes& times = of_rank.times[+action.stage - of_rank.first];
  switch (action.kind) {
    case Kind::forward: return times.forward;
    case Kind::backward: return times.backward();
    case Kind::backward_input: return times.backward_input;
    case Kind::backward_weight: return times.backward_weight;
    default: return times.update;
  }
}

HEDDLE_INLINE const LayerTimes& RankCosts::times(Rank rank) const {
  expects(+rank < m_times.size(), [&] {
    return ErrorInfo{"heddle::plan::RankCosts::times", "no such rank",
                     text("rank ", rank, " of ", m_times.size())};
  });
  return m_times[+rank];
}

HEDDLE_INLINE Transfer<Seconds> RankCosts::transfer(const Schedule& schedule, ActionId id) const {
  return heddle::impl::transfer(m_machine, schedule, id);
}

HEDDLE_INLINE Seconds RankCosts::occupancy(const Schedule& schedule, ActionId id,
                                           const Shared& shared) const {
  return shared.occupancy(heddle::impl::moved_bytes(schedule, id));
}

HEDDLE_INLINE RankCosts costs(const Plan& plan, const Profile& profile, const Machine& machine,
                              Scalar type) {
  return {plan, profile, machine, type};
}

}  // namespace heddle::inline v0::plan
