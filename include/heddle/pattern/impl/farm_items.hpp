// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The items of a farm over ranks on rank 0: from the source through the journal to the sink.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_journal.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_call.hpp>
#include <heddle/pattern/rank_farm_options.hpp>

namespace heddle::inline v0::impl {

/// The items that the source has given and the sink has not got, as packed bytes.
template <class Source, class Sink, class Given, class Result>
class FarmItems {
 public:
  FarmItems(FarmDecider& decider, const RankFarmOptions& options, Source& source, Sink& sink)
      : m_decider(decider), m_options(options), m_source(source), m_sink(sink) {}

  /// Opens the journal, if there is one.
  void open() {
    if (!m_options.journal.empty()) m_journal.emplace(m_options.journal, identity());
  }

  /// Returns the packed item `number`, which must not be finished.
  [[nodiscard]] const MessageBytes& packed(std::int64_t number) const {
    return m_slots[static_cast<std::size_t>(number - m_first)].item;
  }

  /// Takes an item from the source. Its outcome may be in the journal.
  void propose() {
    const std::optional<Given> item = take();
    if (!item) return m_decider.proposed(false);
    const std::int64_t number = m_decider.items();
    Slot& slot = m_slots.emplace_back();
    pack(slot.item, *item);
    const auto known =
        m_journal ? m_journal->take(number, sum_of(slot.item)) : std::optional<MessageBytes>();
    if (!known) return m_decider.proposed(true);
    ++m_known;
    m_decider.known();
    deliver(number, slot, *known);
  }

  /// Notes the packed outcome of item `number`, and gives the sink what it may have now.
  void finish(std::int64_t number, std::span<const std::byte> outcome) {
    Slot& slot = m_slots[static_cast<std::size_t>(number - m_first)];
    if (m_journal) m_journal->note(number, sum_of(slot.item), outcome);
    deliver(number, slot, outcome);
  }

  /// Ends the journal, and returns the counts.
  FarmReport end() {
    if (m_journal) m_journal->sync();
    return {m_decider.items(), m_failed, m_decider.attempts(), m_decider.late(), m_known};
  }

 private:
  struct Slot {
    MessageBytes item;
    FarmOutcome<Result> outcome;
    bool finished = false;
    bool delivered = false;
  };

  /// Returns what the outcomes of this farm depend on, for the journal.
  [[nodiscard]] std::string identity() const {
    return farm_identity(m_options.attempts, m_options.seed, m_options.lag, sizeof(Given),
                         sizeof(Result));
  }

  std::optional<Given> take() {
    if constexpr (std::is_invocable_v<Source&>) {
      return m_source();
    } else {
      const std::int64_t seen = m_decider.items() - m_options.lag + 1;
      return m_source(std::span<const FarmOutcome<Result>>(
          m_history.data(), static_cast<std::size_t>(m_options.lag > 0 && seen > 0 ? seen : 0)));
    }
  }

  /// Returns the checksum of an item; 0 if equal items may have different bytes.
  static std::uint32_t sum_of(const MessageBytes& item) {
    return is_without_padding<Given> ? crc32c(item) : 0;
  }

  void deliver(std::int64_t number, Slot& slot, std::span<const std::byte> outcome) {
    slot.outcome = take_outcome<Result>(outcome);
    slot.finished = true;
    slot.item = {};
    if (!slot.outcome.value) ++m_failed;
    if (!m_options.ordered) give(number, slot);
    while (m_options.ordered && m_next - m_first < static_cast<std::int64_t>(m_slots.size())) {
      Slot& next = m_slots[static_cast<std::size_t>(m_next - m_first)];
      if (!next.finished) break;
      give(m_next++, next);
    }
    while (!m_slots.empty() && m_slots.front().delivered) {
      m_slots.pop_front();
      ++m_first;
    }
  }

  void give(std::int64_t number, Slot& slot) {
    slot.delivered = true;
    if constexpr (!std::is_invocable_v<Source&>) m_history.push_back(slot.outcome);
    m_sink(number, std::move(slot.outcome));
  }

  FarmDecider& m_decider;
  const RankFarmOptions& m_options;
  Source& m_source;
  Sink& m_sink;
  std::optional<FarmJournal> m_journal;
  std::deque<Slot> m_slots;  ///< the items from m_first on
  std::vector<FarmOutcome<Result>> m_history;
  std::int64_t m_first = 0;
  std::int64_t m_next = 0;  ///< the next item for the sink, if ordered
  std::int64_t m_failed = 0;
  std::int64_t m_known = 0;
};

}  // namespace heddle::inline v0::impl
