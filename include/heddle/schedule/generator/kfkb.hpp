// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// kFkB: k forwards, k backwards. 1F1B for slow networks, as Orders and as a Schedule.

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/pass/group.hpp>

namespace heddle::inline v0::schedule {

/// A pipeline with one stage per rank that takes its microbatches in groups.
struct KfkbOptions {
  int stages = 1;         ///< and ranks
  int microbatches = 1;   ///< in a step, a multiple of `group`
  int group = 2;          ///< k: 1 is 1F1B
  StageSizes sizes = {};  ///< of what is kept and sent
};

/// 1F1B over M/k groups of k microbatches each (Wang et al., "Ada-Grouper", 2023): every transfer
/// but that of a group's last has computations of the group to hide behind. Where transfers take no
/// time, bubble (P - 1)(F + B) whatever k is; live activations k min(M/k, P - r) on rank r.
///
/// @throws infeasible where M is not a multiple of k; it names the nearest M that is.
[[nodiscard]] inline Orders kfkb_orders(int stages, int microbatches, int group) {
  constexpr const char* where = "heddle::schedule::kfkb";
  impl::check(where, stages, 1, microbatches);
  expects(group >= 1, [&] {
    return Complaint{where, "a group has at least one microbatch", text("group = ", group)};
  });
  if (const int rest = microbatches % group; rest != 0) {
    const int below = microbatches - rest;
    throw infeasible({where, "the microbatches do not divide into equal groups",
                      text("microbatches = ", microbatches, ", group = ", group),
                      text("the nearest number that does is ",
                           below > 0 && 2 * rest <= group ? below : below + group)});
  }
  Orders orders = schedule::group(one_f_one_b_orders(stages, microbatches / group), group);
  orders.name = text("kFkB P=", stages, " M=", microbatches, " k=", group);
  return orders;
}

/// kfkb_orders, woven.
[[nodiscard]] inline Schedule kfkb(const KfkbOptions& options) {
  return weave(kfkb_orders(options.stages, options.microbatches, options.group), options.sizes);
}

}  // namespace heddle::inline v0::schedule
