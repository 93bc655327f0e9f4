// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// relax(): a pause in loops that wait for another thread to change memory.

namespace heddle::inline v0::impl {

/// Pauses this thread for some tens of cycles. The other hardware thread of the core runs faster
/// meanwhile, and the polled memory has less contention. On processors other than x86-64 and
/// AArch64 the function does nothing.
inline void relax() noexcept {
#if defined(__x86_64__)
  asm volatile("pause");
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace heddle::inline v0::impl
