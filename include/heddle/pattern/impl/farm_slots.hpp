// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The items of a farm, from the source through the journal to the sink.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/internal/ring_queue.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_journal.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_part.hpp>

namespace heddle::inline v0::impl {

/// An item. It stays in place while `users` is not 0.
struct FarmSlot {
  std::unique_ptr<AnyFarmItem> item;  ///< empty if it is finished and no worker uses it
  MessageBytes bytes;                 ///< the item in a farm over ranks, instead of `item`
  std::unique_ptr<AnyFarmOutcome> outcome;
  std::uint32_t sum = 0;  ///< checksum of the item, if there is a journal
  int users = 0;          ///< workers that may read the item
  bool finished = false;
  bool delivered = false;
};

/// The items that the source has given and the sink has not got.
class FarmSlots {
 public:
  FarmSlots(const pattern::FarmOptions& options, pattern::FarmDecider& decider, FarmPart& part)
      : m_options(options), m_decider(decider), m_part(part) {}

  /// Opens the journal, if there is one.
  /// @throws contract_error if the results are not Sendable; format_error as FarmJournal does.
  void open();

  /// Returns the item `number`, which the sink must not have got.
  [[nodiscard]] FarmSlot& operator[](std::int64_t number) {
    return *m_slots[static_cast<std::size_t>(number - m_first)];
  }

  /// Returns room for an item that is not given yet.
  [[nodiscard]] std::unique_ptr<FarmSlot> blank();
  /// Keeps such room for later.
  void keep(std::unique_ptr<FarmSlot> slot) { m_spare.push_back(std::move(slot)); }
  /// Takes the next item from the source, which may see the outcomes up to the lag.
  [[nodiscard]] bool take(FarmSlot& slot);
  /// Adds the next item. Its outcome may be in the journal.
  void add(std::unique_ptr<FarmSlot> slot);

  /// Notes the outcome of item `number`, and gives the sink what it may have now. `outcome` has the
  /// memory of another one then.
  void finish(std::int64_t number, std::unique_ptr<AnyFarmOutcome>& outcome);
  /// Does the same with an outcome as put_outcome() writes it.
  void finish(std::int64_t number, std::span<const std::byte> outcome);

  /// Notes that a worker does not read an item any more.
  void release(FarmSlot& slot);

  /// Lets the sink get nothing more, because it or the source threw. The journal still gets the
  /// outcomes of the attempts that end.
  void stop() { m_stopped = true; }

  /// Ends the journal, and returns the counts.
  pattern::FarmReport end();

 private:
  [[nodiscard]] std::uint32_t sum_of(const FarmSlot& slot) const;
  static void forget(FarmSlot& slot);
  void deliver(std::int64_t number, FarmSlot& slot);
  void give(std::int64_t number, FarmSlot& slot);
  void drop();

  const pattern::FarmOptions& m_options;
  pattern::FarmDecider& m_decider;
  FarmPart& m_part;
  std::optional<pattern::FarmJournal> m_journal;
  RingQueue<std::unique_ptr<FarmSlot>> m_slots;    ///< the items from m_first on
  std::vector<std::unique_ptr<FarmSlot>> m_spare;  ///< for later items
  std::int64_t m_first = 0;
  std::int64_t m_next = 0;  ///< the next item for the sink, if ordered
  std::int64_t m_failed = 0;
  std::int64_t m_known = 0;
  bool m_stopped = false;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/farm_slots.ipp>
#endif
