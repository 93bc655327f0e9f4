// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of planners.hpp.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/frontier_3d/frontier.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/holmes/holmes.hpp>
#include <heddle/systems/metis/metis.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>
#include <heddle/systems/planners.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE const std::vector<plan::NamedPlanner>& planners() {
  // A new planner is one line here: named_planner<P>("what it does, and its source").
  static const std::vector<plan::NamedPlanner> all = {
      plan::named_planner<Dapple>("layers, ranks and their placement by dynamic programming, for "
                                  "synchronous steps (Fan et al., PPoPP'21)"),
      plan::named_planner<PipeDream>("layers and replicas, level by level over the machine "
                                     "(Narayanan et al., SOSP'19)"),
      plan::named_planner<Metis>("groups of unequal devices, with balanced layers and samples "
                                 "(Um et al., USENIX ATC'24)"),
      plan::named_planner<HGTrainer>("orders of sites that slow links join, with compressed cuts "
                                     "(Zong et al., 2025)"),
      plan::named_planner<Holmes>("stages within one kind of network each (Yang et al., 2023)"),
      plan::named_planner<Frontier3D>("tensor, sequence, pipeline and data degrees of equal stages "
                                      "(Dash et al., 2023)"),
      plan::named_planner<plan::Replicas>(
          "the fastest ranks as replicas of all layers, for comparison")};
  return all;
}

}  // namespace heddle::inline v0::systems
