// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// heddle::CoreGroup and heddle::Core: 64 cores, each with a small local memory that kernels fill
/// and empty explicitly. It is for kernels that will run on Sunway processors. Two implementations
/// have the same interface. `emulated` runs on any host and enforces the rules of the machine.
/// `crts` uses the machine's own headers; it is selected by the macro HEDDLE_CORE_GROUP_CRTS.
///
///     struct Scale {
///       double* data;  // 64 * 1000 numbers in main memory
///       void operator()(heddle::Core& core) const {
///         double* const tile = core.allocate<double>(1000);
///         heddle::Reply& reply = core.reply();
///         core.get(tile, data + core.index() * 1000, 8000, reply);
///         core.wait(reply, 1);
///         for (int i = 0; i < 1000; ++i) tile[i] *= 2;
///         core.put(data + core.index() * 1000, tile, 8000, reply);
///         core.wait(reply, 2);
///       }
///     };
///     heddle::CoreGroup group;
///     group.launch("scale", Scale{data});  // throws contract_error if a rule is broken

#if defined(HEDDLE_CORE_GROUP_CRTS)

#include <heddle/device/core_group/crts.hpp>

namespace heddle {
inline namespace v0 {
using namespace crts;  // NOLINT: the choice of an implementation
}  // namespace v0
}  // namespace heddle

#else

#include <heddle/device/core_group/emulated.hpp>

namespace heddle::inline v0 {
using emulated::Core;
using emulated::CoreGroup;
using emulated::current_core;
using emulated::Reply;
}  // namespace heddle::inline v0

#endif
