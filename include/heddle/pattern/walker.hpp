// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Walker: one of the independent searches of a race, as its search sees it.

#include <cstdint>

namespace heddle::inline v0 {

namespace impl {

/// How far a walker has come. Of two equal amounts of work the lower walker's wins.
struct WalkerWork {
  std::uint64_t work = 0;
  std::uint32_t walker = 0;
  friend constexpr auto operator<=>(const WalkerWork&, const WalkerWork&) = default;
};

/// A race as its walkers see it.
class Race {
 public:
  /// Returns true if a walker with this work cannot win any more, because another one has found a
  /// result with less. It may stop then.
  virtual bool is_beaten(WalkerWork so_far) = 0;

 protected:
  ~Race() = default;
};

}  // namespace impl

namespace pattern {

/// One of the independent searches of a race. The search gets it by reference, and belongs to one
/// thread.
class Walker {
 public:
  /// Constructs the walker `number` of a race, which must outlive it.
  Walker(heddle::impl::Race& race, std::uint32_t number) noexcept
      : m_race(&race), m_so_far{0, number} {}
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  /// Returns the number of the walker, from 0. Derive its seed from it.
  [[nodiscard]] int number() const noexcept { return static_cast<int>(m_so_far.walker); }

  /// Counts work, such as steps of the search. A race by work compares these counts.
  void work(std::uint64_t units = 1) noexcept { m_so_far.work += units; }

  /// Returns the work counted so far.
  [[nodiscard]] std::uint64_t work_done() const noexcept { return m_so_far.work; }

  /// Returns true if the walker cannot win any more; its search should end then. It costs an atomic
  /// read on threads, and a test of one message per rank on ranks.
  [[nodiscard]] bool stop_requested() { return m_race->is_beaten(m_so_far); }

 private:
  heddle::impl::Race* m_race;
  heddle::impl::WalkerWork m_so_far;
};

}  // namespace pattern

}  // namespace heddle::inline v0
