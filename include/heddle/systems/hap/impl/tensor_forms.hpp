// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FormPaths: the cheapest collectives that make a tensor available in several forms.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace heddle::inline v0::systems::impl {

/// The cheapest ways from one form of a tensor to sets of forms. Forms are numbered: 0 is
/// replicated, 1 is partial, 2 + k is sharded along dimension k of the tensor. A set is a mask.
/// Each step reads an available form and adds one, so masks grow and one pass over all is enough.
class FormPaths {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// `steps[a][b]`: the price of the step from form a to form b, or `never`.
  explicit FormPaths(const std::vector<std::vector<double>>& steps) {
    const std::size_t forms = steps.size(), masks = std::size_t{1} << forms;
    for (std::size_t made = 0; made < forms; ++made) {
      Way way;
      way.price.assign(masks, never);
      way.step.resize(masks);
      way.price[std::size_t{1} << made] = 0;
      for (std::size_t mask = 0; mask < masks; ++mask) {
        if (way.price[mask] == never) continue;
        for (std::size_t a = 0; a < forms; ++a)
          for (std::size_t b = 0; b < forms; ++b) {
            if ((mask >> a & 1) == 0 || (mask >> b & 1) != 0 || steps[a][b] == never) continue;
            const std::size_t next = mask | std::size_t{1} << b;
            const double price = way.price[mask] + steps[a][b];
            if (price >= way.price[next]) continue;
            way.price[next] = price;
            way.step[next] = {static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)};
          }
      }
      way.cover.resize(masks);
      for (std::size_t mask = masks; mask-- > 0;) {
        way.cover[mask] = static_cast<std::uint16_t>(mask);
        for (std::size_t b = 0; b < forms; ++b) {
          if ((mask >> b & 1) != 0) continue;
          const std::uint16_t larger = way.cover[mask | std::size_t{1} << b];
          if (way.price[larger] < way.price[way.cover[mask]]) way.cover[mask] = larger;
        }
      }
      m_ways.push_back(std::move(way));
    }
  }

  [[nodiscard]] std::size_t forms() const { return m_ways.size(); }
  /// The price to have all forms of `needed` if the tensor is made in form `made`.
  [[nodiscard]] double price(std::size_t made, std::size_t needed) const {
    return m_ways[made].price[m_ways[made].cover[needed]];
  }
  /// The least price over all forms in which the tensor may be made.
  [[nodiscard]] double price(std::size_t needed) const {
    double least = never;
    for (std::size_t made = 0; made < m_ways.size(); ++made)
      if (price(made, needed) < least) least = price(made, needed);
    return least;
  }
  /// All forms that the cheapest way passes, as a mask.
  [[nodiscard]] std::size_t taken(std::size_t made, std::size_t needed) const {
    return m_ways[made].cover[needed];
  }
  /// The steps of the cheapest way, in order.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> steps(std::size_t made,
                                                                       std::size_t needed) const {
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (std::size_t mask = taken(made, needed); mask != std::size_t{1} << made;) {
      const auto [a, b] = m_ways[made].step[mask];
      out.insert(out.begin(), {a, b});
      mask &= ~(std::size_t{1} << b);
    }
    return out;
  }

 private:
  struct Way {
    std::vector<double> price;                                ///< by mask: to have exactly it
    std::vector<std::pair<std::uint8_t, std::uint8_t>> step;  ///< by mask: the last one
    std::vector<std::uint16_t> cover;                         ///< by mask: the cheapest superset
  };
  std::vector<Way> m_ways;  ///< by form made
};

}  // namespace heddle::inline v0::systems::impl
