// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sweeps of fixed_point() over ranks that use values of other ranks from earlier sweeps.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include <heddle/pattern/impl/rank_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0::impl {

/// One call of fixed_point() over ranks with a Staleness, as one of them sees it.
///
/// Ranks keep their shares. After sweep k a rank sends how it ended and what the others read of it,
/// and waits for the same of sweep k - age. All ranks know the same of the same sweeps when they
/// decide. Sweep j read values of sweep `d` of other ranks. If no value below an equation has
/// changed in the sweeps d + 1 to j, then all that it read in sweep j was final, and so is it.
template <Transport T, class System>
class StaleFixedPoint : private RankFixedPoint<T, System> {
  using Base = RankFixedPoint<T, System>;
  using Value = typename Base::Value;
  using Range = typename Base::Range;
  using Ended = typename Base::Ended;
  using Message = typename Base::Message;

 public:
  StaleFixedPoint(T& transport, const System& system, const pattern::FixedPointOptions& options)
      : Base(transport, system, options), m_staleness(options.staleness) {
    this->m_fixed = true;
  }

  pattern::FixedPoint<Value> run() {
    const std::size_t ranks = this->m_workers.size();
    for (std::size_t r = 0; r < ranks; ++r) m_shares.push_back({this->cut(r), this->cut(r + 1)});
    for (std::size_t r = 0; r < ranks; ++r)
      std::fill(this->m_owner.begin() + m_shares[r].first, this->m_owner.begin() + m_shares[r].last,
                static_cast<std::uint32_t>(r));
    return Base::run([this] {
      try {
        while (!this->m_done) sweep();
        while (m_taken < m_made) take(m_taken + 1);
        for (Exchange& exchange : m_exchanges) finish(exchange.sends);
      } catch (...) {
        for (Exchange& exchange : m_exchanges)
          for (auto* const messages : {&exchange.receives, &exchange.sends})
            for (Message& message : *messages) this->m_open.push_back(std::move(message));
        throw;  // the messages are cancelled there
      }
    });
  }

 private:
  /// The messages of one sweep.
  struct Exchange {
    Ended mine;
    std::vector<Ended> ended;              ///< by rank
    std::vector<Value> sent;               ///< the share of this rank
    std::vector<std::vector<Value>> come;  ///< by rank
    std::vector<Message> receives;
    /// Complete before another sweep takes the place of this one, and no earlier: the receiver may
    /// be in a sweep, and a send can need it.
    std::vector<Message> sends;
  };

  void sweep() {
    this->compute(this->m_self);
    if (const auto& error = this->m_workers[this->m_self].error) std::rethrow_exception(error);
    this->take_over(this->m_self);
    m_reads.push_back(m_taken);
    ++this->m_result.sweeps;
    start();
    const std::int64_t due = m_made - m_staleness.of_call(m_made);
    if (m_taken < due) {
      take(due);
      judge(due);
    }
    if (m_made == this->m_options.most_sweeps) this->m_done = true;
  }

  /// Returns the values of rank `from` that rank `to` reads.
  [[nodiscard]] Range boundary(std::size_t from, std::size_t to) const {
    const int first = m_shares[to].first;
    if (m_shares[to].first == m_shares[to].last) return {0, 0};
    return this->common(m_shares[from],
                        {this->m_reach > 0 ? std::max(0, first - this->m_reach) : 0, first});
  }

  /// Starts the messages of the sweep that this rank has made. What is final has been sent before.
  void start() {
    const std::size_t ranks = this->m_workers.size();
    if (m_exchanges.size() <= static_cast<std::size_t>(m_staleness.age)) m_exchanges.emplace_back();
    Exchange& exchange = slot(++m_made);
    finish(exchange.sends);
    const auto& share = this->m_workers[this->m_self];
    exchange.mine = {share.largest, share.first, share.last, share.changed, 0};
    exchange.ended.resize(ranks);
    exchange.ended[this->m_self] = exchange.mine;
    exchange.come.assign(ranks, {});
    const Range own = m_shares[this->m_self];
    exchange.sent.assign(this->m_result.values.begin() + own.first,
                         this->m_result.values.begin() + own.last);
    this->m_open.swap(exchange.receives);
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == this->m_self) continue;
      this->receive(r, &exchange.ended[r], sizeof(Ended));
      const Range in = boundary(r, this->m_self);
      if (in.last <= std::max(in.first, this->m_exact)) continue;
      exchange.come[r].resize(static_cast<std::size_t>(in.last - in.first));
      this->receive(r, exchange.come[r].data(), exchange.come[r].size() * sizeof(Value));
    }
    this->m_open.swap(exchange.receives);
    this->m_open.swap(exchange.sends);
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == this->m_self) continue;
      this->send(r, &exchange.mine, sizeof(Ended));
      const Range out = boundary(this->m_self, r);
      if (out.last > std::max(out.first, this->m_exact))
        this->send(r, exchange.sent.data() + (out.first - own.first),
                   static_cast<std::size_t>(out.last - out.first) * sizeof(Value));
    }
    this->m_open.swap(exchange.sends);
  }

  /// Waits for messages.
  void finish(std::vector<Message>& messages) {
    this->m_open.swap(messages);
    this->finish_all();
    this->m_open.swap(messages);
  }

  /// Waits for the messages of a sweep, and takes them over.
  void take(std::int64_t sweep) {
    Exchange& exchange = slot(sweep);
    finish(exchange.receives);
    m_taken = sweep;
    std::int64_t longest = 0;
    double largest = 0;
    int changed = this->m_end;
    for (std::size_t r = 0; r < exchange.ended.size(); ++r) {
      const Ended& ended = exchange.ended[r];
      this->m_result.evaluations += ended.last - ended.first;
      longest = std::max<std::int64_t>(longest, ended.last - ended.first);
      largest = std::max(largest, ended.largest);
      changed = std::min(changed, ended.changed);
      std::copy(exchange.come[r].begin(), exchange.come[r].end(),
                this->m_result.values.begin() + boundary(r, this->m_self).first);
      this->m_result.received += static_cast<std::int64_t>(exchange.come[r].size());
    }
    this->m_result.longest_share += longest;
    m_changed.push_back(changed);
    m_largest.push_back(largest);
  }

  /// Decides what is final after a sweep.
  void judge(std::int64_t sweep) {
    int exact = this->m_end;
    double largest = 0;
    for (std::int64_t j = m_reads[static_cast<std::size_t>(sweep - 1)]; j < sweep; ++j) {
      exact = std::min(exact, m_changed[static_cast<std::size_t>(j)]);
      largest = std::max(largest, m_largest[static_cast<std::size_t>(j)]);
    }
    this->m_exact = std::max(this->m_exact, exact);
    this->m_result.exact = this->m_exact;
    const bool near = this->m_options.tolerance > 0 && largest <= this->m_options.tolerance;
    if (!near && this->m_exact < this->m_end) return;
    this->m_result.converged = true;
    this->m_done = true;
  }

  [[nodiscard]] Exchange& slot(std::int64_t sweep) {
    const std::size_t slots = static_cast<std::size_t>(m_staleness.age) + 1;
    return m_exchanges[static_cast<std::size_t>(sweep - 1) % slots];
  }

  schedule::Staleness m_staleness;
  std::vector<Range> m_shares;        ///< by rank
  std::deque<Exchange> m_exchanges;   ///< at most age + 1; messages refer to them
  std::int64_t m_made = 0;            ///< sweeps that this rank has made
  std::int64_t m_taken = 0;           ///< sweeps of which it has the messages of the others
  std::vector<std::int64_t> m_reads;  ///< by sweep from 1: the sweep whose values it read
  std::vector<int> m_changed;         ///< by sweep: the end of the first task with a change
  std::vector<double> m_largest;      ///< by sweep: the largest change
};

}  // namespace heddle::inline v0::impl
