// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_svg() of a SequencePlan: which ranks compute which sequences of a batch, and for how long.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>

namespace heddle::inline v0::systems {

/// The options of the picture of a SequencePlan.
struct SequenceSvgOptions {
  int width = 960;         ///< pixels; at least 240
  std::string title = {};  ///< empty: "sequence groups"
};

/// Returns a picture of `plan` as SVG, to scale, with ranks downwards and time to the right. Each
/// group is a box over its ranks. Its colour shows its degree, and lines divide it by the tokens of
/// its sequences. Grey areas are idle time. In a browser, the pointer shows the lengths of the
/// sequences of a group.
/// @throws contract_error if the width is below 240 pixels, or if the plan has no ranks.
[[nodiscard]] std::string to_svg(const SequencePlan& plan, const SequenceSvgOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/flexsp/sequence_svg.ipp>
#endif
