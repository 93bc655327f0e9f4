// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sweeps of fixed_point() over ranks. Between two sweeps a rank gets the values that it reads
/// in the next one and does not have.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/gather_trail.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/impl/fixed_point_solver.hpp>
#include <heddle/pattern/sweep.hpp>

namespace heddle::inline v0::impl {

/// One call of fixed_point() over ranks, as one of them sees it. All ranks decide alike after each
/// sweep, from the ends of all shares.
template <Transport T, class System>
class RankFixedPoint : protected FixedPointSolver<System> {
 protected:
  using Solver = FixedPointSolver<System>;
  using Value = typename Solver::Value;
  static_assert(std::is_trivially_copyable_v<Value>,
                "the values of heddle::pattern::fixed_point() over ranks are trivially copyable");

 public:
  RankFixedPoint(T& transport, const System& system, const pattern::FixedPointOptions& options)
      : Solver(system, options),
        m_transport(transport),
        m_wait(options.wait),
        m_ended(static_cast<std::size_t>(transport.size())),
        m_self(+transport.rank()),
        m_owner(static_cast<std::size_t>(system.size()), 0) {
    this->m_reach = options.reach;
    if (options.trail != nullptr) m_clock_offset = clock_offset(transport, m_wait);
  }

  pattern::FixedPoint<Value> run() {
    return run([this] {
      while (!this->m_done) sweep();
    });
  }

 protected:
  /// Runs `sweeps()` until they are done, and gives all ranks the values and the trail.
  template <class Sweeps>
  pattern::FixedPoint<Value> run(Sweeps&& sweeps) {
    if (this->m_system.size() == 0) {
      this->m_result.converged = true;
      return std::move(this->m_result);
    }
    try {
      sweeps();
      gather();
      if (this->m_options.trail != nullptr) {
        Trail mine;
        this->record(mine, m_self, Worker{0});
        this->m_options.trail->append(gather_trail(m_transport, mine, m_clock_offset, m_wait));
      }
    } catch (const std::exception& error) {
      give_up(error.what());
      throw;
    } catch (...) {
      give_up("an exception that is no std::exception");
      throw;
    }
    return std::move(this->m_result);
  }

  /// A contiguous range of equations.
  struct Range {
    int first;
    int last;
  };

  /// The end of a rank's share in a sweep.
  struct Ended {
    double largest = 0;
    int first = 0;
    int last = 0;
    int changed = 0;
    int unused = 0;
  };

  /// A message in flight, to or from `peer`.
  struct Message {
    Rank peer;
    typename T::Request request;
  };

  void sweep() {
    this->compute(m_self);
    if (const auto& error = this->m_workers[m_self].error) std::rethrow_exception(error);
    this->take_over(m_self);
    exchange_ends();
    const std::size_t ranks = this->m_workers.size();
    std::vector<Range> had(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      had[r] = {this->m_workers[r].first, this->m_workers[r].last};
      std::fill(m_owner.begin() + had[r].first, m_owner.begin() + had[r].last,
                static_cast<std::uint32_t>(r));
    }
    this->judge();
    if (!this->m_done) exchange_values(had);
  }

  /// Tells every rank how this rank's share ended.
  void exchange_ends() {
    std::vector<Ended>& ended = m_ended;
    const auto& mine = this->m_workers[m_self];
    ended[m_self] = {mine.largest, mine.first, mine.last, mine.changed, 0};
    for (std::size_t r = 0; r < ended.size(); ++r) {
      if (r == m_self) continue;
      receive(r, &ended[r], sizeof(Ended));
      send(r, &ended[m_self], sizeof(Ended));
    }
    finish_all();
    for (std::size_t r = 0; r < ended.size(); ++r) {
      auto& share = this->m_workers[r];
      share.first = ended[r].first;
      share.last = ended[r].last;
      share.changed = ended[r].changed;
      share.largest = ended[r].largest;
    }
  }

  /// Returns the values that rank `r` reads or compares in the next sweep. Both ends never fall
  /// from sweep to sweep, so it has all that were not computed in the sweep before.
  [[nodiscard]] Range reads(std::size_t r) const {
    const int first = this->cut(r);
    return {this->m_reach > 0 ? std::max(0, first - this->m_reach) : 0, this->cut(r + 1)};
  }

  static Range common(Range a, Range b) {
    const int first = std::max(a.first, b.first);
    return {first, std::max(first, std::min(a.last, b.last))};
  }

  /// Moves the values that the ranks have computed, `had`, to those that read them next.
  void exchange_values(const std::vector<Range>& had) {
    const auto bytes_of = [](Range range) {
      return static_cast<std::size_t>(range.last - range.first) * sizeof(Value);
    };
    for (std::size_t r = 0; r < had.size(); ++r) {
      if (r == m_self) continue;
      const Range in = common(had[r], reads(m_self));
      const Range out = common(had[m_self], reads(r));
      Value* const values = this->m_result.values.data();
      if (in.first < in.last) receive(r, values + in.first, bytes_of(in));
      if (out.first < out.last) send(r, values + out.first, bytes_of(out));
      this->m_result.received += in.last - in.first;
    }
    finish_all();
  }

  /// Gives every rank all values, from the rank that has computed each last.
  void gather() {
    std::vector<Value>& values = this->m_result.values;
    std::vector<Value> mine;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (m_owner[i] == m_self) mine.push_back(values[i]);
    const auto all = all_gather(m_transport, std::span<const Value>(mine), m_wait);
    std::vector<std::size_t> next(all.size(), 0);
    // Equations that no sweep has reached have the start value on every rank.
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = all[m_owner[i]][next[m_owner[i]]++];
  }

  void receive(std::size_t rank, void* data, std::size_t bytes) {
    m_open.push_back(
        {Rank{rank}, m_transport.receive(Rank{rank}, control_lane, static_cast<std::byte*>(data),
                                         Bytes{bytes})});
  }
  void send(std::size_t rank, const void* data, std::size_t bytes) {
    m_open.push_back(
        {Rank{rank}, m_transport.send(Rank{rank}, control_lane, static_cast<const std::byte*>(data),
                                      Bytes{bytes})});
  }
  void finish_all() {
    const auto silent = [&] {
      std::vector<Rank> ranks;
      for (Message& message : m_open)
        if (!m_transport.test(message.request) && (ranks.empty() || ranks.back() != message.peer))
          ranks.push_back(message.peer);
      return ranks;
    };
    for (Message& message : m_open)
      impl::finish(
          m_transport, [&] { return m_transport.test(message.request); }, "fixed_point", m_wait,
          silent);
    m_open.clear();
  }

  void give_up(const char* reason) {
    if (!m_transport.aborted()) m_transport.abort({m_transport.rank(), "fixed_point", reason});
    for (Message& message : m_open) m_transport.cancel(message.request);
    m_open.clear();
  }

  T& m_transport;
  ExecuteOptions m_wait;
  std::vector<Ended> m_ended;  ///< by rank
  std::size_t m_self;
  std::vector<std::uint32_t> m_owner;  ///< by equation: the rank that computed it last
  std::vector<Message> m_open;
  Seconds m_clock_offset = 0;  ///< to rank 0's steady clock, for the trail
};

}  // namespace heddle::inline v0::impl
