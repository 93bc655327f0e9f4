// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of microbatch_size.hpp.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/microbatch_size.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::int64_t microbatch_size(std::int64_t samples, int microbatches) {
  constexpr const char* where = "heddle::schedule::microbatch_size";
  const auto numbers = [&] {
    return text("samples = ", samples, ", microbatches = ", microbatches);
  };
  expects(samples >= 1 && microbatches >= 1, [&] {
    return ErrorInfo{where, "a step needs at least one sample and one microbatch", numbers()};
  });
  if (samples < microbatches)
    throw infeasible({where, "there are fewer samples than microbatches", numbers(),
                      text("use ", microbatches, " samples, or as many microbatches as samples")});
  const std::int64_t rest = samples % microbatches;
  if (rest != 0) {
    std::int64_t fewer = microbatches, more = microbatches;
    while (samples % fewer != 0) --fewer;
    while (samples % more != 0) ++more;
    throw infeasible({where,
                      text(samples, " samples do not divide into ", microbatches, " microbatches"),
                      {},
                      text("use ", fewer, " or ", more, " microbatches, or ", samples - rest,
                           " or ", samples - rest + microbatches, " samples")});
  }
  return samples / microbatches;
}

HEDDLE_INLINE std::vector<std::int64_t> microbatch_sizes(std::int64_t samples, int microbatches) {
  constexpr const char* where = "heddle::schedule::microbatch_sizes";
  const auto numbers = [&] {
    return text("samples = ", samples, ", microbatches = ", microbatches);
  };
  expects(samples >= 1 && microbatches >= 1, [&] {
    return ErrorInfo{where, "a step has at least one sample and one microbatch", numbers()};
  });
  if (samples < microbatches)
    throw infeasible({where, "there are fewer samples than microbatches", numbers(),
                      text("use ", samples, " microbatches")});
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(microbatches), samples / microbatches);
  for (int m = 0; m < samples % microbatches; ++m) ++sizes[static_cast<std::size_t>(m)];
  return sizes;
}

}  // namespace heddle::inline v0::schedule
