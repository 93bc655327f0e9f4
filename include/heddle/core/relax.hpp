// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// relax(): between two looks at what another thread is about to change.

namespace heddle::inline v0 {

/// Tells the core that this thread only waits, for some tens of cycles: the other thread of the
/// core gets on, and the memory that is looked at is not fought for. Nothing elsewhere than on
/// x86-64 and AArch64.
inline void relax() noexcept {
#if defined(__x86_64__)
  asm volatile("pause");
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace heddle::inline v0
