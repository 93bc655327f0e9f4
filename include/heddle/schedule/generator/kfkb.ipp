// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of kfkb.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/group.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders kfkb(int ranks, int microbatches, int group) {
  constexpr const char* where = "heddle::schedule::kfkb";
  impl::check(where, ranks, 1, microbatches);
  impl::check_groups(where, microbatches, group, "group");
  Orders orders = schedule::group(one_f_one_b(ranks, microbatches / group), group);
  orders.name = text("kFkB P=", ranks, " M=", microbatches, " k=", group);
  return orders;
}

HEDDLE_INLINE Schedule kfkb(const KfkbOptions& options) {
  return weave(kfkb(options.ranks, options.microbatches, options.group), options.sizes);
}

}  // namespace heddle::inline v0::schedule
