// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Unlocked: gives a lock away while it lives.

#include <mutex>

namespace heddle::inline v0::impl {

/// Gives `lock` away while it lives, and takes it again at its end.
class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<std::mutex>& lock) : m_lock(lock) { m_lock.unlock(); }
  ~Unlocked() { m_lock.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& m_lock;
};

}  // namespace heddle::inline v0::impl
