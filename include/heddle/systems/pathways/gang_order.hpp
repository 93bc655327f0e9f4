// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangOrder: decides the one order in which the programs of several clients run on all ranks of an
/// island. systems/pathways/island.hpp runs them.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <optional>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// How a GangOrder chooses among clients that have waiting programs.
enum class GangPolicy : std::uint8_t {
  fifo,  ///< the program that was submitted first
  share  ///< the client that is farthest behind its share, see GangOrder
};

/// Prints the name of the policy.
std::ostream& operator<<(std::ostream& out, GangPolicy policy);

/// The order of the programs of several clients. All ranks of an island run whole programs in this
/// one order, which is the order of a list. Programs that communicate therefore cannot wait for one
/// another in a circle. The programs of a client keep their own order.
///
/// With GangPolicy::share the order is stride scheduling (Waldspurger and Weihl, 1995). A client of
/// weight w advances its pass by 1 / w with every program, and the client with the smallest pass is
/// next; at equal passes it is the client with the smallest number. As long as all clients have
/// waiting programs, the number of programs of a client differs from its share by less than the
/// number of clients. A client that had no programs continues at the present pass, so it does not
/// catch up on the time in which it was idle.
///
/// The order depends on the calls of submit() and next() alone.
class GangOrder {
 public:
  /// Constructs the order of as many clients as there are weights, which are their shares.
  /// @throws contract_error if the policy is unknown, or if a weight is not in [1, most_weight].
  GangOrder(GangPolicy policy, std::vector<std::uint32_t> weights);

  /// The largest weight of a client.
  static constexpr std::uint32_t most_weight = 1u << 20;

  /// Appends a program of `client`.
  /// @throws contract_error if there is no such client.
  void submit(std::size_t client);

  /// Removes the next program from the order. Returns its client, whose oldest program it is, or
  /// nullopt if no client has a program.
  [[nodiscard]] std::optional<std::size_t> next();

  /// Returns the number of waiting programs of all clients.
  [[nodiscard]] std::size_t waiting() const noexcept { return m_arrivals.size(); }
  /// Returns the number of clients.
  [[nodiscard]] std::size_t clients() const noexcept { return m_clients.size(); }

 private:
  /// The state of a client.
  struct Client {
    std::uint32_t weight = 1;
    std::uint64_t waiting = 0;  ///< programs
    /// The pass of stride scheduling: the client's virtual time, which grows by 1 / weight with
    /// each of its programs. It is whole + part / weight, so that the sums are exact.
    std::uint64_t whole = 0;
    std::uint32_t part = 0;
  };

  /// Returns true if the pass of `a` is below the pass of `b`.
  [[nodiscard]] static bool behind(const Client& a, const Client& b) noexcept;
  /// Sets the pass of a client that had no programs to the present pass, rounded up.
  void rejoin(Client& client) const noexcept;
  [[nodiscard]] std::size_t least() const noexcept;

  GangPolicy m_policy;
  std::vector<Client> m_clients;
  std::deque<std::size_t> m_arrivals;  ///< the clients of the waiting programs, as submitted
  Client m_present;                    ///< its pass is that of the program that was taken last
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pathways/gang_order.ipp>
#endif
