// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_options(): checks the options of a search for plans. divisors(): its numbers of
/// microbatches.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0::plan::impl {

/// Throws contract_error if an option is invalid whatever the profile and the machine are.
inline void check_options(const PlanOptions& options) {
  constexpr const char* where = "heddle::plan::PlanProblem";
  expects(options.batch >= 1, [&] {
    return ErrorInfo{where, "a batch has at least one sample", text("batch = ", options.batch)};
  });
  for (const int microbatches : options.microbatches)
    expects(microbatches >= 1 && options.batch % microbatches == 0, [&] {
      return ErrorInfo{where, "the microbatches must divide the batch equally",
                       text("microbatches = ", microbatches, ", batch = ", options.batch),
                       "use divisors of the batch"};
    });
  for (const int tensor : options.tensor_degrees)
    expects(tensor >= 1, [&] {
      return ErrorInfo{where, "a tensor degree is at least 1", text("tensor degree ", tensor)};
    });
  for (const int sequence : options.sequence_degrees)
    expects(sequence >= 1, [&] {
      return ErrorInfo{where, "a sequence degree is at least 1", text("degree ", sequence)};
    });
  expects(options.budget.seconds >= 0, [&] {
    return ErrorInfo{where, "the time of a search is negative or not a number",
                     text("budget.seconds = ", options.budget.seconds)};
  });
  expects(options.state_per_parameter >= 0 && std::isfinite(options.state_per_parameter), [&] {
    return ErrorInfo{where, "the state of a parameter is finite and at least 0",
                     text("state_per_parameter = ", options.state_per_parameter),
                     "use 4 for Adam in one precision"};
  });
  for (const auto& codec : options.codecs)
    if (codec) heddle::check(*codec);
  static_cast<void>(schedule::find_schedule(options.schedule));
  heddle::impl::expect_enumerator(where, "PlanOptions::attention", options.attention,
                                  SequenceMethod::automatic);
  heddle::impl::expect_enumerator(where, "PlanOptions::activation", options.activation, Scalar::i8);
}

/// Returns the divisors of the batch, in ascending order.
[[nodiscard]] inline std::vector<int> divisors(std::int64_t batch) {
  std::vector<int> all;
  const std::int64_t most = std::min<std::int64_t>(batch, std::numeric_limits<int>::max());
  for (std::int64_t d = 1; d <= most && d * d <= batch; ++d) {
    if (batch % d != 0) continue;
    all.push_back(static_cast<int>(d));
    if (const std::int64_t other = batch / d; other != d && other <= most)
      all.push_back(static_cast<int>(other));
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace heddle::inline v0::plan::impl
