// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of halo_exchange.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/shared_region.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Finds the deliveries of a halo exchange.
class HaloPlanner {
 public:
  HaloPlanner(const Layout& layout, Bytes element, const HaloOptions& options)
      : m_layout(layout), m_element(element), m_corners(options.corners) {
    m_periodic.assign(layout.dims(), false);
    expects(element >= 1, [&] {
      return ErrorInfo{"heddle::schedule::halo_exchange", "an element has at least one byte",
                       text("element = ", element)};
    });
    expects(options.periodic.empty() || options.periodic.size() == layout.dims(), [&] {
      return ErrorInfo{"heddle::schedule::halo_exchange",
                       "periodic needs one value for each dimension",
                       text(options.periodic.size(), " given, ", layout.dims(), " dimensions")};
    });
    if (!options.periodic.empty()) m_periodic = options.periodic;
    for (int r = 0; r < layout.mesh().size(); ++r) {
      Holder holder;
      for (std::size_t dim = 0; dim < layout.dims(); ++dim) {
        holder.indices.push_back(layout.indices(Rank{r}, dim));
        holder.array.first.push_back(layout.halo(dim));
        holder.array.extents.push_back(holder.indices[dim].size() + 2 * layout.halo(dim));
      }
      for (std::size_t axis = 0; axis < layout.placements().size(); ++axis)
        if (!std::holds_alternative<Shard>(layout.placements()[axis]))
          holder.copy.push_back(layout.mesh().coordinate(Rank{r}, axis));
      m_holders.push_back(std::move(holder));
    }
  }

  [[nodiscard]] BlockExchange run(int ranks) && {
    m_plan.from.assign(static_cast<std::size_t>(ranks), 0);
    m_plan.to = m_plan.from;
    for (std::size_t r = 0; r < m_holders.size(); ++r)
      m_plan.to[+m_layout.ranks()[r]] = m_holders[r].array.bytes(m_element);
    m_plan.steps.push_back({"halo", true, {}});
    for (std::size_t to = 0; to < m_holders.size(); ++to)
      for (std::size_t from = 0; from < m_holders.size(); ++from)
        if (m_holders[from].copy == m_holders[to].copy) deliver(from, to);
    if (m_plan.steps.front().deliveries.empty()) m_plan.steps.clear();
    return std::move(m_plan);
  }

 private:
  /// The elements of a rank of the mesh.
  struct Holder {
    std::vector<IndexSet> indices;
    SharedRegion::Array array;
    std::vector<int> copy;  ///< its coordinates on the axes that do not shard
  };
  enum Zone : std::size_t { before, inside, behind, zones };

  /// Adds the message from rank `from` to rank `to` of the mesh, with all elements of its halo.
  void deliver(std::size_t from, std::size_t to) {
    const Holder& source = m_holders[from];
    const Holder& target = m_holders[to];
    for (const IndexSet& indices : target.indices)
      if (indices.size() == 0) return;
    Piece give{m_layout.ranks()[from], {}};
    Piece take{m_layout.ranks()[to], {}};
    std::int64_t elements = 0;
    std::vector<std::size_t> zone(m_layout.dims(), before);
    do {
      const auto outside = static_cast<std::size_t>(
          std::ranges::count_if(zone, [](std::size_t z) { return z != inside; }));
      if (outside == 0 || (outside > 1 && !m_corners)) continue;
      std::vector<std::vector<heddle::impl::SharedRun>> runs;
      for (std::size_t dim = 0; dim < m_layout.dims(); ++dim)
        runs.push_back(shared(source.indices[dim], target.indices[dim], dim, zone[dim]));
      const SharedRegion region(std::move(runs));
      if (region.elements() == 0) continue;
      elements += region.elements();
      append(give.blocks, region.blocks(SharedRegion::Side::a, source.array, m_element));
      append(take.blocks, region.blocks(SharedRegion::Side::b, target.array, m_element));
    } while (next(zone));
    if (elements > 0)
      m_plan.deliver(std::move(take), {std::move(give)}, static_cast<Bytes>(elements) * m_element);
  }

  /// Returns the indices of `source` that lie in `zone` of dimension `dim` around `target`.
  /// Positions in the target array count from its first index.
  [[nodiscard]] std::vector<heddle::impl::SharedRun> shared(const IndexSet& source,
                                                            const IndexSet& target, std::size_t dim,
                                                            std::size_t zone) const {
    const std::int64_t halo = m_layout.halo(dim);
    if (zone == inside) return heddle::impl::shared_runs(source, target);
    if (halo == 0 || source.size() == 0) return {};
    // A dimension with a halo has one block of indices on each rank.
    const Interval block = target.intervals().front();
    const Interval wanted = zone == before ? Interval{block.begin - halo, block.begin}
                                           : Interval{block.end, block.end + halo};
    const Interval given = source.intervals().front();
    const std::int64_t size = m_layout.sizes()[dim];
    std::vector<heddle::impl::SharedRun> runs;
    // A wide halo may go around a periodic dimension several times.
    const std::int64_t first = m_periodic[dim] ? floor_of(wanted.begin, size) : 0;
    const std::int64_t last = m_periodic[dim] ? floor_of(wanted.end - 1, size) : 0;
    for (std::int64_t turn = first; turn <= last; ++turn) {
      const std::int64_t moved = turn * size;
      const Interval both{std::max(wanted.begin, given.begin + moved),
                          std::min(wanted.end, given.end + moved)};
      if (both.size() > 0)
        runs.push_back({both.begin - moved - given.begin, both.begin - block.begin, both.size()});
    }
    return runs;
  }

  [[nodiscard]] static std::int64_t floor_of(std::int64_t index, std::int64_t size) {
    return index >= 0 ? index / size : -((-index + size - 1) / size);
  }
  [[nodiscard]] static bool next(std::vector<std::size_t>& zone) {
    for (std::size_t dim = zone.size(); dim-- > 0;) {
      if (++zone[dim] < zones) return true;
      zone[dim] = before;
    }
    return false;
  }
  static void append(std::vector<StridedBlock>& all, std::vector<StridedBlock> more) {
    all.insert(all.end(), more.begin(), more.end());
  }

  const Layout& m_layout;
  Bytes m_element;
  bool m_corners;
  std::vector<bool> m_periodic;
  std::vector<Holder> m_holders;
  BlockExchange m_plan;
};

}  // namespace impl

HEDDLE_INLINE BlockExchange halo_exchange(const Layout& layout, int ranks, Bytes element,
                                          const HaloOptions& options) {
  return impl::HaloPlanner(layout, element, options).run(ranks);
}

}  // namespace heddle::inline v0::schedule
