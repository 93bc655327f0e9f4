// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory of the ranks of a stage: what they keep of their microbatches, the buffer of a sum of
/// gradients, and the state of the weights.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// The most microbatches that a stage keeps.
struct KeptMicrobatches {
  std::int64_t live = 0;    ///< between F and B
  std::int64_t split = 0;   ///< between I and W
  std::int64_t inputs = 0;  ///< inputs that have arrived, if there are enough microbatches
};

/// Returns the greater of both, number by number.
[[nodiscard]] inline KeptMicrobatches most_of(const KeptMicrobatches& a,
                                              const KeptMicrobatches& b) {
  return {std::max(a.live, b.live), std::max(a.split, b.split), std::max(a.inputs, b.inputs)};
}

/// Returns KeptMicrobatches::inputs. An input is kept until its backward, another one arrives
/// meanwhile, and one may arrive early. The stage before, of which `live_before` microbatches are
/// live, sends no more than these and one that is early.
[[nodiscard]] inline std::int64_t arrived_inputs(std::int64_t live_before, std::int64_t live) {
  return std::max(live_before + 1, live + 2);
}

/// The numbers that the stages of a schedule keep: microbatches between F and B, and between I and
/// W, by stage.
struct KeptByStage {
  std::vector<std::int64_t> live, split;

  /// Returns what stage `s` keeps.
  [[nodiscard]] KeptMicrobatches at(std::size_t s) const {
    return {live[s], split[s], arrived_inputs(s == 0 ? 0 : live[s - 1], live[s])};
  }
};

/// The slots of the message buffers of a rank in all, of the size of the stage's input and of its
/// output. They equal those of schedule::fold() with a slack of one if backwards are whole, and are
/// at most one output above them if backwards are split.
struct MessageSlots {
  std::int64_t input = 0;   ///< slots of inputs and their gradients
  std::int64_t output = 0;  ///< slots of outputs and their gradients
};

/// Returns the slots of a stage. The gradient of an output is kept until W. A message is sent from
/// one slot while the next one is written. The first stage receives no input, and the last one
/// sends none. No buffer has more slots than there are microbatches, unless messages may be cast:
/// then additional slots stand for the encoded messages, which are at most half as large.
[[nodiscard]] inline MessageSlots message_slots(const KeptMicrobatches& kept,
                                                std::int64_t microbatches, bool first, bool last,
                                                bool casts) {
  const auto slots = [&](std::int64_t wanted) {
    return casts ? wanted : std::min(microbatches, wanted);
  };
  const std::int64_t back = kept.live > 0 ? 1 : 0;  // forward passes alone have no gradients
  return {.input = first ? 0 : slots(kept.inputs) + back * slots(2),
          .output = last ? 0 : slots(2) + back * slots(kept.split + 2)};
}

/// Returns true if a message has a format other than that of its values.
[[nodiscard]] inline bool any_cast(const std::vector<std::optional<Codec>>& codecs) {
  return std::ranges::any_of(codecs, [](const auto& codec) { return codec.has_value(); });
}

/// The bytes of a stage on one of its ranks, for one sample.
struct SampleBytes {
  double saved = 0;  ///< what F saves for B, of all layers
  double delta = 0;  ///< what I leaves for W
  Bytes input = 0;   ///< one sample enters with these; in messages a tensor degree divides them
  Bytes output = 0;  ///< one sample leaves with these; in messages a tensor degree divides them
};

/// Returns the bytes that a rank keeps of its microbatches, for one sample. A stage that recomputes
/// keeps inputs instead of what F saves, but for one microbatch; only the first stage keeps them
/// outside of its messages.
[[nodiscard]] inline double kept_bytes(const SampleBytes& each, const KeptMicrobatches& kept,
                                       const MessageSlots& slots, int tensor, bool first,
                                       bool recompute) {
  const auto of = [](std::int64_t count, auto bytes) {
    return static_cast<double>(count) * static_cast<double>(bytes);
  };
  double saved = of(kept.live, each.saved);
  if (recompute) saved = (kept.live > 0 ? each.saved : 0) + (first ? of(kept.live, each.input) : 0);
  const double messages = of(slots.input, each.input) + of(slots.output, each.output);
  return saved + of(kept.split, each.delta) + messages / tensor;
}

/// Returns the bytes of the buffer through which a ring of `ranks` ranks sums gradients of whole
/// elements of `element` bytes. A rank receives a part in each of ranks - 1 steps. Parts of equal
/// sizes share two slots, unequal ones have a slot each. One rank sums nothing.
[[nodiscard]] inline double ring_bytes(Bytes gradients, std::size_t ranks, Bytes element) {
  if (ranks < 2) return 0;
  const Bytes elements = (gradients + element - 1) / element, parts = static_cast<Bytes>(ranks);
  const Bytes part = elements / parts;
  const Bytes kept = elements % parts == 0 ? std::min<Bytes>(parts - 1, 2) * part : elements - part;
  return static_cast<double>(kept * element);
}

/// Returns true if a sharding knows nodes or encodes its messages, so that it is no stage of ZeRO.
/// @throws contract_error if there is no such sharding.
[[nodiscard]] inline bool in_levels(std::string_view sharding) {
  if (sharding.empty()) return false;
  const ParameterSharding how = ParameterSharding::find(sharding);
  const auto in_groups = [](ShardLevel level) {
    return level == ShardLevel::pair || level == ShardLevel::node;
  };
  return in_groups(how.weights) || in_groups(how.gradients) || how.backward || how.weight_codec ||
         how.gradient_codec;
}

/// Returns the stage of ZeRO of a sharding: 1 divides what the optimiser remembers, 2 also the
/// gradients, and 3 also the weights, over all ranks with the same weights. 0: any other sharding.
[[nodiscard]] inline int zero_stage(std::string_view sharding) {
  if (sharding == "zero1") return 1;
  if (sharding == "zero2") return 2;
  return sharding == "zero3" ? 3 : 0;
}

/// The bytes that a rank keeps of a stage, for each byte of weights.
struct KeptState {
  double own = 0;   ///< weights, gradients and what the optimiser remembers
  double room = 0;  ///< the whole weights and gradients of the bucket that computes, if they travel
};

/// Returns what a rank keeps of a stage. With a sharding, this is what ParameterShards and its
/// ShardRoom keep: the optimiser's weights and what it remembers over all ranks, gradients and
/// weights at their levels, and a second copy.
[[nodiscard]] inline KeptState state_of(const Plan& plan, const PlanStage& stage, double state) {
  if (plan.sharding.empty()) return {.own = state};
  const auto sharers = static_cast<double>(stage.ranks.size()) / stage.tensor;
  const ParameterSharding how = ParameterSharding::find(plan.sharding);
  const auto ranks = [&](ShardLevel level) {
    const double node = plan.shard_node == 0 ? sharers : plan.shard_node;
    const double all[] = {1, static_cast<double>(std::max(plan.shard_pair, 1)), node, sharers};
    return all[static_cast<std::size_t>(level)];
  };
  const double gradients = std::clamp(state - 1, 0.0, 1.0), remembered = std::max(state - 2, 0.0);
  KeptState kept{.own = gradients / ranks(how.gradients) + (1 + remembered) / sharers};
  if (how.backward) kept.own += 1 / ranks(*how.backward);
  if (ranks(how.weights) < sharers) kept.own += 1 / ranks(how.weights);
  if (ranks(how.weights) > 1) kept.room += 1;
  if (ranks(how.gradients) > 1) kept.room += gradients;
  return kept;
}

/// Returns the most microbatches of a rank between I and W.
[[nodiscard]] inline std::int64_t most_split(const std::vector<Order>& orders) {
  std::int64_t now = 0, most = 0;
  for (const Order& order : orders) {
    if (order.kind == Kind::backward_input) most = std::max(most, ++now);
    if (order.kind == Kind::backward_weight) --now;
  }
  return most;
}

}  // namespace heddle::inline v0::plan::impl
