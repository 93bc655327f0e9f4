// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_slots.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/pattern/impl/farm_call.hpp>
#include <heddle/pattern/impl/farm_slots.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void FarmSlots::open() {
  if (m_options.journal.empty()) return;
  expects(m_part.facts().results_sendable, [] {
    return ErrorInfo{"heddle::pattern::farm",
                     "a journal needs results that can be written as bytes",
                     "the results are not Sendable",
                     "return trivially copyable values, strings, or vectors of such"};
  });
  m_journal.emplace(m_options.journal,
                    farm_identity(m_options.attempts, m_options.seed, m_options.lag,
                                  m_part.item_words(), m_part.result_words()));
}

HEDDLE_INLINE std::unique_ptr<FarmSlot> FarmSlots::blank() {
  if (m_spare.empty()) {
    auto slot = std::make_unique<FarmSlot>();
    slot->item = m_part.new_item();
    slot->outcome = m_part.new_outcome();
    return slot;
  }
  std::unique_ptr<FarmSlot> slot = std::move(m_spare.back());
  m_spare.pop_back();
  return slot;
}

HEDDLE_INLINE bool FarmSlots::take(FarmSlot& slot) {
  const std::int64_t seen = m_options.lag > 0 ? m_decider.items() - m_options.lag + 1 : 0;
  return m_part.take(*slot.item, seen > 0 ? static_cast<std::size_t>(seen) : 0);
}

HEDDLE_INLINE void FarmSlots::add(std::unique_ptr<FarmSlot> added) {
  m_slots.push_back(std::move(added));
  const std::int64_t number = m_decider.items();
  FarmSlot& slot = (*this)[number];
  if (m_journal) {
    slot.sum = sum_of(slot);
    if (const std::optional<MessageBytes> known = m_journal->take(number, slot.sum)) {
      m_decider.known();
      ++m_known;
      take_outcome(m_part, *known, *slot.outcome);
      return deliver(number, slot);
    }
  }
  m_decider.proposed(true);
}

HEDDLE_INLINE void FarmSlots::finish(std::int64_t number,
                                     std::unique_ptr<AnyFarmOutcome>& outcome) {
  FarmSlot& slot = (*this)[number];
  if (m_journal) {
    MessageBytes bytes;
    put_outcome(m_part, bytes, *outcome);
    m_journal->note(number, slot.sum, bytes);
  }
  std::swap(slot.outcome, outcome);
  deliver(number, slot);
}

HEDDLE_INLINE void FarmSlots::finish(std::int64_t number, std::span<const std::byte> outcome) {
  FarmSlot& slot = (*this)[number];
  if (m_journal) m_journal->note(number, slot.sum, outcome);
  take_outcome(m_part, outcome, *slot.outcome);
  deliver(number, slot);
}

HEDDLE_INLINE void FarmSlots::release(FarmSlot& slot) {
  if (--slot.users == 0 && slot.finished) forget(slot);
  drop();
}

HEDDLE_INLINE pattern::FarmReport FarmSlots::end() {
  if (m_journal) m_journal->sync();
  return {m_decider.items(), m_failed, m_decider.attempts(), m_decider.late(), m_known};
}

/// Returns the checksum of an item, or that of the element of a range to which it points. It is 0
/// if equal items may have different bytes.
HEDDLE_INLINE std::uint32_t FarmSlots::sum_of(const FarmSlot& slot) const {
  if (!m_part.facts().items_have_sums) return 0;
  if (!slot.bytes.empty()) return crc32c(slot.bytes);
  MessageBytes bytes;
  m_part.put_item(bytes, *slot.item);
  return crc32c(bytes);
}

/// Frees an item, but for the memory that later ones use.
HEDDLE_INLINE void FarmSlots::forget(FarmSlot& slot) {
  slot.item->clear();
  make_empty(slot.bytes);
}

HEDDLE_INLINE void FarmSlots::deliver(std::int64_t number, FarmSlot& slot) {
  slot.finished = true;
  if (slot.users == 0) forget(slot);
  if (!slot.outcome->succeeded) ++m_failed;
  if (!m_options.ordered) give(number, slot);
  while (m_options.ordered && m_next - m_first < static_cast<std::int64_t>(m_slots.size())) {
    FarmSlot& next = (*this)[m_next];
    if (!next.finished) break;
    give(m_next++, next);
  }
  drop();
}

HEDDLE_INLINE void FarmSlots::give(std::int64_t number, FarmSlot& slot) {
  slot.delivered = true;
  if (!m_stopped) m_part.give(number, *slot.outcome);
}

/// Keeps the memory of items that are done for later ones.
HEDDLE_INLINE void FarmSlots::drop() {
  while (!m_slots.empty() && m_slots.front()->delivered && m_slots.front()->users == 0) {
    m_spare.push_back(std::move(m_slots.front()));
    FarmSlot& slot = *m_spare.back();
    slot.finished = slot.delivered = false;
    m_slots.pop_front();
    ++m_first;
  }
}

}  // namespace heddle::inline v0::impl
