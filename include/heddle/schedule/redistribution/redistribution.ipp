// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of redistribution.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/shared_region.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::string Redistribution::steps() const {
  std::string names;
  for (const BlockExchange::Step& step : exchange.steps)
    names += text(names.empty() ? "" : ", ", step.name);
  return names.empty() ? "nothing" : names;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Redistribution& plan) {
  return out << plan.source << "\n  to " << plan.target << "\n  by " << plan.steps() << ", "
             << plan.bytes() << " bytes between ranks";
}

namespace impl {

/// The ranks of a mesh that have the same indices.
struct ShareGroup {
  std::int64_t number = 0;        ///< number from the coordinates on the axes that shard
  std::int64_t lane = 0;          ///< number from the coordinates on the axes that stay Partial
  std::vector<IndexSet> indices;  ///< the indices of each dimension
  SharedRegion::Array array;      ///< the array of each of its ranks
  std::vector<std::vector<std::size_t>> members;  ///< ranks of the mesh, by the part that they have
};

/// Finds the deliveries of a Redistribution.
class RedistributionPlanner {
 public:
  RedistributionPlanner(const Layout& source, const Layout& target, int ranks, Bytes element)
      : m_source(source), m_target(target), m_element(element) {
    expects(ranks >= 1 && element >= 1, [&] {
      return ErrorInfo{where, "there must be a rank, and an element of at least one byte",
                       text("ranks = ", ranks, ", element = ", element)};
    });
    expects(source.sizes() == target.sizes(), [&] {
      return ErrorInfo{where, "the two layouts have different tensor sizes",
                       text(source, "; ", target),
                       "give both the same sizes, because nothing is reshaped"};
    });
    for (const Layout* layout : {&source, &target})
      for (const Rank rank : layout->ranks())
        expects(+rank < static_cast<std::size_t>(ranks), [&] {
          return ErrorInfo{where, "a layout has a rank outside of the communicator",
                           text("rank ", rank, " of ", ranks),
                           "use a communicator with all ranks, or a Layout on other ranks"};
        });
    check_partial();
    m_sources = groups_of(source, true);
    m_targets = groups_of(target, false);
    m_plan.from = arrays_of(source, m_sources, ranks);
    m_plan.to = arrays_of(target, m_targets, ranks);
    for (const ShareGroup& group : m_sources) m_parts = group.members.size();
  }

  [[nodiscard]] BlockExchange run() && {
    m_plan.steps.emplace_back();
    for (const ShareGroup& to : m_targets)
      for (const ShareGroup& from : m_sources)
        if (from.lane == to.lane) deliver(from, to);
    m_plan.steps.front().name = name_of_first();
    if (!m_copies.empty()) {
      m_plan.steps.push_back({"all_gather", true, {}});
      for (auto& [source, target, bytes] : m_copies)
        m_plan.deliver(std::move(target), {std::move(source)}, bytes);
    }
    if (m_plan.steps.front().deliveries.empty()) m_plan.steps.clear();
    return std::move(m_plan);
  }

 private:
  using Side = SharedRegion::Side;
  static constexpr const char* where = "heddle::schedule::redistribution";
  /// Up to this size, saving a message is worth more than merging only once.
  static constexpr Bytes few_bytes = Bytes{16} << 10;

  /// Whether an axis is Partial in both layouts. Then its ranks exchange nothing.
  [[nodiscard]] bool stays_partial(std::size_t axis) const {
    return m_target.partial() && std::holds_alternative<Partial>(m_target.placements()[axis]);
  }

  void check_partial() const {
    if (!m_target.partial()) return;
    const bool one_mesh =
        m_source.mesh() == m_target.mesh() && m_source.ranks() == m_target.ranks();
    for (std::size_t axis = 0; axis < m_target.placements().size(); ++axis)
      expects(!stays_partial(axis) ||
                  (one_mesh && m_source.placements()[axis] == m_target.placements()[axis]),
              [&] {
                return ErrorInfo{
                    where, "an axis cannot become Partial",
                    text("axis '", m_target.mesh().axes()[axis].name, "' is to be ",
                         m_target.placements()[axis], ", it is ", m_source),
                    "redistribute to Shard or Replicate, or keep the placement of the axis"};
              });
  }

  [[nodiscard]] std::vector<ShareGroup> groups_of(const Layout& layout, bool merges) const {
    std::vector<ShareGroup> groups;
    for (std::size_t r = 0; r < static_cast<std::size_t>(layout.mesh().size()); ++r) {
      std::int64_t number = 0;
      std::int64_t lane = 0;
      std::int64_t part = 0;
      std::size_t parts = 1;
      for (std::size_t axis = 0; axis < layout.placements().size(); ++axis) {
        const int size = layout.mesh().axes()[axis].size;
        const int coordinate = layout.mesh().coordinate(Rank{r}, axis);
        const Placement& placement = layout.placements()[axis];
        if (std::holds_alternative<Shard>(placement)) number = number * size + coordinate;
        if (!std::holds_alternative<Partial>(placement)) continue;
        if (stays_partial(axis)) {
          lane = lane * size + coordinate;
        } else if (merges) {
          part = part * size + coordinate;
          parts *= static_cast<std::size_t>(size);
        }
      }
      auto found = std::ranges::find_if(groups, [&](const ShareGroup& group) {
        return group.number == number && group.lane == lane;
      });
      if (found == groups.end()) {
        ShareGroup group{number, lane, {}, {}, {}};
        for (std::size_t dim = 0; dim < layout.dims(); ++dim) {
          group.indices.push_back(layout.indices(Rank{r}, dim));
          group.array.first.push_back(layout.halo(dim));
          group.array.extents.push_back(group.indices[dim].size() + 2 * layout.halo(dim));
        }
        group.members.resize(parts);
        found = groups.insert(groups.end(), std::move(group));
      }
      found->members[static_cast<std::size_t>(part)].push_back(r);
    }
    return groups;
  }

  [[nodiscard]] std::vector<Bytes> arrays_of(const Layout& layout,
                                             const std::vector<ShareGroup>& groups,
                                             int ranks) const {
    std::vector<Bytes> bytes(static_cast<std::size_t>(ranks), 0);
    for (const ShareGroup& group : groups)
      for (const auto& part : group.members)
        for (const std::size_t rank : part)
          bytes[+layout.ranks()[rank]] = group.array.bytes(m_element);
    return bytes;
  }

  [[nodiscard]] Rank source_rank(std::size_t member) const { return m_source.ranks()[member]; }
  [[nodiscard]] Rank target_rank(std::size_t member) const { return m_target.ranks()[member]; }

  /// The rank that provides part `part` of the elements of `from` to member `to` of the target. It
  /// is the target rank itself if it has them. Otherwise targets are distributed among the ranks
  /// that have them.
  [[nodiscard]] Rank giver(const ShareGroup& from, std::size_t part, std::size_t to) const {
    const std::vector<std::size_t>& members = from.members[part];
    for (const std::size_t member : members)
      if (source_rank(member) == target_rank(to)) return source_rank(member);
    return source_rank(members[to % members.size()]);
  }
  [[nodiscard]] bool has(const ShareGroup& group, Rank rank) const {
    for (std::size_t part = 0; part < group.members.size(); ++part)
      for (const std::size_t member : group.members[part])
        if (source_rank(member) == rank) return true;
    return false;
  }

  /// Adds the deliveries of the elements that ranks of `from` have and ranks of `to` need.
  void deliver(const ShareGroup& from, const ShareGroup& to) {
    const SharedRegion region(from.indices, to.indices);
    if (region.elements() == 0) return;
    const std::vector<std::size_t>& needing = to.members.front();
    std::vector<std::size_t> holding;
    for (const std::size_t member : needing)
      if (has(from, target_rank(member))) holding.push_back(member);
    // Messages if each rank merges, or if one merges and passes the result on. A rank has at most
    // one part.
    const std::size_t by_each = needing.size() * m_parts - holding.size();
    const std::size_t by_one = m_parts - (holding.empty() ? 0 : 1) + needing.size() - 1;
    const Bytes bytes = static_cast<Bytes>(region.elements()) * m_element;
    if (m_parts == 1 || by_each < by_one || (by_each == by_one && bytes <= few_bytes)) {
      m_merged_by_each = m_merged_by_each || needing.size() > 1;
      for (const std::size_t member : needing) merge(region, from, to, member);
      return;
    }
    const std::vector<std::size_t>& merging = holding.empty() ? needing : holding;
    for (std::size_t m = 0; m < merging.size(); ++m) {
      const SharedRegion part =
          region.part(static_cast<std::int64_t>(m), static_cast<std::int64_t>(merging.size()));
      if (part.elements() == 0) continue;
      merge(part, from, to, merging[m]);
      const auto blocks = part.blocks(Side::b, to.array, m_element);
      for (const std::size_t member : needing)
        if (member != merging[m])
          m_copies.push_back({{target_rank(merging[m]), blocks},
                              {target_rank(member), blocks},
                              static_cast<Bytes>(part.elements()) * m_element});
    }
  }

  void merge(const SharedRegion& region, const ShareGroup& from, const ShareGroup& to,
             std::size_t member) {
    const auto blocks = region.blocks(Side::a, from.array, m_element);
    std::vector<Piece> sources;
    for (std::size_t part = 0; part < m_parts; ++part)
      sources.push_back({giver(from, part, member), blocks});
    // The same order on all ranks, because it decides the result for NaNs and signed zeros.
    m_plan.deliver({target_rank(member), region.blocks(Side::b, to.array, m_element)},
                   std::move(sources), static_cast<Bytes>(region.elements()) * m_element);
  }

  [[nodiscard]] const char* name_of_first() const {
    if (m_parts > 1) return m_merged_by_each ? "all_reduce" : "reduce_scatter";
    if (m_plan.bytes() == 0) return "local";
    // Elements that a rank keeps are deliveries to itself.
    std::vector<Bytes> given_up(m_plan.from.size(), 0);
    for (const ShareGroup& group : m_sources) {
      Bytes bytes = m_element;
      for (const IndexSet& indices : group.indices) bytes *= static_cast<Bytes>(indices.size());
      for (const std::size_t member : group.members.front())
        given_up[+source_rank(member)] += bytes;
    }
    for (const BlockExchange::Delivery& delivery : m_plan.steps.front().deliveries)
      if (const Rank rank = m_plan.target(delivery).rank;
          rank == m_plan.sources(delivery).front().rank)
        given_up[+rank] -= delivery.bytes;
    return std::ranges::all_of(given_up, [](Bytes bytes) { return bytes == 0; }) ? "all_gather"
                                                                                 : "all_to_all";
  }

  /// A copy of a merged result from one rank to another.
  struct Copy {
    Piece source;
    Piece target;
    Bytes bytes = 0;
  };

  const Layout& m_source;
  const Layout& m_target;
  Bytes m_element;
  std::vector<ShareGroup> m_sources;
  std::vector<ShareGroup> m_targets;
  std::size_t m_parts = 1;        ///< number of parts that are merged to an element
  bool m_merged_by_each = false;  ///< whether several ranks merge the same element
  BlockExchange m_plan;
  std::vector<Copy> m_copies;
};

}  // namespace impl

HEDDLE_INLINE Redistribution redistribution(const Layout& source, const Layout& target, int ranks,
                                            Bytes element) {
  return {source, target, impl::RedistributionPlanner(source, target, ranks, element).run()};
}

HEDDLE_INLINE Schedule to_schedule(const Redistribution& plan, Scalar type) {
  return to_schedule(plan.exchange, text("redistribute by ", plan.steps()), type);
}

}  // namespace heddle::inline v0::schedule
