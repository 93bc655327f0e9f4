// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of elements.hpp.

#include <cstddef>

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/internal/elements.hpp>

namespace heddle::inline v0::kernel::impl {

#if !HEDDLE_FULL_HEADER_ONLY
template void copy_elements(const HostExec&, const float*, float*, std::size_t);
template void copy_elements(const HostExec&, const double*, double*, std::size_t);
template void clear_elements(const HostExec&, float*, std::size_t);
template void clear_elements(const HostExec&, double*, std::size_t);
template void add_elements(const HostExec&, const float*, float*, std::size_t);
template void add_elements(const HostExec&, const double*, double*, std::size_t);
#endif

}  // namespace heddle::inline v0::kernel::impl
