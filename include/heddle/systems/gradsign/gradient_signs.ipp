// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gradient_signs.hpp.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE void GradientSigns::check(std::size_t parameters) const {
  expects(parameters == m_sums.size(), [&] {
    return ErrorInfo{"heddle::systems::GradientSigns", "the number of parameters differs",
                     text("expected ", m_sums.size(), ", got ", parameters)};
  });
}

HEDDLE_INLINE void GradientSigns::reject(std::size_t parameter) {
  throw contract_error({"heddle::systems::GradientSigns",
                        "an element of the gradient is not a number",
                        text("parameter ", parameter)});
}

HEDDLE_INLINE void GradientSigns::merge(const GradientSigns& other) {
  check(other.m_sums.size());
  const std::int64_t samples = m_samples + other.m_samples;
  expects(samples <= std::numeric_limits<std::int32_t>::max(), [&] {
    return ErrorInfo{"heddle::systems::GradientSigns", "a sum has 32 bits",
                     text(samples, " samples in all")};
  });
  for (std::size_t k = 0; k < m_sums.size(); ++k) m_sums[k] += other.m_sums[k];
  m_samples = samples;
}

HEDDLE_INLINE std::int64_t GradientSigns::absolute_sum(
    std::span<const std::int32_t> sums) noexcept {
  std::int64_t score = 0;
  for (const std::int32_t sum : sums) score += std::abs(std::int64_t{sum});
  return score;
}

}  // namespace heddle::inline v0::systems
