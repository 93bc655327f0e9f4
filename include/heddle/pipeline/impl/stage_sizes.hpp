// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The buffers of a schedule get the sizes that its stages say, if those fit each other. For
/// Stages; looks at nothing that differs between ranks, so that all of them refuse alike.

#include <algorithm>
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
#include <heddle/pipeline/impl/stage_ends.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/message_sizes.hpp>
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
               action_text(schedule, id)),
          std::move(fix)};
}

/// Refuses schedules in which a stage has other inputs and outputs than its sizes say, has its uses
/// in another order than weave() states, or does not keep what its backward calls need. Without
/// backward passes it keeps nothing, and where it hands on to nobody its output is the result.
inline void check_ends(const Schedule& schedule, const SizesOfRanks& sizes) {
  const bool trains = std::ranges::any_of(schedule.actions(), [](const Action& action) {
    return action.kind == Kind::backward_input || action.kind == Kind::backward;
  });
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind > Kind::backward) continue;
    if (const Use* const use = misplaced_use(schedule, ActionId{i}))
      throw contract_error(complaint_of_stage(
          schedule, ActionId{i},
          text("the use of '", schedule[schedule[use->buffer].label],
               "' of an action comes after another use that it must precede"),
          "keep the order of uses that weave() states, by which stages find their memory"));
    const StageElements& stage = sizes.of(schedule[action.queue].from, action.stage);
    const StageEnds ends = stage_ends(schedule, ActionId{i});
    const bool forward = action.kind == Kind::forward;
    const std::size_t beyond = forward ? ends.outputs : ends.returned + ends.partners;
    const bool more = (stage.input == 0 && ends.inputs > 0) || (stage.output == 0 && beyond > 0) ||
                      ends.partners > stage.partners || (ends.partners > 0 && ends.returned > 0);
    const bool fewer =
        (stage.input > 0 && ends.inputs == 0) || (trains && stage.output > 0 && beyond == 0);
    expects(!more && !fewer, [&] {
      return complaint_of_stage(
          schedule, ActionId{i},
          text("a stage has ", more ? "more" : "fewer", " inputs or outputs than its calls take"),
          more ? "input_size is 0 for a stage that takes the data; an output has gradients, or "
                 "one partner in the loss, or as many as loss_partners()"
               : "input_size is 0 for the first stage, output_size for the last");
    });
    expects(!trains || ends.saves, [&] {
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
                                                                   const SizesOfRanks& sizes,
                                                                   const SampleRanges& ranges) {
  const std::vector<std::uint32_t> made_in = outputs_of_values(schedule);
  std::vector<std::uint64_t> elements(schedule.buffers().size(), 0);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind > Kind::backward) continue;
    const auto inputs = schedule.uses(ActionId{i}).first(stage_ends(schedule, ActionId{i}).inputs);
    std::uint64_t all = 0;
    std::size_t next = 0;
    for (const Use& use : inputs)
      if (const std::uint32_t from = made_in[+use.buffer]; from != 0xffffffffu) {
        const Buffer& output = schedule[BufferId{from}];
        all += elements[+use.buffer] = elements_of_sample(
            ranges, output.rank, output.stage, sizes.of(output.rank, output.stage).output);
      }
    for (const Use& use : schedule.uses(ActionId{i}))
      if (use.writes() && schedule[schedule[use.buffer].label] == role::input_grad)
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

/// Returns the size that a buffer with this label has, if it is not an input; null if stages have
/// no buffer of this role.
[[nodiscard]] inline SizeOfRole size_of_role(const std::string& label) {
  if (label == role::output || label == role::output_grad || label == role::exchanged)
    return &StageElements::output;
  if (label == role::saved || label == role::parked) return &StageElements::saved;
  if (label == role::delta) return &StageElements::delta;
  if (label == role::weights) return &StageElements::parameters;
  if (label == role::gradients) return &StageElements::gradients;
  return nullptr;
}

/// The schedule with buffers of `type` and of the sizes of all stages, by their numbers.
/// @throws contract_error where they do not fit each other, or the schedule.
[[nodiscard]] inline Schedule with_stage_sizes(const Schedule& schedule, const SizesOfRanks& sizes,
                                               Scalar type) {
  check_ends(schedule, sizes);
  const SampleRanges ranges(schedule);
  const std::vector<std::uint64_t> of_inputs = elements_of_inputs(schedule, sizes, ranges);
  auto bind = [&, next = std::size_t{0}](Buffer& buffer) mutable {
    const std::string& label = schedule[buffer.label];
    const std::uint64_t input = of_inputs[next++];
    if (label == role::narrow || label == role::residual) return;
    const bool is_input = label == role::input || label == role::input_grad;
    const auto size = size_of_role(label);
    expects(is_input || size != nullptr, [&] {
      return ErrorInfo{"heddle::Stages", "stages have no storage with this label",
                       text("'", label, "' of stage ", buffer.stage)};
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
