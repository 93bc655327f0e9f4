// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of kfkb.hpp.

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/group.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders kfkb_orders(int stages, int microbatches, int group) {
  constexpr const char* where = "heddle::schedule::kfkb";
  impl::check(where, stages, 1, microbatches);
  expects(group >= 1, [&] {
    return ErrorInfo{where, "a group needs at least one microbatch", text("group = ", group)};
  });
  if (const int rest = microbatches % group; rest != 0) {
    const int below = microbatches - rest;
    throw infeasible({where, "the microbatches cannot be divided into equal groups",
                      text("microbatches = ", microbatches, ", group = ", group),
                      text("the nearest valid number is ",
                           below > 0 && 2 * rest <= group ? below : below + group)});
  }
  Orders orders = schedule::group(one_f_one_b_orders(stages, microbatches / group), group);
  orders.name = text("kFkB P=", stages, " M=", microbatches, " k=", group);
  return orders;
}

HEDDLE_INLINE Schedule kfkb(const KfkbOptions& options) {
  return weave(kfkb_orders(options.stages, options.microbatches, options.group), options.sizes);
}

}  // namespace heddle::inline v0::schedule
