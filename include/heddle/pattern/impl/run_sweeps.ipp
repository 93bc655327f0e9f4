// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of run_sweeps.hpp.

#include <barrier>
#include <cstddef>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/pattern/impl/run_sweeps.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void run_sweeps(int threads, const bool& done, FunctionRef<void(std::size_t)> compute,
                              FunctionRef<void()> judge, FunctionRef<void(std::size_t)> take_over) {
  const auto at_end = [&]() noexcept { judge(); };
  std::barrier computed(threads, at_end);
  std::barrier moved(threads);
  const auto work = [&](std::size_t w) {
    while (!done) {
      compute(w);
      computed.arrive_and_wait();
      take_over(w);
      moved.arrive_and_wait();
    }
  };
  Threads others(threads - 1, [&](int w) { work(static_cast<std::size_t>(w)); });
  others.begin_all("heddle::pattern::fixed_point");
  work(0);
}

}  // namespace heddle::inline v0::impl
