// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Instantiations of InstanceIn and MergingIn for the host, which a header-only program makes
/// itself.

#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/core/linkage.hpp>

#if !HEDDLE_FULL_HEADER_ONLY
template class heddle::impl::InstanceIn<Kokkos::DefaultHostExecutionSpace, Kokkos::HostSpace>;
HEDDLE_MERGINGS()
#endif
