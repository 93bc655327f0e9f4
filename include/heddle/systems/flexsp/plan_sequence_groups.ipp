// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_sequence_groups.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/flexsp/impl/sequence_packing.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline constexpr const char* groups_where = "heddle::systems::plan_sequence_groups";

inline void expect_degrees(const char* where, std::span<const int> degrees) {
  for (std::size_t i = 0; i < degrees.size(); ++i)
    expects(degrees[i] >= 1 && std::has_single_bit(static_cast<unsigned>(degrees[i])) &&
                (i == 0 || degrees[i - 1] < degrees[i]),
            [&] {
              return ErrorInfo{where, "degrees must be powers of two in ascending order",
                               text("degree ", degrees[i], " at place ", i)};
            });
}

inline void add_compositions(int ranks, std::span<const int> degrees, std::vector<int>& sizes,
                             std::vector<std::vector<int>>& all) {
  if (ranks == 0) {
    all.push_back(sizes);
    return;
  }
  if (degrees.empty()) return;
  const std::size_t before = sizes.size();
  for (int count = ranks / degrees.back(); count >= 0; --count) {
    sizes.resize(before + static_cast<std::size_t>(count), degrees.back());
    add_compositions(ranks - count * degrees.back(), degrees.first(degrees.size() - 1), sizes, all);
    sizes.resize(before);
  }
}

/// Throws contract_error if so many ranks have too many compositions to try all.
inline void expect_few_compositions(const char* where, int ranks, std::span<const int> degrees) {
  constexpr double most = 1e6;
  expects(ranks <= 1 << 20, [&] {
    return ErrorInfo{where, "there are too many ranks to compose groups", text(ranks, " ranks"),
                     "use at most 2^20 ranks"};
  });
  std::vector<double> ways(static_cast<std::size_t>(std::max(ranks, 0)) + 1, 0);
  ways[0] = 1;
  for (const int degree : degrees)
    for (std::size_t sum = static_cast<std::size_t>(degree); sum < ways.size(); ++sum)
      ways[sum] += ways[sum - static_cast<std::size_t>(degree)];
  expects(ways.back() <= most, [&] {
    return ErrorInfo{where, "there are too many compositions of groups",
                     text(ways.back(), " compositions of ", ranks, " ranks from ", degrees.size(),
                          " degrees, at most ", most),
                     "leave out small degrees"};
  });
}

class SequencePlanner {
 public:
  SequencePlanner(std::vector<std::int64_t> lengths, const SequenceCosts& costs,
                  const SequenceGroupOptions& options)
      : m_costs(costs), m_options(options) {
    m_plan.lengths = std::move(lengths);
    m_plan.ranks = costs.ranks;
    check_costs();
    double tokens = 0;
    for (std::size_t i = 0; i < m_plan.lengths.size(); ++i) {
      expects(m_plan.lengths[i] >= 1, [&] {
        return ErrorInfo{groups_where, "a sequence needs at least one token",
                         text("sequence ", i, " has ", m_plan.lengths[i])};
      });
      tokens += static_cast<double>(m_plan.lengths[i]);
    }
    expect_countable("tokens of the batch", tokens);
    std::vector<int> degrees;
    for (const DegreeCost& cost : m_costs.degrees)
      if (cost.degree <= m_costs.ranks &&
          (m_options.degree == 0 || cost.degree == m_options.degree))
        degrees.push_back(cost.degree);
    m_compositions = group_compositions(m_costs.ranks, degrees);
    if (m_compositions.empty())
      throw infeasible({groups_where, "no groups of these degrees add up to all ranks",
                        text(m_costs.ranks, " ranks, ", degrees.size(), " degrees",
                             m_options.degree == 0 ? "" : text(", static ", m_options.degree)),
                        "add smaller degrees, or use another number of ranks"});
    for (const std::vector<int>& sizes : m_compositions) {
      m_widest = std::max(m_widest, sizes[0]);
      std::vector<std::size_t> places;
      for (const int size : sizes) places.push_back(place(size));
      m_places.push_back(std::move(places));
    }
    check_sums();
    sort();
  }

  [[nodiscard]] SequencePlan run() && {
    if (m_sorted.empty()) return std::move(m_plan);
    const auto room =
        static_cast<double>(m_costs.ranks) * static_cast<double>(m_costs.tokens_per_rank);
    const double least = std::ceil(static_cast<double>(m_plan.tokens()) / room);
    auto count = static_cast<std::size_t>(std::max(1.0, least));
    std::optional<SequencePlan> best;
    // One more microbatch for every sequence always fits: the longest holds as many tokens alone.
    for (int tried = 0; (tried < m_options.counts || !best) && count <= m_sorted.size();
         ++tried, ++count)
      if (auto found = plan_of(count, best ? best->time : infinite)) best = std::move(found);
    return std::move(*best);
  }

 private:
  static constexpr Seconds infinite = std::numeric_limits<Seconds>::infinity();

  /// Sums of tokens are exact, as integers and as numbers of double.
  static void expect_countable(const char* what, double tokens) {
    expects(tokens <= 0x1p53, [&] {
      return ErrorInfo{groups_where, text("too many ", what, "; expected at most 2^53"),
                       text(tokens)};
    });
  }

  void check_costs() const {
    expects(m_costs.ranks >= 1 && m_costs.tokens_per_rank >= 1 && !m_costs.degrees.empty(), [&] {
      return ErrorInfo{groups_where, "the costs need ranks, tokens per rank and degrees",
                       text(m_costs.ranks, " ranks, ", m_costs.tokens_per_rank,
                            " tokens per rank, ", m_costs.degrees.size(), " degrees")};
    });
    expect_countable("tokens of all ranks", static_cast<double>(m_costs.ranks) *
                                                static_cast<double>(m_costs.tokens_per_rank));
    expects(m_options.counts >= 1, [&] {
      return ErrorInfo{groups_where, "at least one number of microbatches must be tried",
                       text("counts = ", m_options.counts)};
    });
    expects(m_options.nodes >= 0, [&] {
      return ErrorInfo{groups_where, "the number of search nodes must be at least 0",
                       text("nodes = ", m_options.nodes)};
    });
    std::vector<int> degrees;
    for (const DegreeCost& cost : m_costs.degrees) {
      degrees.push_back(cost.degree);
      for (const double part : {cost.fixed, cost.per_token, cost.per_square})
        expects(part >= 0 && std::isfinite(part), [&] {
          return ErrorInfo{groups_where, "a cost must be finite and at least 0",
                           text("degree ", cost.degree, ": ", part)};
        });
    }
    expect_degrees(groups_where, degrees);
    expects(m_options.degree == 0 || std::ranges::count(degrees, m_options.degree) == 1, [&] {
      return ErrorInfo{groups_where, "the costs have no entry for SequenceGroupOptions::degree",
                       text("degree ", m_options.degree)};
    });
  }

  /// No plan takes longer than all sequences one after another, each alone in a group.
  void check_sums() const {
    double tokens = 0, squares = 0;
    for (const std::int64_t length : m_plan.lengths) {
      tokens += static_cast<double>(length);
      squares += static_cast<double>(length) * static_cast<double>(length);
    }
    for (const DegreeCost& cost : m_costs.degrees)
      heddle::impl::expect_sum(
          groups_where,
          static_cast<double>(m_plan.lengths.size()) * cost.fixed + tokens * cost.per_token +
              squares * cost.per_square,
          [&] { return text("degree ", cost.degree, ", ", tokens, " tokens"); },
          "correct the costs of the degree, or use fewer tokens");
  }

  /// Longest first, and whether each fits.
  void sort() {
    m_sorted.resize(m_plan.lengths.size());
    std::iota(m_sorted.begin(), m_sorted.end(), std::size_t{0});
    std::ranges::stable_sort(m_sorted, [&](std::size_t a, std::size_t b) {
      return m_plan.lengths[a] > m_plan.lengths[b];
    });
    for (const std::size_t i : m_sorted) m_lengths.push_back(m_plan.lengths[i]);
    if (m_lengths.empty() || m_lengths[0] <= m_widest * m_costs.tokens_per_rank) return;
    std::int64_t needed = 1;
    while (needed * m_costs.tokens_per_rank < m_lengths[0]) needed *= 2;
    throw infeasible(
        {groups_where,
         text("no group holds sequence ", m_sorted[0], " of ", m_lengths[0],
              " tokens; it needs degree ", needed, ", the widest group has ", m_widest),
         text(m_costs.tokens_per_rank, " tokens per rank, ", m_costs.ranks, " ranks"),
         "use more ranks or memory, or cut the sequence"});
  }

  [[nodiscard]] std::size_t place(int degree) const {
    return static_cast<std::size_t>(&m_costs.of(degree) - m_costs.degrees.data());
  }

  /// The plan with `count` microbatches; none if one does not fit, or all end no earlier than
  /// `limit`.
  [[nodiscard]] std::optional<SequencePlan> plan_of(std::size_t count, Seconds limit) const {
    SequencePlan plan{m_plan.lengths, {}, m_plan.ranks, 0};
    std::size_t begin = 0;
    for (const std::size_t end : divide_evenly(m_lengths, count)) {
      if (begin == end) continue;
      const SequencePacking packing(m_costs, std::span(m_lengths).subspan(begin, end - begin));
      const auto found = packing.best(m_places, limit - plan.time, m_options.nodes);
      if (!found) return {};
      plan.microbatches.push_back(microbatch(*found, begin));
      plan.time += found->time;
      begin = end;
    }
    return plan;
  }

  [[nodiscard]] SequenceMicrobatch microbatch(const SequencePacking::Packed& packed,
                                              std::size_t begin) const {
    SequenceMicrobatch out;
    out.time = packed.time;
    int first = 0;
    for (std::size_t g = 0; g < packed.degrees.size(); ++g) {
      SequenceGroup group{
          Rank{first}, m_costs.degrees[packed.degrees[g]].degree, {}, 0, packed.times[g]};
      for (std::size_t i = 0; i < packed.group_of.size(); ++i) {
        if (packed.group_of[i] != g) continue;
        group.sequences.push_back(m_sorted[begin + i]);
        group.tokens += m_lengths[begin + i];
      }
      first += group.degree;
      out.groups.push_back(std::move(group));
    }
    return out;
  }

  const SequenceCosts& m_costs;
  const SequenceGroupOptions& m_options;
  SequencePlan m_plan;
  std::vector<std::vector<int>> m_compositions;
  std::vector<std::vector<std::size_t>> m_places;  ///< the same by place in the costs
  int m_widest = 0;
  std::vector<std::size_t> m_sorted;    ///< places in the batch, longest first
  std::vector<std::int64_t> m_lengths;  ///< in that order
};

}  // namespace impl

HEDDLE_INLINE std::int64_t SequencePlan::tokens() const {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

HEDDLE_INLINE double token_weight(std::int64_t own, std::int64_t all) {
  expects(own >= 0 && own <= all, [&] {
    return ErrorInfo{"heddle::systems::token_weight", "a rank has some of all tokens",
                     text(own, " of ", all, " tokens")};
  });
  return own == 0 ? 0 : static_cast<double>(own) / static_cast<double>(all);
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const SequencePlan& plan) {
  const auto counted = [](std::size_t count, const char* what, const char* plural) {
    return text(count, ' ', what, count == 1 ? "" : plural);
  };
  out << counted(plan.lengths.size(), "sequence", "s") << ", " << plan.tokens() << " tokens, "
      << counted(static_cast<std::size_t>(plan.ranks), "rank", "s") << ": "
      << counted(plan.microbatches.size(), "microbatch", "es") << ", " << plan.time << " s";
  for (std::size_t m = 0; m < plan.microbatches.size(); ++m) {
    out << "\nmicrobatch " << m << ": " << plan.microbatches[m].time << " s";
    for (const SequenceGroup& group : plan.microbatches[m].groups) {
      const std::size_t last = +group.first + static_cast<std::size_t>(group.degree) - 1;
      out << "\n  " << (group.degree == 1 ? "rank " : "ranks ") << group.first;
      if (group.degree > 1) out << '-' << last;
      out << ": " << counted(group.sequences.size(), "sequence", "s") << ", " << group.tokens
          << " tokens, " << group.time << " s";
    }
  }
  return out;
}

HEDDLE_INLINE std::vector<std::vector<int>> group_compositions(int ranks,
                                                               std::span<const int> degrees) {
  impl::expect_degrees("heddle::systems::group_compositions", degrees);
  impl::expect_few_compositions("heddle::systems::group_compositions", ranks, degrees);
  std::vector<std::vector<int>> all;
  std::vector<int> sizes;
  if (ranks >= 1) impl::add_compositions(ranks, degrees, sizes, all);
  return all;
}

HEDDLE_INLINE std::vector<std::size_t> divide_evenly(std::span<const std::int64_t> lengths,
                                                     std::size_t count) {
  expects(count >= 1, [] {
    return ErrorInfo{"heddle::systems::divide_evenly",
                     "lengths must be divided into at least one range", "0 ranges"};
  });
  double all = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    all += static_cast<double>(lengths[i]);
    expects(lengths[i] >= 0 && all < 0x1p62, [&] {
      return ErrorInfo{"heddle::systems::divide_evenly",
                       "lengths are at least 0, and their sum fits in 62 bits",
                       text("lengths[", i, "] = ", lengths[i], ", sum ", all)};
    });
  }
  // The least bound for which filling one range after the other needs no more ranges.
  const auto ends_at = [&](std::int64_t bound) {
    std::vector<std::size_t> ends;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (i > 0 && sum + lengths[i] > bound) {
        ends.push_back(i);
        sum = 0;
      }
      sum += lengths[i];
    }
    ends.push_back(lengths.size());
    return ends;
  };
  std::int64_t low = 0, high = 0;
  for (const std::int64_t length : lengths) {
    low = std::max(low, length);
    high += length;
  }
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (ends_at(middle).size() <= count)
      high = middle;
    else
      low = middle + 1;
  }
  std::vector<std::size_t> ends = ends_at(low);
  ends.resize(count, lengths.size());
  return ends;
}

HEDDLE_INLINE SequencePlan plan_sequence_groups(std::vector<std::int64_t> lengths,
                                                const SequenceCosts& costs,
                                                const SequenceGroupOptions& options) {
  return impl::SequencePlanner(std::move(lengths), costs, options).run();
}

}  // namespace heddle::inline v0::systems
