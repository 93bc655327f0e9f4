// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of nano_search.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>
#include <heddle/systems/nanoflow/nano_search.hpp>

namespace heddle::inline v0::systems::impl {

/// One run of search_nano_plan().
class NanoSearch {
 public:
  NanoSearch(const NanoLayer& layer, const NanoSearchOptions& options)
      : m_layer(layer),
        m_costs(layer),
        m_random(options.seed, "heddle::systems::search_nano_plan"),
        m_restarts(options.restarts) {
    choose_units(options.units);
    expects(m_restarts >= 0, [&] {
      return complaint("the number of restarts must be at least 0", text(m_restarts));
    });
    m_best.plan = serial_nano_plan(layer, {layer.samples});
    m_best.makespan = price(m_best.plan);
    for (const std::vector<std::int64_t>& division : options.divisions) search(division);
    m_best.simulated = m_simulated;
  }

  [[nodiscard]] FoundNanoPlan found() && { return std::move(m_best); }

 private:
  [[nodiscard]] ErrorInfo complaint(std::string what, std::string why) const {
    return {text("heddle::systems::search_nano_plan, '", m_layer.name, "'"), std::move(what),
            std::move(why)};
  }

  void choose_units(const std::vector<std::vector<int>>& given) {
    const std::size_t resources = m_layer.performance.size();
    expects(given.empty() || given.size() == resources, [&] {
      return complaint("every resource needs its numbers of units to try",
                       text(given.size(), " rows for ", resources, " resources"));
    });
    for (std::size_t r = 0; r < resources; ++r) {
      std::vector<std::uint16_t> row = {static_cast<std::uint16_t>(m_layer.units)};
      const int count = given.empty() ? m_layer.units : static_cast<int>(given[r].size());
      for (int i = 0; i < count; ++i) {
        const int units = given.empty() ? i + 1 : given[r][static_cast<std::size_t>(i)];
        expects(units >= 1 && units <= m_layer.units, [&] {
          return complaint("a number of units to try is not within the device",
                           text("resource ", r, ": ", units, " of ", m_layer.units));
        });
        row.push_back(static_cast<std::uint16_t>(units));
      }
      std::ranges::sort(row);
      row.erase(std::unique(row.begin(), row.end()), row.end());
      m_units.push_back(std::move(row));
    }
  }

  [[nodiscard]] Seconds price(const NanoPlan& plan) {
    ++m_simulated;
    simulate(nano_schedule(m_layer, plan), m_costs, m_timeline);
    return m_timeline.makespan();
  }

  [[nodiscard]] std::size_t draw(std::size_t bound) {
    return static_cast<std::size_t>(m_random.below(m_draws++, bound));
  }
  [[nodiscard]] const std::vector<std::uint16_t>& units_of(const NanoPiece& piece) const {
    return m_units[m_layer.operations[piece.operation].resource];
  }

  void search(const std::vector<std::int64_t>& division) {
    const NanoPlan by_operation = serial_nano_plan(m_layer, division);
    NanoPlan by_piece = by_operation;
    std::ranges::stable_sort(by_piece.order, {}, &systems::NanoPiece::piece);
    descend(by_operation);
    descend(by_piece);
    for (int i = 0; i < m_restarts; ++i) {
      NanoPlan start = by_operation;
      shuffle(start);
      for (NanoPiece& piece : start.order) {
        const auto& row = units_of(piece);
        piece.units = row[draw(row.size())];
      }
      descend(std::move(start));
    }
  }

  /// Puts the pieces into a random order that keeps dependencies and the order of the batch. With
  /// the same division everywhere, piece p of an operation depends on piece p of its inputs.
  void shuffle(NanoPlan& start) {
    std::vector<std::uint32_t> done(m_layer.operations.size(), 0);
    const auto pieces = static_cast<std::uint32_t>(start.pieces.stages.front().size());
    for (NanoPiece& next : start.order) {
      std::vector<std::uint32_t> ready;
      for (std::uint32_t o = 0; o < done.size(); ++o)
        if (done[o] < pieces && std::ranges::all_of(m_layer.operations[o].inputs, [&](auto input) {
              return done[input] > done[o];
            }))
          ready.push_back(o);
      const std::uint32_t o = ready[draw(ready.size())];
      next = {o, done[o]++, next.units};
    }
  }

  /// Returns true if two neighbours in the order may change places.
  [[nodiscard]] bool may_swap(const NanoPiece& a, const NanoPiece& b) const {
    const auto& inputs = m_layer.operations[b.operation].inputs;
    return a.operation != b.operation &&
           (a.piece != b.piece || std::ranges::find(inputs, a.operation) == inputs.end());
  }

  /// Takes steps from `plan` while one of them helps.
  void descend(NanoPlan plan) {
    Seconds now = price(plan);
    const auto improves = [&] {
      const Seconds then = price(plan);
      if (!(then < now)) return false;
      now = then;
      return true;
    };
    auto& order = plan.order;
    for (bool better = true; better;) {
      better = false;
      for (std::size_t i = 0; i < order.size(); ++i) {
        better = change_units(order[i], improves) || better;
        for (std::size_t j = i + 1; j < order.size(); ++j)
          better = share_units(order[i], order[j], improves) || better;
      }
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        if (!may_swap(order[i], order[i + 1])) continue;
        std::swap(order[i], order[i + 1]);
        if (improves())
          better = true;
        else
          std::swap(order[i], order[i + 1]);
      }
    }
    if (!(now < m_best.makespan)) return;
    m_best.makespan = now;
    m_best.plan = std::move(plan);
  }

  template <class Improves>
  [[nodiscard]] bool change_units(NanoPiece& piece, const Improves& improves) {
    bool better = false;
    for (const std::uint16_t units : units_of(piece)) {
      const std::uint16_t before = piece.units;
      if (units == before) continue;
      piece.units = units;
      if (improves())
        better = true;
      else
        piece.units = before;
    }
    return better;
  }

  /// Tries the units with which the two pieces can run together and leave as few units as possible.
  template <class Improves>
  [[nodiscard]] bool share_units(NanoPiece& a, NanoPiece& b, const Improves& improves) {
    if (m_layer.operations[a.operation].resource == m_layer.operations[b.operation].resource)
      return false;
    bool better = false;
    for (const std::uint16_t units : units_of(a)) {
      const auto& row = units_of(b);
      const auto above = std::ranges::upper_bound(row, m_layer.units - units);
      if (above == row.begin()) continue;
      const std::uint16_t before[] = {a.units, b.units};
      a.units = units;
      b.units = *std::prev(above);
      if (a.units == before[0] && b.units == before[1]) continue;
      if (improves()) {
        better = true;
      } else {
        a.units = before[0];
        b.units = before[1];
      }
    }
    return better;
  }

  const NanoLayer& m_layer;
  InterferenceCosts m_costs;
  Random m_random;
  int m_restarts;
  std::vector<std::vector<std::uint16_t>> m_units;  ///< to try, by resource, ascending
  Timeline m_timeline;
  FoundNanoPlan m_best;
  std::uint64_t m_draws = 0;
  std::size_t m_simulated = 0;
};

}  // namespace heddle::inline v0::systems::impl

namespace heddle::inline v0::systems {

HEDDLE_INLINE FoundNanoPlan search_nano_plan(const NanoLayer& layer,
                                             const NanoSearchOptions& options) {
  return impl::NanoSearch(layer, options).found();
}

}  // namespace heddle::inline v0::systems
