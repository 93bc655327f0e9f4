// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A race over ranks, as one of them knows it.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/race_options.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::impl {

/// The state of a race as one rank knows it. Every rank sends one message to each other rank when
/// its own search ends, unless that search throws. Of all results, the one with the least work
/// wins, whatever the order of the race; see race().
template <Transport T>
class RankRace final : public Race {
 public:
  struct End {
    WalkerWork work;
    std::uint32_t found = 0;
  };

  RankRace(T& transport, pattern::RaceOptions::Order order, const ExecuteOptions& wait)
      : m_transport(transport), m_order(order), m_wait(wait) {
    const auto ranks = static_cast<std::uint32_t>(transport.size());
    m_ends.resize(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (r != transport.rank().value)
        m_open.push_back(
            {r, transport.receive(Rank{r}, control_lane, bytes_of(m_ends[r]), sizeof(End))});
  }

  bool is_beaten(WalkerWork so_far) override {
    for (std::size_t i = 0; i < m_open.size();) {
      if (!m_transport.test(m_open[i].request)) {
        ++i;
        continue;
      }
      note(m_ends[m_open[i].rank]);
      m_open.erase(m_open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (m_transport.aborted()) return true;
    if (!m_best) return false;
    return m_order == pattern::RaceOptions::Order::by_time || *m_best < so_far;
  }

  /// Tells all ranks how this one ended, and waits until all have ended. @throws
  /// communication_error, which names a rank that does not answer.
  void finish(End own) {
    const std::uint32_t self = m_transport.rank().value;
    m_ends[self] = own;
    std::vector<typename T::Request> sends;
    try {
      for (std::uint32_t r = 0; r < m_ends.size(); ++r)
        if (r != self)
          sends.push_back(
              m_transport.send(Rank{r}, control_lane, bytes_of(m_ends[self]), sizeof(End)));
      for (std::uint32_t r = 0, s = 0; r < m_ends.size(); ++r)
        if (r != self) heddle::impl::finish(m_transport, sends[s++], "race", m_wait, Rank{r});
      for (auto& [rank, request] : m_open)
        heddle::impl::finish(m_transport, request, "race", m_wait, Rank{rank});
      m_open.clear();
    } catch (const std::exception& error) {
      give_up(error.what());
      for (auto& request : sends) m_transport.cancel(request);
      throw;
    }
    m_best.reset();
    for (const End& end : m_ends) note(end);
  }

  /// Tells all ranks that this one failed.
  void give_up(const char* reason) {
    if (!m_transport.aborted()) m_transport.abort({m_transport.rank(), "race", reason});
    for (auto& [rank, request] : m_open) m_transport.cancel(request);
    m_open.clear();
  }

  [[nodiscard]] const std::vector<End>& ends() const noexcept { return m_ends; }
  [[nodiscard]] int winner() const { return m_best ? static_cast<int>(m_best->walker) : -1; }

 private:
  struct Open {
    std::uint32_t rank;
    typename T::Request request;
  };

  static std::byte* bytes_of(End& end) { return reinterpret_cast<std::byte*>(&end); }

  void note(const End& end) {
    if (end.found != 0 && (!m_best || end.work < *m_best)) m_best = end.work;
  }

  T& m_transport;
  pattern::RaceOptions::Order m_order;
  const ExecuteOptions& m_wait;
  std::vector<End> m_ends;  ///< by rank
  std::vector<Open> m_open;
  std::optional<WalkerWork> m_best;
};

}  // namespace heddle::inline v0::impl
