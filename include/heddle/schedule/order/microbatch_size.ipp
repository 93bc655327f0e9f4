// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of microbatch_size.hpp.

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/order/microbatch_size.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

[[nodiscard]] inline std::string sample_numbers(std::int64_t samples, int microbatches) {
  return text("samples = ", samples, ", microbatches = ", microbatches);
}

/// Checks that each microbatch can have a sample, on behalf of the function `where`.
inline void expect_samples(const char* where, std::int64_t samples, int microbatches) {
  expects(samples >= 1 && microbatches >= 1, [&] {
    return ErrorInfo{where, "a step needs at least one sample and one microbatch",
                     sample_numbers(samples, microbatches)};
  });
  if (samples < microbatches)
    throw infeasible({where, "there are fewer samples than microbatches",
                      sample_numbers(samples, microbatches),
                      text("use ", microbatches, " samples, or as many microbatches as samples")});
}

}  // namespace impl

HEDDLE_INLINE std::int64_t microbatch_size(std::int64_t samples, int microbatches) {
  constexpr const char* where = "heddle::schedule::microbatch_size";
  impl::expect_samples(where, samples, microbatches);
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
  impl::expect_samples("heddle::schedule::microbatch_sizes", samples, microbatches);
  std::vector<std::int64_t> sizes;
  for (int m = 0; m < microbatches; ++m)
    sizes.push_back(heddle::impl::even_count(samples, microbatches, m));
  return sizes;
}

}  // namespace heddle::inline v0::schedule
