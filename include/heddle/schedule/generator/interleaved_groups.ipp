// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of interleaved_groups.hpp.

#include <algorithm>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/grouped_1f1b.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/interleaved_groups.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Returns the checked shape of grouped_interleaved(). A group of 0 is one microbatch for
/// each rank.
inline GroupedShape grouped_shape(const char* where, int ranks, int stages_per_rank,
                                  int microbatches, int group) {
  check(where, ranks, stages_per_rank, microbatches);
  expects(group >= 0, [&] {
    return ErrorInfo{where, "a group cannot have less than 0 microbatches",
                     text("group = ", group)};
  });
  const auto valid = [&](int length) {
    const int rest = microbatches % length;
    return stages_per_rank == 1 || length >= microbatches ||
           (length >= ranks && (rest == 0 || rest >= ranks));
  };
  // A single group is as long as all microbatches.
  const int asked = std::min(group == 0 ? ranks : group, microbatches);
  if (!valid(asked)) {
    int step = 1;
    while (!(asked - step >= 1 && valid(asked - step)) && !valid(asked + step)) ++step;
    throw infeasible(
        {where, "a group is shorter than the ranks, so that they would wait for each other",
         text("microbatches = ", microbatches, ", ranks = ", ranks, ", group = ", asked,
              microbatches % asked == 0 ? std::string()
                                        : text(", the last group has ", microbatches % asked)),
         text("the nearest valid group is ",
              asked - step >= 1 && valid(asked - step) ? asked - step : asked + step)});
  }
  return {ranks, stages_per_rank, microbatches, asked};
}

/// Returns the name of orders in groups.
inline std::string grouped_name(const char* name, const GroupedShape& shape) {
  return text(name, " P=", shape.ranks, " V=", shape.stages_per_rank, " M=", shape.microbatches,
              " G=", shape.group);
}

}  // namespace impl

HEDDLE_INLINE Orders grouped_interleaved(int ranks, int stages_per_rank, int microbatches,
                                         int group) {
  const impl::GroupedShape shape = impl::grouped_shape("heddle::schedule::grouped_interleaved",
                                                       ranks, stages_per_rank, microbatches, group);
  return impl::grouped_1f1b(impl::grouped_name("interleaved 1F1B", shape), shape, 2, 0, false);
}

HEDDLE_INLINE Orders combined_1f1b(int ranks, int stages_per_rank, int microbatches, int group) {
  const impl::GroupedShape shape = impl::grouped_shape("heddle::schedule::combined_1f1b", ranks,
                                                       stages_per_rank, microbatches, group);
  return impl::grouped_1f1b(impl::grouped_name("combined 1F1B", shape), shape, 2, 1, true);
}

HEDDLE_INLINE Schedule grouped_interleaved(const GroupedOptions& options) {
  return weave(grouped_interleaved(options.ranks, options.stages_per_rank, options.microbatches,
                                   options.group),
               options.sizes);
}

HEDDLE_INLINE Schedule combined_1f1b(const GroupedOptions& options) {
  return weave(
      combined_1f1b(options.ranks, options.stages_per_rank, options.microbatches, options.group),
      options.sizes);
}

}  // namespace heddle::inline v0::schedule
