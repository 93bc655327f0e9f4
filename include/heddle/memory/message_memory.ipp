// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of message_memory.hpp: instantiations, which a header-only program makes itself.

#include <heddle/core/linkage.hpp>
#include <heddle/memory/message_memory.hpp>

#if !HEDDLE_FULL_HEADER_ONLY
namespace heddle::inline v0::memory {

template class impl::Chunks<IpcSafe<Pages>>;
template class impl::Slabs<IpcSafe<Pages>>;
template class impl::BlockPool<IpcSafe<Pages>>;

}  // namespace heddle::inline v0::memory
#endif
