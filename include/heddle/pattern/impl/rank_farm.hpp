// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The ranks of a farm: rank 0 asks the decider and sends items, the others answer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/ring_queue.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/mailbox.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/impl/farm_call.hpp>
#include <heddle/pattern/impl/farm_holders.hpp>
#include <heddle/pattern/impl/farm_part.hpp>
#include <heddle/pattern/impl/farm_slots.hpp>

namespace heddle::inline v0::impl {

/// One farm over ranks, as one of them sees it.
template <Transport T>
class RankFarm {
 public:
  RankFarm(T& transport, const pattern::FarmOptions& options, FarmPart& part)
      : m_transport(transport),
        m_options(options),
        m_part(part),
        m_call(&transport),
        m_workers(static_cast<std::size_t>(std::max(transport.size() - 1, 1))),
        m_agreed(agreed()),
        m_decider(m_agreed),
        m_items(m_agreed, m_decider, part),
        m_item(part.new_item()),
        m_outcome(part.new_outcome()),
        m_holders(m_workers, options.prefetch) {
    if (options.trail != nullptr) m_clock_offset = clock_offset(transport, m_options.wait);
  }

  pattern::FarmReport run() { return m_transport.rank() == Rank{0} ? lead() : serve(); }

 private:
  /// Returns the options of the decider, after all ranks have compared theirs.
  [[nodiscard]] pattern::FarmOptions agreed() const {
    const std::string mine = farm_terms(m_options);
    const auto bytes = std::as_bytes(std::span(mine.data(), mine.size()));
    check_equal_terms("heddle::pattern::farm", all_gather(m_transport, bytes, m_options.wait));
    return decider_options(m_options, static_cast<int>(m_workers));
  }

  [[nodiscard]] MailboxOptions mailbox_options() const {
    return {.doing = "its farm", .wait = m_options.wait};
  }

  // The part of every worker.

  pattern::FarmReport serve() {
    const std::vector<Rank> head{Rank{0}};
    Mailbox<T> mail(m_transport, head, mailbox_options());
    for (;;) {
      Letter letter = mail.receive();
      if (letter.last) {
        mail.close();
        std::span<const std::byte> bytes = letter.bytes;
        return unpack<pattern::FarmReport>(bytes);
      }
      MessageBytes reply = mail.blank();
      answer(letter.bytes, reply);
      mail.give_back(std::move(letter.bytes));
      // A long letter needs this rank to be sent, and the next item may take long.
      const bool is_long = reply.size() > Mailbox<T>::short_bytes;
      mail.send(Rank{0}, std::move(reply));
      if (is_long) mail.flush();
    }
  }

  /// Works on an item, and writes the end of the attempt: its number, the event of the trail if one
  /// is wanted, and the outcome.
  void answer(std::span<const std::byte> order, MessageBytes& reply) {
    pattern::FarmTask task;
    task.item = unpack<std::int64_t>(order);
    task.attempt = unpack<int>(order);
    m_part.take_item(order, *m_item);
    Trail::Event event;
    event.item = task.item;
    event.start = steady_seconds() + m_clock_offset;
    farm_attempt(m_part, *m_item, task, *m_outcome);
    event.end = steady_seconds() + m_clock_offset;
    pack(reply, task.item);
    if (m_options.trail != nullptr) pack(reply, event);
    put_outcome(m_part, reply, *m_outcome);
    m_item->clear();
  }

  // The part of rank 0.

  pattern::FarmReport lead() {
    std::vector<Rank> peers;
    for (int r = 1; r < m_transport.size(); ++r) peers.push_back(Rank{r});
    Mailbox<T> mail(m_transport, peers, mailbox_options());
    try {
      m_items.open();
      if (m_options.trail != nullptr) m_options.trail->expect_workers(static_cast<int>(m_workers));
      while (hand_out(mail)) take_in(mail);
      const pattern::FarmReport report = m_items.end();
      MessageBytes last;
      pack(last, report);
      for (const Rank peer : peers) mail.send_last(peer, last);
      mail.close();
      return report;
    } catch (const std::exception& error) {
      mail.give_up(error.what());
      throw;
    } catch (...) {
      mail.give_up("an exception that is no std::exception");
      throw;
    }
  }

  /// Gives every rank what it may have: first one item each, then a second one. Returns false if
  /// all is done and nobody holds an item.
  bool hand_out(Mailbox<T>& mail) {
    m_until.reset();
    m_decider.end_leases(steady_seconds());
    for (std::uint64_t held = 0; held < static_cast<std::uint64_t>(m_options.prefetch); ++held)
      for (std::size_t rank = 0; rank < m_workers; ++rank) {
        if (m_holders.held(rank) != held || m_holders.is_silent(rank, m_decider)) continue;
        const Worker worker = m_holders.next(rank);
        pattern::FarmDecider::Next next = m_decider.next(worker, steady_seconds());
        while (next.answer == pattern::FarmDecider::Answer::propose) {
          propose();
          next = m_decider.next(worker, steady_seconds());
        }
        if (next.answer == pattern::FarmDecider::Answer::end) return m_holders.any();
        if (next.answer == pattern::FarmDecider::Answer::wait) {
          m_holders.note_idle();
          m_until = next.until;
          return true;
        }
        order(mail, rank, next.task);
      }
    return true;
  }

  void propose() {
    std::unique_ptr<FarmSlot> slot = m_items.blank();
    if (!m_items.take(*slot)) return m_decider.proposed(false);
    m_part.put_item(slot->bytes, *slot->item);
    slot->item->clear();
    m_items.add(std::move(slot));
  }

  void order(Mailbox<T>& mail, std::size_t rank, const pattern::FarmTask& task) {
    MessageBytes order = mail.blank();
    pack(order, task.item);
    pack(order, task.attempt);
    const MessageBytes& item = m_items[task.item].bytes;
    put_raw(order, item.data(), item.size());
    m_holders.give(rank);
    if (m_transport.size() > 1)
      mail.send(Rank{rank + 1}, std::move(order));
    else
      m_own.push_back(std::move(order));
  }

  /// Waits for an answer, or until the decider may have something new.
  void take_in(Mailbox<T>& mail) {
    if (!m_own.empty()) {
      MessageBytes order = std::exchange(m_own.front(), {});
      m_own.pop_front();
      MessageBytes reply = mail.blank();
      answer(order, reply);
      mail.give_back(std::move(order));
      accept(0, reply);
      return mail.give_back(std::move(reply));
    }
    if (m_transport.size() == 1) {
      if (m_until) sleep_until(*m_until);
      return;
    }
    std::optional<Letter> letter = m_until ? mail.receive_until(*m_until) : mail.receive();
    if (!letter) return;
    accept(+letter->from - 1, letter->bytes);
    mail.give_back(std::move(letter->bytes));
  }

  void accept(std::size_t rank, std::span<const std::byte> reply) {
    const auto number = unpack<std::int64_t>(reply);
    Trail::Event event;
    if (m_options.trail != nullptr) event = unpack<Trail::Event>(reply);
    const Seconds now = steady_seconds();
    const auto fate = m_decider.report(m_holders.front(rank), has_value(reply), now);
    event.worker = Worker{rank};
    event.waited = m_holders.end(rank);
    if (m_options.trail != nullptr) m_options.trail->add(event);
    // The rank begins the next item that it holds only now.
    if (m_holders.held(rank) > 0) m_decider.renew(m_holders.front(rank), now);
    if (fate == pattern::FarmDecider::Fate::finished) m_items.finish(number, reply);
  }

  T& m_transport;
  const pattern::FarmOptions& m_options;
  FarmPart& m_part;
  FarmCall m_call;
  std::size_t m_workers;
  pattern::FarmOptions m_agreed;  ///< options of the decider, which are equal on all ranks
  pattern::FarmDecider m_decider;
  FarmSlots m_items;
  std::unique_ptr<AnyFarmItem> m_item;        ///< that this rank works on
  std::unique_ptr<AnyFarmOutcome> m_outcome;  ///< the outcome of that item
  FarmHolders m_holders;
  Seconds m_clock_offset = 0;      ///< to rank 0's steady clock, for the trail
  RingQueue<MessageBytes> m_own;   ///< items of rank 0, if it is alone
  std::optional<Seconds> m_until;  ///< when the decider wants to be asked again
};

}  // namespace heddle::inline v0::impl
