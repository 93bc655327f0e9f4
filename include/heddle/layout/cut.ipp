// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cut.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/cut.hpp>

namespace heddle::inline v0::impl {

// Pieces of a line with a limit on weight / share. Sums do not fall and rounding is monotonic, so
// a piece that grows does not become lighter, and greedy pieces reach as far as any.
class LineCut {
 public:
  LineCut(std::vector<double> sums, std::span<const double> shares)
      : m_sums(std::move(sums)), m_shares(shares), m_items(m_sums.size() - 1) {}

  [[nodiscard]] std::vector<std::int64_t> boundaries() const {
    const double limit = least_limit();
    const std::size_t pieces = m_shares.size();
    // By boundary: the earliest place from which the pieces behind it reach the end.
    std::vector<std::size_t> earliest(pieces + 1, m_items);
    for (std::size_t p = pieces; p-- > 1;) earliest[p] = begin_of(p, earliest[p + 1], limit);
    const double all = std::accumulate(m_shares.begin(), m_shares.end(), 0.0);
    std::vector<std::int64_t> result{0};
    std::size_t begin = 0;
    double before = 0;
    for (std::size_t p = 0; p + 1 < pieces; ++p) {
      before += m_shares[p];
      const std::size_t wanted = nearest(m_sums.back() * (before / all));
      begin = m_shares[p] > 0
                  ? std::clamp(wanted, std::max(begin, earliest[p + 1]), end_of(p, begin, limit))
                  : begin;
      result.push_back(static_cast<std::int64_t>(begin));
    }
    result.push_back(static_cast<std::int64_t>(m_items));
    return result;
  }

 private:
  [[nodiscard]] bool fits(std::size_t piece, std::size_t begin, std::size_t end,
                          double limit) const {
    return (m_sums[end] - m_sums[begin]) / m_shares[piece] <= limit;
  }

  // Returns the last place to which a piece that begins at `begin` can reach.
  [[nodiscard]] std::size_t end_of(std::size_t piece, std::size_t begin, double limit) const {
    if (!(m_shares[piece] > 0)) return begin;
    std::size_t good = begin, bad = m_items + 1;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (fits(piece, begin, middle, limit) ? good : bad) = middle;
    }
    return good;
  }

  // Returns the first place from which a piece can reach `end`.
  [[nodiscard]] std::size_t begin_of(std::size_t piece, std::size_t end, double limit) const {
    if (!(m_shares[piece] > 0)) return end;
    std::size_t low = 0, good = end;
    while (low < good) {
      const std::size_t middle = low + (good - low) / 2;
      if (fits(piece, middle, end, limit))
        good = middle;
      else
        low = middle + 1;
    }
    return good;
  }

  [[nodiscard]] bool reaches_end(double limit) const {
    std::size_t begin = 0;
    for (std::size_t p = 0; p < m_shares.size() && begin < m_items; ++p)
      begin = end_of(p, begin, limit);
    return begin == m_items;
  }

  // Returns the least number within which pieces reach the end. The bits of numbers that are not
  // negative are ordered as the numbers are, so the search halves an interval of bits.
  [[nodiscard]] double least_limit() const {
    const double largest = *std::ranges::max_element(m_shares);
    auto low = std::bit_cast<std::uint64_t>(0.0);
    auto good = std::bit_cast<std::uint64_t>(m_sums.back() / largest);
    while (low < good) {
      const std::uint64_t middle = low + (good - low) / 2;
      if (reaches_end(std::bit_cast<double>(middle)))
        good = middle;
      else
        low = middle + 1;
    }
    return std::bit_cast<double>(good);
  }

  // Returns the first of the places whose sum is nearest to `sum`.
  [[nodiscard]] std::size_t nearest(double sum) const {
    auto at = std::ranges::lower_bound(m_sums, sum);
    if (at == m_sums.end()) --at;
    if (at != m_sums.begin() && sum - *(at - 1) <= *at - sum) --at;
    return static_cast<std::size_t>(std::ranges::lower_bound(m_sums, *at) - m_sums.begin());
  }

  std::vector<double> m_sums;
  std::span<const double> m_shares;
  std::size_t m_items;
};

HEDDLE_INLINE std::vector<double> equal_shares(int pieces) {
  expects(pieces >= 1, [&] {
    return ErrorInfo{"heddle::cut", "a line is cut into at least one piece",
                     text("pieces = ", pieces)};
  });
  return std::vector<double>(static_cast<std::size_t>(pieces), 1.0);
}

HEDDLE_INLINE std::vector<double> running_sums(std::span<const double> weights) {
  std::vector<double> sums{0};
  sums.reserve(weights.size() + 1);
  for (const double weight : weights) {
    expects(weight >= 0 && std::isfinite(weight), [&] {
      return ErrorInfo{"heddle::cut", "a weight must be a finite number of at least 0",
                       text("item ", sums.size() - 1, " weighs ", weight)};
    });
    sums.push_back(sums.back() + weight);
  }
  return sums;
}

HEDDLE_INLINE std::vector<std::int64_t> cut_line(std::vector<double> sums,
                                                 std::span<const double> shares) {
  constexpr const char* where = "heddle::cut";
  double all = 0;
  for (std::size_t p = 0; p < shares.size(); ++p) {
    expects(shares[p] >= 0 && std::isfinite(shares[p]), [&] {
      return ErrorInfo{where, "a share must be a finite number of at least 0",
                       text("piece ", p, " has ", shares[p])};
    });
    all += shares[p];
  }
  expects(all > 0 && std::isfinite(all), [&] {
    return ErrorInfo{where, "the shares must have a finite sum above 0",
                     text(shares.size(), " shares with the sum ", all),
                     "give at least one share above 0"};
  });
  expects(!sums.empty(), [&] {
    return ErrorInfo{where, "running sums have one entry more than there are items",
                     "found no entry", "begin with 0"};
  });
  const double first = sums.front();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    expects(std::isfinite(sums[i]) && (i == 0 || sums[i] >= sums[i - 1]), [&] {
      return ErrorInfo{
          where, "running sums are finite and do not fall",
          text("sum ", i, " is ", sums[i], i == 0 ? std::string{} : text(" after ", sums[i - 1]))};
    });
  }
  for (double& sum : sums) sum -= first;
  if (!(sums.back() > 0)) std::iota(sums.begin(), sums.end(), 0.0);
  return LineCut(std::move(sums), shares).boundaries();
}

}  // namespace heddle::inline v0::impl
