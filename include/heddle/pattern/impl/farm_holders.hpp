// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The items that the ranks of a farm hold. Each is a worker of the decider.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/pattern/farm_decider.hpp>

namespace heddle::inline v0::impl {

/// Counts the items of each rank. A rank answers in the order in which it got its items, so its
/// `prefetch` workers are used in turn.
class FarmHolders {
 public:
  FarmHolders(std::size_t ranks, int prefetch);

  /// Returns the number of items that a rank holds.
  [[nodiscard]] std::uint64_t held(std::size_t rank) const { return m_given[rank] - m_done[rank]; }
  /// Returns true if a rank holds an item.
  [[nodiscard]] bool any() const { return m_given != m_done; }
  /// Returns the worker for the next item of a rank.
  [[nodiscard]] Worker next(std::size_t rank) const { return holder(rank, m_given[rank]); }
  /// Returns the worker of the item that a rank works on.
  [[nodiscard]] Worker front(std::size_t rank) const { return holder(rank, m_done[rank]); }
  /// Returns true if the lease of an item of the rank has ended.
  [[nodiscard]] bool is_silent(std::size_t rank, const pattern::FarmDecider& decider) const;

  /// Notes that there is nothing to do now for the ranks that hold no item.
  void note_idle();
  /// Notes that the rank gets the next item.
  void give(std::size_t rank);
  /// Notes that the rank has ended its front item. Returns true if the rank was idle before it.
  bool end(std::size_t rank);

 private:
  [[nodiscard]] Worker holder(std::size_t rank, std::uint64_t number) const {
    return Worker{rank * m_prefetch + number % m_prefetch};
  }

  std::uint64_t m_prefetch;
  std::vector<std::uint64_t> m_given;  ///< by rank: items that were sent to it
  std::vector<std::uint64_t> m_done;   ///< by rank: items that it has ended
  std::vector<bool> m_idle;            ///< by rank: it holds nothing, and there was nothing to do
  std::vector<bool> m_waited;          ///< by worker: its rank was idle before the item
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/farm_holders.ipp>
#endif
