// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// run_sweeps(): the threads of fixed_point().

#include <cstddef>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

/// Runs sweeps until `done`. In a sweep each thread w calls compute(w). When all have returned, one
/// thread calls judge(), which may set `done`, and then each calls take_over(w). None of the three
/// throws. @throws std::system_error, before any work, if the system does not start the threads.
void run_sweeps(int threads, const bool& done, FunctionRef<void(std::size_t)> compute,
                FunctionRef<void()> judge, FunctionRef<void(std::size_t)> take_over);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/run_sweeps.ipp>
#endif
