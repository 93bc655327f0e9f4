// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rhino.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/rhino/impl/rhino_search.hpp>
#include <heddle/systems/rhino/rhino.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline void check(const RhinoOptions& options, const TensorProgram& program) {
  constexpr const char* where = "heddle::systems::rhino";
  expects(options.level == 1 || options.level == 2, [&] {
    return ErrorInfo{where, "there are the levels 1 and 2", text("level = ", options.level)};
  });
  expects(options.flops > 0 && std::isfinite(options.flops) && options.start >= 0 &&
              std::isfinite(options.start) && options.state_per_parameter >= 0 &&
              options.tolerance >= 0,
          [&] {
            return ErrorInfo{where, "an option is out of range",
                             text("flops = ", options.flops, ", start = ", options.start,
                                  ", state_per_parameter = ", options.state_per_parameter,
                                  ", tolerance = ", options.tolerance),
                             "use finite flops > 0, a finite start >= 0, and the others >= 0"};
          });
  Seconds computation = 0;
  for (const Operation& operation : program.operations)
    computation += program.flops(operation) / options.flops;
  heddle::impl::expect_sum(
      where, computation,
      [&] { return text(program.operations.size(), " operations with flops = ", options.flops); },
      "use greater flops");
  if (options.batch.empty()) return;
  const std::int64_t samples = program.size_of(options.batch);
  const auto divides = [&](int count) { return count > 0 && samples % count == 0; };
  expects(!options.microbatches.empty() && std::ranges::all_of(options.microbatches, divides), [&] {
    return ErrorInfo{where, "numbers of microbatches divide the batch",
                     text("dimension '", options.batch, "' of ", samples),
                     "set `microbatches` to divisors of it"};
  });
}

}  // namespace impl

HEDDLE_INLINE RhinoPlan rhino(const TensorProgram& program, const Machine& machine,
                              const RhinoOptions& options) {
  static_cast<void>(check(program));
  impl::check(options, program);
  impl::RhinoSearch search(options, program, machine);
  search.run();
  return search.plan();
}

}  // namespace heddle::inline v0::systems
