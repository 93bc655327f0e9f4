// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The uses of a stage's actions, in the order that weave() states.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// How many uses of each kind an action of a stage has, which come in the order that weave()
/// states.
struct StageEnds {
  std::size_t inputs = 0;    ///< the first uses
  std::size_t outputs = 0;   ///< then, of an F
  bool saves = false;        ///< then
  std::size_t returned = 0;  ///< gradients of the output, then, of a backward pass
  std::size_t partners = 0;  ///< outputs of others that share the loss, after those
};

/// The ends of action `id`, an F, I, W or B.
[[nodiscard]] inline StageEnds stage_ends(const Schedule& schedule, ActionId id) {
  StageEnds ends;
  for (const Use& use : schedule.uses(id)) {
    const std::string& label = schedule[schedule[use.buffer].label];
    if (label == role::weights) break;
    if (label == role::saved)
      ends.saves = true;
    else if (ends.saves)
      ++(label == role::output || label == role::exchanged ? ends.partners : ends.returned);
    else
      ++(use.writes() ? ends.outputs : ends.inputs);
  }
  return ends;
}

/// Returns the first use of action `id`, an F, I, W or B, that does not come in the order that
/// weave() states, or null if all do.
[[nodiscard]] inline const Use* misplaced_use(const Schedule& schedule, ActionId id) {
  int last = 0;
  bool saves = false;
  for (const Use& use : schedule.uses(id)) {
    const std::string& label = schedule[schedule[use.buffer].label];
    const bool output = label == role::output, gradient = label == role::input_grad;
    int place = last;
    if (label == role::input || (output && !saves && !use.writes()))
      place = 1;
    else if (output && use.writes())
      place = 2;
    else if (label == role::saved)
      place = 3;
    else if (label == role::output_grad || (gradient && !use.writes()))
      place = 4;
    else if (label == role::exchanged || output)
      place = 5;
    else if (label == role::weights)
      place = 6;
    else if (gradient)
      place = 7;
    else if (label == role::delta)
      place = 8;
    else if (label == role::gradients)
      place = 9;
    if (place < last) return &use;
    last = place;
    saves = saves || place == 3;
  }
  return nullptr;
}

/// The buffer in which each buffer's value was made as the output of a stage, where it is one or a
/// message that carries it; 0xffffffff where it holds something else.
[[nodiscard]] inline std::vector<std::uint32_t> outputs_of_values(const Schedule& schedule) {
  std::vector<std::uint32_t> outputs(schedule.buffers().size(), 0xffffffffu);
  for (std::size_t b = 0; b < outputs.size(); ++b)
    if (schedule[schedule[BufferId{b}].label] == role::output)
      outputs[b] = static_cast<std::uint32_t>(b);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind != Kind::move && action.kind != Kind::cast) continue;
    const auto uses = schedule.uses(ActionId{i});
    const std::uint32_t carried = outputs[+uses[0].buffer];
    if (carried != 0xffffffffu) outputs[+uses[1].buffer] = carried;
  }
  return outputs;
}

}  // namespace heddle::inline v0::impl
