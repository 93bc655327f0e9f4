// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SiteOrders: the sites of a machine, how fast they are, and the orders in which a pipeline can
/// pass them.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/internal/device_work.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::systems::impl {

/// The sites of a problem. The table outlives the object.
class SiteOrders {
 public:
  static constexpr std::size_t most_mixed = 6;  ///< sites up to which all orders are tried

  explicit SiteOrders(plan::impl::LayerTable& table)
      : m_sites(plan::impl::sites_of(table.problem().machine())), m_work(table) {
    for (std::vector<Rank>& site : m_sites) {
      std::ranges::stable_sort(site, [&](Rank a, Rank b) {
        const Machine& machine = table.problem().machine();
        if (m_work.speed[+a] != m_work.speed[+b]) return m_work.speed[+a] > m_work.speed[+b];
        return plan::impl::roomier(machine.device(a), machine.device(b));
      });
      double speed = 0;
      for (const Rank rank : site) speed += m_work.speed[+rank];
      m_speeds.push_back(speed);
    }
    std::vector<std::size_t> order;
    std::vector<bool> used(m_sites.size(), false);
    if (m_sites.size() <= most_mixed) {
      find_classes(table.problem().machine());
      add_orders(order, used);
    } else {
      add_fastest();
    }
    std::ranges::stable_sort(m_orders, {}, [](const auto& each) { return each.size(); });
  }

  /// Returns the ranks of the sites, those of a site fastest first.
  [[nodiscard]] const std::vector<std::vector<Rank>>& sites() const noexcept { return m_sites; }
  /// Returns the orders of some or all sites; those with few sites come first.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& orders() const noexcept {
    return m_orders;
  }
  /// Returns the least time of a sample and the first `layers` layers on one device.
  [[nodiscard]] Seconds work(int layers) const {
    return m_work.first[static_cast<std::size_t>(layers)];
  }
  /// Returns an upper bound of the speed of a site; the fastest device does work(n) in that time.
  [[nodiscard]] double speed(std::size_t site) const { return m_speeds[site]; }

 private:
  /// Numbers each site by the first one with which it can change places.
  void find_classes(const Machine& machine) {
    for (std::size_t s = 0; s < m_sites.size(); ++s) {
      std::size_t same = 0;
      while (same < s && (m_class[same] != same ||
                          !plan::impl::interchangeable(machine, m_sites[same], m_sites[s])))
        ++same;
      m_class.push_back(same);
    }
  }

  /// Adds all orders that begin with `order`; of sites that can change places the first comes
  /// first.
  void add_orders(std::vector<std::size_t>& order, std::vector<bool>& used) {
    if (!order.empty()) m_orders.push_back(order);
    for (std::size_t s = 0; s < m_sites.size(); ++s) {
      if (used[s]) continue;
      bool first = true;
      for (std::size_t t = 0; t < s; ++t) first = first && (used[t] || m_class[t] != m_class[s]);
      if (!first) continue;
      used[s] = true;
      order.push_back(s);
      add_orders(order, used);
      order.pop_back();
      used[s] = false;
    }
  }

  /// Adds the fastest sites, in falling and in rising order of speed.
  void add_fastest() {
    std::vector<std::size_t> sorted(m_sites.size());
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::ranges::stable_sort(
        sorted, [&](std::size_t a, std::size_t b) { return m_speeds[a] > m_speeds[b]; });
    for (std::size_t count = 1; count <= sorted.size(); ++count) {
      m_orders.emplace_back(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
      m_orders.emplace_back(m_orders.back().rbegin(), m_orders.back().rend());
    }
  }

  std::vector<std::vector<Rank>> m_sites;
  std::vector<double> m_speeds;  ///< by site
  plan::impl::DeviceWork m_work;
  std::vector<std::size_t> m_class;
  std::vector<std::vector<std::size_t>> m_orders;
};

}  // namespace heddle::inline v0::systems::impl
