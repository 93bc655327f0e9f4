// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of why_not_collective.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/proof/impl/symbolic_store.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>
#include <heddle/schedule/proof/why_not_collective.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

using heddle::impl::SymbolicStore;
using heddle::impl::Term;
using heddle::impl::TermId;

/// The state of one proof of a collective.
class CollectiveProver {
 public:
  CollectiveProver(const Schedule& schedule, Collective collective,
                   const CollectiveOptions& options)
      : m_schedule(schedule),
        m_collective(collective),
        m_options(options),
        m_ranks(static_cast<std::size_t>(options.ranks)),
        m_store(schedule) {
    constexpr const char* where = "heddle::schedule::why_not_equivalent";
    const std::size_t buffers = schedule.buffers().size();
    const bool pairs = collective == Collective::all_to_all;
    const bool rooted = collective == Collective::gather || collective == Collective::scatter;
    const std::size_t needed = pairs || options.apart ? 2 * m_ranks : m_ranks + (rooted ? 1 : 0);
    expects(m_ranks >= 1 && schedule.ranks() == options.ranks && needed <= buffers, [&] {
      return ErrorInfo{
          where, "the schedule is not of these ranks",
          text("CollectiveOptions::ranks = ", options.ranks, ", the schedule has ",
               schedule.ranks(), " ranks and ", buffers, " buffers, expected ", needed)};
    });
    expects(+options.root < m_ranks, [&] {
      return ErrorInfo{where, "the root is not one of the ranks",
                       text("CollectiveOptions::root = ", +options.root, " of ", options.ranks)};
    });
    const std::size_t blocks = (pairs ? m_ranks : 1) * m_ranks;
    expects(options.blocks.empty() || options.blocks.size() == blocks, [&] {
      return ErrorInfo{where, "CollectiveOptions::blocks has another number of blocks",
                       text(options.blocks.size(), " blocks, expected ", blocks)};
    });
    set_blocks();
  }

  [[nodiscard]] std::string run() {
    if (m_collective == Collective::barrier) return {};
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const Kind kind = m_schedule[id].kind;
      std::string fault = kind >= Kind::move && kind <= Kind::group
                              ? m_store.transfer(id)
                              : "does work that a collective does not have";
      if (!fault.empty()) return text(action_text(m_schedule, id), ' ', fault);
    }
    for (std::size_t rank = 0; rank < m_ranks; ++rank)
      if (std::string fault = wrong(rank); !fault.empty()) return fault;
    return {};
  }

 private:
  /// The first byte of a value that a buffer had before.
  using Source = std::pair<std::size_t, Bytes>;

  void set_blocks() {
    const Bytes element = m_options.element == 0 ? size_of(m_options.type) : m_options.element;
    m_blocks = m_options.blocks;
    const bool pairs = m_collective == Collective::all_to_all;
    for (std::size_t b = 0; m_options.blocks.empty() && b < (pairs ? m_ranks : 1) * m_ranks; ++b)
      m_blocks.push_back(heddle::impl::even_count(m_options.bytes / element, m_ranks, b % m_ranks) *
                         element);
  }
  [[nodiscard]] Bytes bytes(std::size_t first, std::size_t last) const {
    Bytes sum = 0;
    for (std::size_t b = first; b < last; ++b) sum += m_blocks[b];
    return sum;
  }

  /// Returns the difference on a rank.
  [[nodiscard]] std::string wrong(std::size_t rank) {
    const Bytes at = bytes(0, rank), all = bytes(0, m_ranks);
    switch (m_collective) {
      case Collective::barrier: return {};
      case Collective::broadcast: return expect(rank, 0, all, {{+m_options.root, 0}});
      case Collective::all_reduce: return expect(rank, 0, all, from_all(m_ranks, 0));
      case Collective::reduce:
        return rank == +m_options.root ? expect(rank, 0, all, from_all(m_ranks, 0)) : "";
      case Collective::reduce_scatter:
        return expect(rank, at, m_blocks[rank], from_all(m_ranks, at));
      case Collective::inclusive_scan: return expect(rank, 0, all, from_all(rank + 1, 0));
      case Collective::exclusive_scan:
        return expect(rank, 0, all, from_all(std::max<std::size_t>(rank, 1), 0));
      case Collective::gather: return expect(m_ranks, at, m_blocks[rank], {{rank, 0}});
      case Collective::scatter: return expect(1 + rank, 0, m_blocks[rank], {{0, at}});
      case Collective::all_gather:
        for (std::size_t b = 0; b < m_ranks; ++b) {
          const Bytes from = bytes(0, b);
          const Source source{b, m_options.apart ? 0 : from};
          if (std::string fault =
                  expect((m_options.apart ? m_ranks : 0) + rank, from, m_blocks[b], {source});
              !fault.empty())
            return fault;
        }
        return {};
      case Collective::all_to_all: {
        Bytes to = 0;
        for (std::size_t q = 0; q < m_ranks; to += m_blocks[q++ * m_ranks + rank])
          if (std::string fault = expect(m_ranks + rank, to, m_blocks[q * m_ranks + rank],
                                         {{q, bytes(q * m_ranks, q * m_ranks + rank)}});
              !fault.empty())
            return fault;
        return {};
      }
    }
    return {};
  }

  [[nodiscard]] static std::vector<Source> from_all(std::size_t ranks, Bytes at) {
    std::vector<Source> sources;
    for (std::size_t rank = 0; rank < ranks; ++rank) sources.emplace_back(rank, at);
    return sources;
  }

  /// Expects that the bytes [at, at + count) of a buffer are the sum of `sources`.
  [[nodiscard]] std::string expect(std::size_t buffer, Bytes at, Bytes count,
                                   const std::vector<Source>& sources) {
    const BufferId id{buffer};
    Bytes begin = 0;
    for (std::uint32_t part = 0; part < m_schedule[id].parts && begin < at + count; ++part) {
      const Bytes end = begin + m_store.width(id, part);
      if (begin != end && end > at)
        if (std::string fault = compare(m_store.at(id, part), begin - at, sources); !fault.empty())
          return text("bytes ", begin, " to ", end, " of '", m_schedule[m_schedule[id].label],
                      "' on rank ", m_schedule[id].rank, fault);
      begin = end;
    }
    if (begin < at + count)
      return text("'", m_schedule[m_schedule[id].label], "' on rank ", m_schedule[id].rank, " has ",
                  begin, " bytes; expected ", at + count);
    return {};
  }

  /// Compares a term with the sum of what is `at` bytes behind the sources.
  [[nodiscard]] std::string compare(TermId term, Bytes at, const std::vector<Source>& sources) {
    const heddle::impl::Terms& terms = m_store.terms();
    while (terms[term].kind == Term::Kind::join) {
      const Term joined = terms[term];
      if (std::string fault = compare(joined.a, at, sources); !fault.empty()) return fault;
      at += terms[joined.a].width();
      term = joined.b;
    }
    std::vector<Source> found;
    for (const TermId addend : terms.addends(term, true)) {
      const Term& has = terms[addend];
      if (has.kind != Term::Kind::value) return text(" hold ", terms.describe(addend));
      found.emplace_back(has.stage, has.begin - at);
    }
    std::ranges::sort(found);
    const auto place = [&](const Source& source) {
      return text(" what '", m_schedule[m_schedule[BufferId{source.first}].label], "' of rank ",
                  m_schedule[BufferId{source.first}].rank, " had at byte ", source.second + at);
    };
    for (const Source& source : sources)
      if (!std::ranges::binary_search(found, source)) return text(" lack", place(source));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!std::ranges::binary_search(sources, found[i])) return text(" have", place(found[i]));
      if (i > 0 && found[i] == found[i - 1]) return text(" have", place(found[i]), " twice");
    }
    return {};
  }

  const Schedule& m_schedule;
  Collective m_collective;
  const CollectiveOptions& m_options;
  std::size_t m_ranks;
  SymbolicStore m_store;
  std::vector<Bytes> m_blocks;
};

}  // namespace impl

HEDDLE_INLINE std::string why_not_equivalent(const Schedule& schedule, Collective collective,
                                             const CollectiveOptions& options) {
  return impl::CollectiveProver(schedule, collective, options).run();
}

}  // namespace heddle::inline v0::schedule
