// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_svg() of a SequencePlan: which ranks compute which sequences of a batch, and for how long.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/sequence_groups.hpp>

namespace heddle::inline v0::trace {

/// Size and title of a SequencePlan's picture.
struct SequenceSvgOptions {
  int width = 960;         ///< pixels; at least 240
  std::string title = {};  ///< empty: "sequence groups"
};

/// Returns a picture of `plan` as SVG, to scale: ranks downwards, time to the right. Each group is
/// a box over its ranks, in a colour for its degree, with lines that divide it by the tokens of its
/// sequences. What is grey is idle. A browser shows the lengths of a group at the pointer.
/// @throws contract_error for a width below 240, and a plan without ranks.
[[nodiscard]] std::string to_svg(const plan::SequencePlan& plan,
                                 const SequenceSvgOptions& options = {});

}  // namespace heddle::inline v0::trace

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/sequence_groups.ipp>
#endif
