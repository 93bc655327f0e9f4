// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gang_order.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/pathways/gang_order.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, GangPolicy policy) {
  return out << (policy == GangPolicy::fifo ? "fifo" : "share");
}

HEDDLE_INLINE GangOrder::GangOrder(GangPolicy policy, std::vector<std::uint32_t> weights)
    : m_policy(policy) {
  heddle::impl::expect_enumerator("heddle::systems::GangOrder", "policy", policy,
                                  GangPolicy::share);
  for (const std::uint32_t weight : weights) {
    expects(weight >= 1 && weight <= most_weight, [&] {
      return ErrorInfo{"heddle::systems::GangOrder",
                       text("a weight must lie in 1 .. ", most_weight),
                       text("client ", m_clients.size(), " has the weight ", weight)};
    });
    m_clients.push_back({.weight = weight});
  }
}

HEDDLE_INLINE void GangOrder::submit(std::size_t client) {
  expects(client < m_clients.size(), [&] {
    return ErrorInfo{"heddle::systems::GangOrder::submit", "there is no such client",
                     text("client ", client, " of ", m_clients.size())};
  });
  if (m_clients[client].waiting++ == 0) rejoin(m_clients[client]);
  m_arrivals.push_back(client);
}

HEDDLE_INLINE std::optional<std::size_t> GangOrder::next() {
  if (m_arrivals.empty()) return std::nullopt;
  const std::size_t chosen = m_policy == GangPolicy::fifo ? m_arrivals.front() : least();
  m_arrivals.erase(std::ranges::find(m_arrivals, chosen));
  Client& client = m_clients[chosen];
  --client.waiting;
  m_present = client;
  if (++client.part == client.weight) {
    client.part = 0;
    ++client.whole;
  }
  return chosen;
}

HEDDLE_INLINE bool GangOrder::behind(const Client& a, const Client& b) noexcept {
  if (a.whole != b.whole) return a.whole < b.whole;
  return std::uint64_t{a.part} * b.weight < std::uint64_t{b.part} * a.weight;
}

HEDDLE_INLINE void GangOrder::rejoin(Client& client) const noexcept {
  if (!behind(client, m_present)) return;
  client.whole = m_present.whole;
  const std::uint64_t wanted = std::uint64_t{m_present.part} * client.weight;
  const std::uint64_t part = (wanted + m_present.weight - 1) / m_present.weight;
  client.part = static_cast<std::uint32_t>(part % client.weight);
  client.whole += part / client.weight;
}

HEDDLE_INLINE std::size_t GangOrder::least() const noexcept {
  std::size_t chosen = m_clients.size();
  for (std::size_t c = 0; c < m_clients.size(); ++c)
    if (m_clients[c].waiting > 0 &&
        (chosen == m_clients.size() || behind(m_clients[c], m_clients[chosen])))
      chosen = c;
  return chosen;
}

}  // namespace heddle::inline v0::systems
