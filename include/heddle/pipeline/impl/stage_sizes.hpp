// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The buffers of a schedule get the sizes that its stages say, if those fit each other. For
/// Stages; looks at nothing that differs between ranks, so that all of them refuse alike.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/sample_ranges.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/internal/use_roles.hpp>
#include <heddle/schedule/message_sizes.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// The sizes of the stages of every rank.
class SizesOfRanks {
 public:
  explicit SizesOfRanks(std::vector<std::vector<StageElements>> by_rank)
      : m_by_rank(std::move(by_rank)) {}

  /// Returns the sizes of `stage` on `rank`. If this rank only passes the stage's output on, it
  /// returns the sizes on any rank that holds the stage.
  [[nodiscard]] const StageElements& of(Rank rank, Stage stage) const {
    if (const StageElements* const here = find(m_by_rank[+rank], stage)) return *here;
    for (const auto& sizes : m_by_rank)
      if (const StageElements* const there = find(sizes, stage)) return *there;
    throw contract_error({"heddle::Stages", "no rank holds a stage", text("stage ", stage)});
  }

  /// Returns the parts that ranks update of the stages which divide their update among ranks
  /// themselves, for elements of `element` bytes.
  [[nodiscard]] std::vector<UpdateShare> update_shares(Bytes element) const {
    std::vector<std::uint32_t> divided;
    for (const auto& sizes : m_by_rank)
      for (const StageElements& each : sizes)
        if (each.first_owned > 0) divided.push_back(each.stage);
    std::vector<UpdateShare> shares;
    for (std::size_t r = 0; r < m_by_rank.size(); ++r)
      for (const StageElements& each : m_by_rank[r])
        if (std::find(divided.begin(), divided.end(), each.stage) != divided.end())
          shares.push_back({Rank{r}, Stage{each.stage}, each.first_owned * element,
                            each.parameters * element, each.owned_at * element});
    return shares;
  }

 private:
  [[nodiscard]] static const StageElements* find(const std::vector<StageElements>& sizes,
                                                 Stage stage) {
    for (const StageElements& each : sizes)
      if (each.stage == stage.value) return &each;
    return nullptr;
  }

  std::vector<std::vector<StageElements>> m_by_rank;
};

[[nodiscard]] inline ErrorInfo complaint_of_stage(const Schedule& schedule, ActionId id,
                                                  std::string what, std::string fix) {
  return {"heddle::Stages", std::move(what),
          text("stage ", schedule[id].stage, " of '", schedule.name(), "', ",
               schedule::action_text(schedule, id)),
          std::move(fix)};
}

/// The number of uses of each role that an action has.
class UseCounts {
 public:
  UseCounts(const Schedule& schedule, const UseRoles& roles, ActionId id) {
    for (const Use& use : schedule.uses(id))
      ++m_counts[static_cast<std::size_t>(roles.of(schedule[id].kind, use))];
  }
  [[nodiscard]] std::size_t operator[](Role role) const {
    return m_counts[static_cast<std::size_t>(role)];
  }

 private:
  std::array<std::size_t, static_cast<std::size_t>(Role::slice_grads) + 1> m_counts = {};
};

/// Returns the uses of action `id` that have `role`, in their order.
[[nodiscard]] inline std::vector<Use> uses_with(const Schedule& schedule, const UseRoles& roles,
                                                ActionId id, Role role) {
  std::vector<Use> found;
  for (const Use& use : schedule.uses(id))
    if (roles.of(schedule[id].kind, use) == role) found.push_back(use);
  return found;
}

/// Returns the buffer in which the value of each buffer was computed as the output of a stage, if
/// it holds an output or a message that carries one. Returns 0xffffffff for other buffers.
[[nodiscard]] inline std::vector<std::uint32_t> outputs_of_values(const Schedule& schedule,
                                                                  const UseRoles& roles) {
  std::vector<std::uint32_t> outputs(schedule.buffers().size(), 0xffffffffu);
  for (std::size_t b = 0; b < outputs.size(); ++b)
    if (roles.of(schedule[BufferId{b}]) == Role::output) outputs[b] = static_cast<std::uint32_t>(b);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind != Kind::move && action.kind != Kind::cast) continue;
    const auto uses = schedule.uses(ActionId{i});
    const std::uint32_t carried = outputs[+uses[0].buffer];
    if (carried != 0xffffffffu) outputs[+uses[1].buffer] = carried;
  }
  return outputs;
}

/// Throws contract_error if a stage has other inputs and outputs in `schedule` than its sizes say,
/// if an action lacks the weights, or if a schedule that trains does not keep what its backward
/// calls need. Without backward passes a stage keeps nothing, and an output that no other stage
/// uses is the result.
inline void check_ends(const Schedule& schedule, const UseRoles& roles, const SizesOfRanks& sizes) {
  const bool trains = std::ranges::any_of(schedule.actions(), [](const Action& action) {
    return action.kind == Kind::backward_input || action.kind == Kind::backward;
  });
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind > Kind::backward && action.kind != Kind::update) continue;
    const UseCounts uses(schedule, roles, ActionId{i});
    const bool updates = action.kind == Kind::update;
    expects(std::ranges::any_of(schedule.uses(ActionId{i}),
                                [&](const Use& use) {
                                  return roles.of(action.kind, use) == Role::weights &&
                                         use.writes() == updates;
                                }),
            [&] {
              return complaint_of_stage(schedule, ActionId{i},
                                        text("an action of a stage does not ",
                                             updates ? "update" : "read", " its weights"),
                                        "give it a use of the buffer with the label 'weights'");
            });
    if (updates) continue;
    const StageElements& stage = sizes.of(schedule[action.queue].from, action.stage);
    const bool forward = action.kind == Kind::forward;
    const std::size_t inputs = uses[Role::input], partners = uses[Role::exchanged];
    const std::size_t returned = uses[Role::output_grad];
    const std::size_t beyond = forward ? uses[Role::output] : returned + partners;
    const bool more = (stage.input == 0 && inputs > 0) || (stage.output == 0 && beyond > 0) ||
                      partners > stage.partners || (partners > 0 && returned > 0);
    const bool fewer =
        (stage.input > 0 && inputs == 0) || (trains && stage.output > 0 && beyond == 0);
    expects(!more && !fewer, [&] {
      return complaint_of_stage(
          schedule, ActionId{i},
          text("a stage has ", more ? "more" : "fewer", " inputs or outputs than its calls take"),
          more ? "input_size is 0 for a stage that takes the data; an output has gradients, or "
                 "one partner in the loss, or as many as loss_partners()"
               : "input_size is 0 for the first stage, output_size for the last");
    });
    expects(!trains || uses[Role::saved] > 0, [&] {
      return complaint_of_stage(
          schedule, ActionId{i}, "a schedule that trains keeps nothing for a stage's backward call",
          "give its F, I, W and B a buffer of the role 'saved', as weave() does");
    });
  }
}

/// Returns the elements of one sample of `stage` on `rank`, which has `elements` elements for its
/// samples of a microbatch. Without shares, a microbatch counts as one sample.
[[nodiscard]] inline std::uint64_t elements_of_sample(const SampleRanges& ranges, Rank rank,
                                                      Stage stage, std::uint64_t elements) {
  const auto samples = static_cast<std::uint64_t>(ranges.of(rank, stage).size());
  if (samples == 0) return elements;
  expects(elements % samples == 0, [&] {
    return ErrorInfo{"heddle::Stages", "a stage does not have whole elements for every sample",
                     text("stage ", stage, " on rank ", rank, ": ", elements, " elements for ",
                          samples, " samples"),
                     "make the stage for StagePlace::samples"};
  });
  return elements / samples;
}

/// The elements of each buffer that holds an input or the gradient of one, for one sample if the
/// buffer has granules. An input has the size of the output that it is; together they must have the
/// size that their stage says.
[[nodiscard]] inline std::vector<std::uint64_t> elements_of_inputs(const Schedule& schedule,
                                                                   const UseRoles& roles,
                                                                   const SizesOfRanks& sizes,
                                                                   const SampleRanges& ranges) {
  const std::vector<std::uint32_t> made_in = outputs_of_values(schedule, roles);
  std::vector<std::uint64_t> elements(schedule.buffers().size(), 0);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind > Kind::backward) continue;
    const std::vector<Use> inputs = uses_with(schedule, roles, ActionId{i}, Role::input);
    std::uint64_t all = 0;
    std::size_t next = 0;
    for (const Use& use : inputs)
      if (const std::uint32_t from = made_in[+use.buffer]; from != 0xffffffffu) {
        const Buffer& output = schedule[BufferId{from}];
        all += elements[+use.buffer] = elements_of_sample(
            ranges, output.rank, output.stage, sizes.of(output.rank, output.stage).output);
      }
    for (const Use& use : uses_with(schedule, roles, ActionId{i}, Role::input_grad))
      elements[+use.buffer] = elements[+inputs[next++].buffer];
    const Rank rank = schedule[action.queue].from;
    const std::uint64_t taken =
        elements_of_sample(ranges, rank, action.stage, sizes.of(rank, action.stage).input);
    expects(all == taken, [&] {
      return complaint_of_stage(
          schedule, ActionId{i},
          text("the inputs of a stage have ", all, " elements, its input_size is ", taken),
          "several inputs come one after the other, as the graph has them");
    });
  }
  return elements;
}

/// A field of StageElements. It has a name, for nvcc writes a function that returns the bare type
/// with parentheses, of which g++ warns.
using SizeOfRole = std::uint64_t StageElements::*;

/// Returns the size that a buffer of this role has if it is no input, or null if stages have no
/// such buffer.
[[nodiscard]] inline SizeOfRole size_of_role(Role role) {
  switch (role) {
    case Role::output:
    case Role::output_grad:
    case Role::exchanged: return &StageElements::output;
    case Role::saved:
    case Role::parked: return &StageElements::saved;
    case Role::delta: return &StageElements::delta;
    case Role::weights: return &StageElements::parameters;
    case Role::gradients: return &StageElements::gradients;
    default: return nullptr;
  }
}

/// The schedule with buffers of `type` and of the sizes of all stages, by their numbers.
/// @throws contract_error where they do not fit each other, or the schedule.
[[nodiscard]] inline Schedule with_stage_sizes(const Schedule& schedule, const SizesOfRanks& sizes,
                                               Scalar type) {
  const UseRoles roles(schedule);
  check_ends(schedule, roles, sizes);
  const SampleRanges ranges(schedule);
  const std::vector<std::uint64_t> of_inputs = elements_of_inputs(schedule, roles, sizes, ranges);
  auto bind = [&, next = std::size_t{0}](Buffer& buffer) mutable {
    const Role role = roles.of(buffer);
    const std::uint64_t input = of_inputs[next++];
    if (role == Role::narrow || role == Role::residual || role == Role::slice_grads) return;
    const bool is_input = role == Role::input || role == Role::input_grad;
    const auto size = size_of_role(role);
    expects(is_input || size != nullptr, [&] {
      return ErrorInfo{"heddle::Stages", "stages have no storage with this label",
                       text("'", schedule[buffer.label], "' of stage ", buffer.stage)};
    });
    const std::uint64_t elements = is_input ? input : sizes.of(buffer.rank, buffer.stage).*size;
    buffer.type = type;
    if (buffer.granules != nullptr)
      return size_by_samples(
          buffer,
          size_of(type) *
              (is_input ? input : elements_of_sample(ranges, buffer.rank, buffer.stage, elements)));
    buffer.bytes = elements * size_of(type) * buffer.parts;
  };
  return with_message_sizes(schedule.with_sizes(bind));
}

}  // namespace heddle::inline v0::impl
