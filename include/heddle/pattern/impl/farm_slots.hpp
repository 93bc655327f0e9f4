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
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/impl/ring_queue.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_journal.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_call.hpp>
#include <heddle/pattern/impl/type_words.hpp>

namespace heddle::inline v0::impl {

/// The items that the source has given and the sink has not got. `packed` items are kept as the
/// bytes of a message, as a farm over ranks sends them.
template <class Source, class Sink, class Given, class Result, bool packed>
class FarmSlots {
 public:
  /// The form in which an item is kept.
  using Kept = std::conditional_t<packed, MessageBytes, Given>;

  /// An item. It stays in place while `users` is not 0.
  struct Slot {
    std::optional<Kept> item;  ///< until it is finished and no worker uses it
    FarmOutcome<Result> outcome;
    std::uint32_t sum = 0;  ///< checksum of the item, if there is a journal
    int users = 0;          ///< workers that may read the item
    bool finished = false;
    bool delivered = false;
  };

  FarmSlots(const FarmOptions& options, FarmDecider& decider, Sink& sink)
      : m_options(options), m_decider(decider), m_sink(sink) {}

  /// Opens the journal, if there is one.
  /// @throws contract_error if the results are not Sendable; format_error as FarmJournal does.
  void open() {
    if (m_options.journal.empty()) return;
    expects(is_sendable<Result>, [] {
      return ErrorInfo{"heddle::farm", "a journal needs results that can be written as bytes",
                       "the results are not Sendable",
                       "return trivially copyable values, strings, or vectors of such"};
    });
    m_journal = std::make_unique<FarmJournal>(
        m_options.journal, farm_identity(m_options.attempts, m_options.seed, m_options.lag,
                                         type_words<Given>(), type_words<Result>()));
  }

  /// Returns the item `number`, which the sink must not have got.
  [[nodiscard]] Slot& operator[](std::int64_t number) {
    return *m_slots[static_cast<std::size_t>(number - m_first)];
  }

  /// Takes the next item from a source, which may see the outcomes up to the lag.
  [[nodiscard]] std::optional<Given> take(Source& source) const {
    if constexpr (std::is_invocable_v<Source&>) {
      return source();
    } else {
      const std::int64_t seen = m_decider.items() - m_options.lag + 1;
      return source(std::span<const FarmOutcome<Result>>(
          m_history.data(), static_cast<std::size_t>(m_options.lag > 0 && seen > 0 ? seen : 0)));
    }
  }

  /// Adds the next item of the source. Its outcome may be in the journal.
  void add(Given&& item) {
    if (m_spare.empty()) m_spare.push_back(std::make_unique<Slot>());
    m_slots.push_back(std::move(m_spare.back()));
    m_spare.pop_back();
    const std::int64_t number = m_decider.items();
    Slot& slot = (*this)[number];
    if constexpr (packed) {
      if (!slot.item) slot.item.emplace();
      pack(*slot.item, item);
    } else {
      slot.item.emplace(std::move(item));
    }
    if constexpr (is_sendable<Result>) {
      if (m_journal) {
        slot.sum = sum_of(*slot.item);
        const std::optional<MessageBytes> known = m_journal->take(number, slot.sum);
        if (known) {
          m_decider.known();
          ++m_known;
          std::span<const std::byte> bytes = *known;
          return deliver(number, slot, take_outcome<Result>(bytes));
        }
      }
    }
    m_decider.proposed(true);
  }

  /// Notes the outcome of item `number`, and gives the sink what it may have now.
  void finish(std::int64_t number, FarmOutcome<Result>&& outcome) {
    if constexpr (is_sendable<Result>) {
      if (m_journal) {
        MessageBytes bytes;
        put_outcome(bytes, outcome);
        m_journal->note(number, (*this)[number].sum, bytes);
      }
    }
    deliver(number, (*this)[number], std::move(outcome));
  }

  /// Does the same with an outcome as put_outcome() writes it.
  void finish(std::int64_t number, std::span<const std::byte> outcome) {
    if (m_journal) m_journal->note(number, (*this)[number].sum, outcome);
    deliver(number, (*this)[number], take_outcome<Result>(outcome));
  }

  /// Notes that a worker does not read an item any more.
  void release(Slot& slot) {
    if (--slot.users == 0 && slot.finished) forget(slot);
    drop();
  }

  /// Ends the journal, and returns the counts.
  FarmReport end() {
    if (m_journal) m_journal->sync();
    return {m_decider.items(), m_failed, m_decider.attempts(), m_decider.late(), m_known};
  }

 private:
  /// Returns the checksum of an item, or that of the element of a range to which it points. It is 0
  /// if equal items may have different bytes.
  template <class Item>
  static std::uint32_t sum_of(const Item& item) {
    if constexpr (packed) {
      return is_without_padding<Given> ? crc32c(item) : 0;
    } else if constexpr (std::is_pointer_v<Item>) {
      return sum_of(*item);
    } else if constexpr (is_sendable<Item> && is_without_padding<Item>) {
      MessageBytes bytes;
      pack(bytes, item);
      return crc32c(bytes);
    } else {
      return 0;
    }
  }

  /// Frees an item, but for the memory that later ones use.
  static void forget(Slot& slot) {
    if constexpr (packed)
      make_empty(*slot.item);
    else
      slot.item.reset();
  }

  void deliver(std::int64_t number, Slot& slot, FarmOutcome<Result>&& outcome) {
    slot.outcome = std::move(outcome);
    slot.finished = true;
    if (slot.users == 0) forget(slot);
    if (!slot.outcome.value) ++m_failed;
    if (!m_options.ordered) give(number, slot);
    while (m_options.ordered && m_next - m_first < static_cast<std::int64_t>(m_slots.size())) {
      Slot& next = (*this)[m_next];
      if (!next.finished) break;
      give(m_next++, next);
    }
    drop();
  }

  void give(std::int64_t number, Slot& slot) {
    slot.delivered = true;
    if constexpr (!std::is_invocable_v<Source&>) m_history.push_back(slot.outcome);
    m_sink(number, std::move(slot.outcome));
  }

  /// Keeps the memory of items that are done for later ones.
  void drop() {
    while (!m_slots.empty() && m_slots.front()->delivered && m_slots.front()->users == 0) {
      m_spare.push_back(std::move(m_slots.front()));
      Slot& slot = *m_spare.back();
      slot.finished = slot.delivered = false;
      m_slots.pop_front();
      ++m_first;
    }
  }

  const FarmOptions& m_options;
  FarmDecider& m_decider;
  Sink& m_sink;
  std::unique_ptr<FarmJournal> m_journal;
  RingQueue<std::unique_ptr<Slot>> m_slots;    ///< the items from m_first on
  std::vector<std::unique_ptr<Slot>> m_spare;  ///< for later items
  std::vector<FarmOutcome<Result>> m_history;
  std::int64_t m_first = 0;
  std::int64_t m_next = 0;  ///< the next item for the sink, if ordered
  std::int64_t m_failed = 0;
  std::int64_t m_known = 0;
};

}  // namespace heddle::inline v0::impl
