// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of why_not_redistribution.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>
#include <heddle/schedule/proof/why_not_redistribution.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The state of one proof of a redistribution. Every element of every buffer has a term. The value
/// of part p of tensor element e has the stage p and the range [e, e + 1).
class RedistributionProver {
  using Term = heddle::impl::Term;
  using TermId = heddle::impl::TermId;

 public:
  RedistributionProver(const Schedule& schedule, const Redistribution& plan)
      : m_schedule(schedule), m_plan(plan) {
    const auto ranks = static_cast<std::size_t>(schedule.ranks());
    expects(plan.exchange.from.size() == ranks && plan.exchange.to.size() == ranks, [&] {
      return ErrorInfo{
          where, "the schedule is not of the ranks of the plan",
          text("the schedule has ", ranks, " ranks, the plan ", plan.exchange.from.size(),
               " arrays 'from' and ", plan.exchange.to.size(), " arrays 'to'"),
          "give the plan of which the schedule was made"};
    });
    check(plan.exchange);
    expect_layouts();
    find_element();
    for (const Buffer& buffer : schedule.buffers())
      m_content.emplace_back(static_cast<std::size_t>(buffer.bytes / m_element), TermId{0});
    m_from = arrays("from", plan.exchange.from);
    m_to = arrays("to", plan.exchange.to);
    expect_bytes("from", plan.source, plan.exchange.from);
    expect_bytes("to", plan.target, plan.exchange.to);
    set_initial();
  }

  [[nodiscard]] std::string run() {
    const std::vector<std::vector<TermId>> before = m_content;
    for (std::size_t i = 0; i < m_schedule.size(); ++i)
      if (const std::string fault = perform(ActionId{i}); !fault.empty())
        return text(action_text(m_schedule, ActionId{i}), ' ', fault);
    for (const std::size_t buffer : m_from)
      if (buffer != none && m_content[buffer] != before[buffer])
        return text("the array 'from' of rank ", m_schedule[BufferId{buffer}].rank,
                    " does not stay as it was");
    for (int r = 0; r < m_plan.target.mesh().size(); ++r)
      if (std::string fault = wrong(Rank{r}); !fault.empty()) return fault;
    return {};
  }

 private:
  static constexpr const char* where = "heddle::schedule::why_not_equivalent";
  static constexpr std::size_t none = ~std::size_t{0};

  /// Expects that both layouts are of one tensor, on ranks that the plan has.
  void expect_layouts() const {
    const auto has = [&](Rank rank) { return +rank < m_plan.exchange.from.size(); };
    expects(m_plan.source.sizes() == m_plan.target.sizes() &&
                std::ranges::all_of(m_plan.source.ranks(), has) &&
                std::ranges::all_of(m_plan.target.ranks(), has),
            [&] {
              return ErrorInfo{where,
                               "the layouts of the plan are of two tensors or of other ranks",
                               text(m_plan.source, "; ", m_plan.target, "; arrays of ",
                                    m_plan.exchange.from.size(), " ranks"),
                               "give a plan that redistribution() has made"};
            });
  }

  /// Returns the number of elements of a rank's array, with its halos.
  [[nodiscard]] static Bytes array_elements(const Layout& layout, Rank rank) {
    Bytes elements = 1;
    for (const std::int64_t extent : layout.extents(rank)) elements *= static_cast<Bytes>(extent);
    return elements;
  }

  /// Expects that each rank has the array of its layout, and the other ranks none.
  void expect_bytes(std::string_view label, const Layout& layout,
                    const std::vector<Bytes>& bytes) const {
    std::vector<Bytes> expected(bytes.size(), 0);
    for (int r = 0; r < layout.mesh().size(); ++r)
      expected[+layout.ranks()[static_cast<std::size_t>(r)]] =
          m_element * array_elements(layout, Rank{r});
    for (std::size_t r = 0; r < bytes.size(); ++r)
      expects(bytes[r] == expected[r], [&] {
        return ErrorInfo{where, "an array of the plan is not that of its layout",
                         text("'", label, "' of rank ", r, " has ", bytes[r], " bytes, the layout ",
                              expected[r], " with elements of ", m_element, " bytes"),
                         "give a plan that redistribution() has made"};
      });
  }

  /// Finds the bytes of an element from the size of an array that has elements.
  void find_element() {
    for (const bool source : {true, false}) {
      const Layout& layout = source ? m_plan.source : m_plan.target;
      const std::vector<Bytes>& arrays = source ? m_plan.exchange.from : m_plan.exchange.to;
      for (int r = 0; r < layout.mesh().size(); ++r) {
        const Bytes elements = array_elements(layout, Rank{r});
        const Bytes bytes = arrays[+layout.ranks()[static_cast<std::size_t>(r)]];
        if (elements != 0 && bytes != 0 && bytes % elements == 0) m_element = bytes / elements;
      }
    }
  }

  /// Returns the buffers with this label by rank, which must have these bytes.
  [[nodiscard]] std::vector<std::size_t> arrays(std::string_view label,
                                                const std::vector<Bytes>& bytes) const {
    std::vector<std::size_t> found(bytes.size(), none);
    for (std::size_t b = 0; b < m_content.size(); ++b)
      if (m_schedule[m_schedule[BufferId{b}].label] == label)
        found[+m_schedule[BufferId{b}].rank] = b;
    for (std::size_t r = 0; r < found.size(); ++r) {
      const Bytes has = found[r] == none ? 0 : m_schedule[BufferId{found[r]}].bytes;
      expects(has == bytes[r], [&] {
        return ErrorInfo{
            where, "an array of the schedule is not that of the plan",
            text("'", label, "' of rank ", r, " has ", has, " bytes, the plan ", bytes[r]),
            "give the plan of which the schedule was made"};
      });
    }
    return found;
  }

  /// Calls `visit(offset, element)` for every element that a rank of the mesh has: the place in its
  /// array, and the number of the tensor element.
  template <class Visit>
  static void for_each_element(const Layout& layout, Rank rank, Visit&& visit) {
    const std::vector<std::int64_t> local = layout.local_sizes(rank);
    if (std::ranges::find(local, 0) != local.end()) return;
    const std::vector<std::int64_t> extents = layout.extents(rank);
    std::vector<std::vector<std::int64_t>> indices(local.size());
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
      const IndexSet own = layout.indices(rank, dim);
      for (const Interval& each : own.intervals())
        for (std::int64_t i = each.begin; i < each.end; ++i) indices[dim].push_back(i);
    }
    std::vector<std::size_t> at(local.size(), 0);
    for (;;) {
      std::int64_t offset = 0, element = 0;
      for (std::size_t dim = 0; dim < at.size(); ++dim) {
        offset = offset * extents[dim] + static_cast<std::int64_t>(at[dim]) + layout.halo(dim);
        element = element * layout.sizes()[dim] + indices[dim][at[dim]];
      }
      visit(static_cast<std::size_t>(offset), static_cast<std::uint64_t>(element));
      std::size_t dim = at.size();
      while (dim > 0 && ++at[dim - 1] == indices[dim - 1].size()) at[--dim] = 0;
      if (dim == 0) return;
    }
  }

  [[nodiscard]] bool adds_up(std::size_t axis) const {
    return std::holds_alternative<Partial>(m_plan.source.placements()[axis]);
  }
  /// Whether the ranks of an axis keep their parts.
  [[nodiscard]] bool stays_partial(std::size_t axis) const {
    return m_plan.target.partial() && adds_up(axis) &&
           std::holds_alternative<Partial>(m_plan.target.placements()[axis]);
  }

  [[nodiscard]] TermId value(std::uint32_t part, std::uint64_t element) {
    Term term{.kind = Term::Kind::value, .stage = part};
    term.begin = element;
    term.end = element + 1;
    term.total = static_cast<std::uint64_t>(m_plan.source.elements());
    return m_terms.add(term);
  }

  void set_initial() {
    const Layout& layout = m_plan.source;
    for (int r = 0; r < layout.mesh().size(); ++r) {
      std::uint32_t part = 0;
      for (std::size_t axis = 0; axis < layout.placements().size(); ++axis)
        if (adds_up(axis))
          part = part * static_cast<std::uint32_t>(layout.mesh().axes()[axis].size) +
                 static_cast<std::uint32_t>(layout.mesh().coordinate(Rank{r}, axis));
      const std::size_t buffer = m_from[+layout.ranks()[static_cast<std::size_t>(r)]];
      for_each_element(layout, Rank{r}, [&](std::size_t offset, std::uint64_t element) {
        m_content[buffer][offset] = value(part, element);
      });
    }
  }

  /// Returns the parts of an element that a rank of the target merges, in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> parts_for(Rank rank) const {
    std::vector<std::uint32_t> parts = {0};
    for (std::size_t axis = 0; axis < m_plan.source.placements().size(); ++axis) {
      if (!adds_up(axis)) continue;
      const auto size = static_cast<std::uint32_t>(m_plan.source.mesh().axes()[axis].size);
      std::vector<std::uint32_t> longer;
      for (const std::uint32_t part : parts)
        for (std::uint32_t i = 0; i < size; ++i)
          if (!stays_partial(axis) ||
              static_cast<int>(i) == m_plan.target.mesh().coordinate(rank, axis))
            longer.push_back(part * size + i);
      parts = std::move(longer);
    }
    return parts;
  }

  /// Elements [first, first + count) of a buffer.
  struct Range {
    std::size_t buffer = 0;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] std::string describe(const Range& range, std::size_t i) const {
    const Buffer& buffer = m_schedule[BufferId{range.buffer}];
    return text("element ", range.first + i, " of '", m_schedule[buffer.label], "' on rank ",
                buffer.rank);
  }

  /// Runs an action. Returns the fault of a list that no redistribution has.
  [[nodiscard]] std::string perform(ActionId id) {
    const Action& action = m_schedule[id];
    const auto uses = m_schedule.uses(id);
    if (action.kind != Kind::move && action.kind != Kind::combine && action.kind != Kind::cast)
      return "does work that a redistribution does not have";
    if (uses.size() != 2) return text("has ", uses.size(), " uses; expected 2");
    std::vector<Range> ranges;
    for (const Use& use : uses) {
      const Buffer& buffer = m_schedule[use.buffer];
      const Bytes first = part_offset(buffer, use.first);
      const Bytes bytes = part_bytes(buffer, use.first, use.count);
      if (first % m_element != 0 || bytes % m_element != 0)
        return text("cuts an element of ", m_element, " bytes in '", m_schedule[buffer.label],
                    "' on rank ", buffer.rank);
      ranges.push_back({+use.buffer, static_cast<std::size_t>(first / m_element),
                        static_cast<std::size_t>(bytes / m_element)});
    }
    if (action.kind == Kind::cast) return cast(id, ranges[0], ranges[1], uses[0].writes());
    const bool forwards = action.kind == Kind::move || uses[1].writes();
    const Range& from = ranges[forwards ? 0 : 1];
    const Range& into = ranges[forwards ? 1 : 0];
    if (from.count != into.count)
      return text("takes ", from.count, " elements to ", into.count, " elements");
    for (std::size_t i = 0; i < from.count; ++i) {
      const TermId term = read(id, from, i);
      TermId& place = m_content[into.buffer][into.first + i];
      place = action.kind == Kind::move ? term : m_terms.sum(read(id, into, i), term);
    }
    return {};
  }

  /// Packs the piece that the action names, or unpacks it.
  [[nodiscard]] std::string cast(ActionId id, const Range& packed, const Range& array, bool packs) {
    const std::size_t number = +m_schedule[id].item;
    if (number >= m_plan.exchange.pieces.size())
      return text("names piece ", number, " of ", m_plan.exchange.pieces.size());
    std::size_t done = 0;
    std::string fault;
    for (const StridedBlock& block : m_plan.exchange.pieces[number].blocks)
      block.for_each_run([&](std::int64_t offset) {
        const auto first = static_cast<std::size_t>(static_cast<Bytes>(offset) / m_element);
        const auto count = static_cast<std::size_t>(block.run() / m_element);
        if (offset < 0 || first + count > array.count || done + count > packed.count)
          fault = text("packs more than its ranges have of piece ", number);
        for (std::size_t i = 0; fault.empty() && i < count; ++i, ++done) {
          TermId& in_array = m_content[array.buffer][array.first + first + i];
          TermId& in_packed = m_content[packed.buffer][packed.first + done];
          if (packs)
            in_packed = read(id, array, first + i);
          else
            in_array = read(id, packed, done);
        }
      });
    if (fault.empty() && done != packed.count)
      fault = text("packs ", done, " elements of ", packed.count);
    return fault;
  }

  /// Returns the term of an element, or a wrong value that remembers the action if there is none.
  [[nodiscard]] TermId read(ActionId id, const Range& range, std::size_t i) {
    const TermId term = m_content[range.buffer][range.first + i];
    if (term != 0) return term;
    Term lost{.kind = Term::Kind::value, .role = Term::Role::wrong};
    lost.stage = static_cast<std::uint32_t>(m_faults.size());
    lost.end = 1;
    m_faults.push_back({id, range, i});
    return m_terms.add(lost);
  }

  [[nodiscard]] std::string name_of(std::uint64_t element) const {
    std::string name;
    for (std::size_t dim = m_plan.source.dims(); dim-- > 0;) {
      const auto size = static_cast<std::uint64_t>(m_plan.source.sizes()[dim]);
      name = text(element % size, name.empty() ? "" : ", ", name);
      element /= size;
    }
    return text("(", name, ")");
  }

  /// Returns the difference on a rank of the target's mesh.
  [[nodiscard]] std::string wrong(Rank rank) {
    const Rank number = m_plan.target.ranks()[+rank];
    const std::size_t buffer = m_to[+number];
    if (buffer == none) return {};
    const std::vector<std::uint32_t> parts = parts_for(rank);
    std::string fault;
    std::vector<bool> owned(m_content[buffer].size(), false);
    for_each_element(m_plan.target, rank, [&](std::size_t offset, std::uint64_t element) {
      owned[offset] = true;
      TermId expected = value(parts[0], element);
      for (std::size_t p = 1; p < parts.size(); ++p)
        expected = m_terms.sum(expected, value(parts[p], element));
      if (fault.empty() && m_content[buffer][offset] != expected)
        fault = text("element ", name_of(element), " on rank ", number, ' ',
                     difference(m_content[buffer][offset], parts, element));
    });
    for (std::size_t offset = 0; fault.empty() && offset < owned.size(); ++offset)
      if (!owned[offset] && m_content[buffer][offset] != 0)
        fault = text("place ", offset, " of 'to' on rank ", number,
                     " is written, which is none of its elements");
    return fault;
  }

  [[nodiscard]] std::string difference(TermId term, const std::vector<std::uint32_t>& parts,
                                       std::uint64_t element) const {
    if (term == 0) return "has no value";
    if (const auto fault = m_terms.fault_of(term)) {
      const Unwritten& lost = m_faults[*fault];
      return text("depends on ", action_text(m_schedule, lost.action),
                  ", which reads no value from ", describe(lost.range, lost.element));
    }
    std::vector<std::uint32_t> found;
    for (const TermId addend : m_terms.addends(term, false)) {
      if (m_terms[addend].begin != element)
        return text("holds element ", name_of(m_terms[addend].begin));
      found.push_back(m_terms[addend].stage);
    }
    std::ranges::sort(found);
    for (const std::uint32_t part : parts)
      if (!std::ranges::binary_search(found, part)) return text("lacks part ", part);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!std::ranges::binary_search(parts, found[i])) return text("has part ", found[i]);
      if (i > 0 && found[i] == found[i - 1]) return text("has part ", found[i], " twice");
    }
    return "merges its parts in another order than that of their coordinates";
  }

  /// A read of an element without a value.
  struct Unwritten {
    ActionId action = {};
    Range range = {};
    std::size_t element = 0;
  };

  const Schedule& m_schedule;
  const Redistribution& m_plan;
  Bytes m_element = 1;
  heddle::impl::Terms m_terms;
  std::vector<std::vector<TermId>> m_content;  ///< by buffer and element
  std::vector<std::size_t> m_from, m_to;       ///< by rank: its array
  std::vector<Unwritten> m_faults;
};

}  // namespace impl

HEDDLE_INLINE std::string why_not_equivalent(const Schedule& schedule, const Redistribution& plan) {
  return impl::RedistributionProver(schedule, plan).run();
}

}  // namespace heddle::inline v0::schedule
