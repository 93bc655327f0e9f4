// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Decides what Stages does with the state of its stages when it builds others. Looks at what all
/// ranks have reported, so that all of them decide alike.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/held_array.hpp>

namespace heddle::inline v0::impl {

/// Returns the arrays of a stage, with layers counted over the whole model.
[[nodiscard]] inline std::vector<HeldArray> arrays_of_stage(AnyStage& stage, LayerRange layers) {
  stage.fence();
  std::vector<HeldArray> held = stage.arrays();
  for (HeldArray& each : held) {
    if (each.info.layer == whole_model) continue;
    expects(each.info.layer >= 0 && each.info.layer < layers.size(), [&] {
      return ErrorInfo{"heddle::Stages", "visit_state() names a layer that the stage does not have",
                       text(each.info.called(), "; the stage has ", layers.size(), " layers"),
                       "count the layers of a stage from 0"};
    });
    each.info.layer += layers.first;
  }
  return held;
}

/// The report of a rank about its stages, in the form in which ranks exchange it.
struct KeptState {
  bool held = false;          ///< it has stages
  bool trained = false;       ///< they have learned
  bool made = false;          ///< it makes new ones
  std::uint32_t stage = 0;    ///< the first new stage that does not name all of its parameters
  std::uint64_t without = 0;  ///< bytes of its parameters without a name; 0 if there is no such one
  std::uint64_t bytes = 0;    ///< bytes of its parameters

  void note(Stage number, Bytes unnamed, Bytes all) {
    if (without == 0 && unnamed > 0) {
      stage = number.value;
      without = unnamed;
      bytes = all;
    }
  }
};

/// Returns true if new stages must get the state of present ones. `named`: whether it has names.
/// @throws contract_error if a new stage does not name all of its parameters, or if state would be
///         lost because it has no names.
[[nodiscard]] inline bool must_carry_state(const std::vector<std::vector<KeptState>>& ranks,
                                           bool named) {
  bool held = false, trained = false, made = false;
  for (const auto& rank : ranks) {
    const KeptState& each = rank[0];
    expects(each.without == 0, [&] {
      return ErrorInfo{
          "heddle::Stages", "visit_state() misses bytes of the parameters",
          text("stage ", each.stage, ": ", each.without, " of ", each.bytes, " bytes have no name"),
          "visit every array of the parameters, with all of its elements"};
    });
    held = held || each.held;
    trained = trained || each.trained;
    made = made || each.made;
  }
  expects(named || !(held && trained && made), [&] {
    return ErrorInfo{"heddle::Stages", "this Runner would drop what the model has learned",
                     "its schedule gives ranks other layers or samples, and the state of the "
                     "stages has no names",
                     "give the stages visit_state() (see HasState), or keep their layers"};
  });
  return named && held && made;
}

}  // namespace heddle::inline v0::impl
