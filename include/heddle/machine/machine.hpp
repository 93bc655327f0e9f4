// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Machine: the devices and links that a Schedule is priced on, as data.

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// Where one rank computes.
struct Device {
  std::string name = "device";  ///< for people to read
};

/// A directed connection of two ranks. A message of n bytes occupies it for n / bandwidth and is
/// there `latency` later.
struct Link {
  Seconds latency = 0;  ///< from the end of the occupancy to the arrival
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per second

  /// Time for which a message keeps the link from carrying the next one.
  [[nodiscard]] Seconds occupancy(Bytes bytes) const noexcept {
    return static_cast<double>(bytes) / bandwidth;
  }
};

/// The ranks' devices and the links between any two of them.
class Machine {
 public:
  /// `ranks` equal devices, every pair joined by a link of its own in each direction.
  [[nodiscard]] static Machine uniform(int ranks, Device device, Link link) {
    constexpr const char* where = "heddle::Machine::uniform";
    expects(ranks >= 1, [&] {
      return Complaint{where, "a machine has at least one rank", text("ranks = ", ranks)};
    });
    expects(link.latency >= 0 && link.bandwidth > 0 && std::isfinite(link.latency), [&] {
      return Complaint{where, "a link has a latency of at least 0 and a bandwidth above 0",
                       text("latency ", link.latency, " s, bandwidth ", link.bandwidth, " B/s")};
    });
    Machine machine;
    machine.m_ranks = ranks;
    machine.m_device = std::move(device);
    machine.m_link = link;
    return machine;
  }

  /// Number of ranks.
  [[nodiscard]] int ranks() const noexcept { return m_ranks; }
  /// Where a rank computes.
  [[nodiscard]] const Device& device(Rank) const noexcept { return m_device; }
  /// The link from one rank to another.
  [[nodiscard]] const Link& link(Rank, Rank) const noexcept { return m_link; }

  friend std::ostream& operator<<(std::ostream& out, const Machine& machine) {
    return out << machine.m_ranks << " x " << machine.m_device.name << ", links of "
               << machine.m_link.latency * 1e6 << " us and " << machine.m_link.bandwidth / 1e9
               << " GB/s";
  }

 private:
  int m_ranks = 1;
  Device m_device;
  Link m_link;
};

}  // namespace heddle::inline v0
