// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedRegion: the elements that two arrays of one tensor have in common, and which bytes they
/// are in either: what a rank sends, and where another one puts it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

/// A dense array, the last dimension fastest, some of whose elements stand for indices.
struct ArrayShape {
  std::vector<std::int64_t> extents;  ///< of each dimension, with what is around
  std::vector<std::int64_t> first;    ///< where the first index of each dimension stands

  /// Number of elements.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents) product *= extent;
    return product;
  }
  /// Bytes of elements of so many. @throws contract_error where 63 bits do not hold them.
  [[nodiscard]] Bytes bytes(Bytes element) const {
    Bytes product = 0;
    expects(!__builtin_mul_overflow(static_cast<Bytes>(elements()), element, &product) &&
                product <= static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()),
            [&] {
              return Complaint{"heddle::ArrayShape::bytes", "63 bits hold the bytes of an array",
                               text(elements(), " elements of ", element, " bytes")};
            });
    return product;
  }
};

/// `size` indices in a row, at the positions from `a` on in one set and from `b` on in another.
struct SharedRun {
  std::int64_t a = 0;     ///< the first position in one
  std::int64_t b = 0;     ///< and in the other
  std::int64_t size = 0;  ///< number of indices
};

/// The indices of both sets, ascending, in runs as long as can be.
[[nodiscard]] inline std::vector<SharedRun> shared_runs(const IndexSet& a, const IndexSet& b) {
  std::vector<SharedRun> runs;
  std::int64_t before_a = 0;
  std::int64_t before_b = 0;
  for (std::size_t i = 0, j = 0; i < a.intervals().size() && j < b.intervals().size();) {
    const Interval& in_a = a.intervals()[i];
    const Interval& in_b = b.intervals()[j];
    const Interval both{std::max(in_a.begin, in_b.begin), std::min(in_a.end, in_b.end)};
    if (both.size() > 0)
      runs.push_back(
          {before_a + both.begin - in_a.begin, before_b + both.begin - in_b.begin, both.size()});
    if (in_a.end == both.end) {
      before_a += in_a.size();
      ++i;
    }
    if (in_b.end == both.end) {
      before_b += in_b.size();
      ++j;
    }
  }
  return runs;
}

/// A product of indices, one list of runs for each dimension, that two arrays have.
class SharedRegion {
 public:
  /// One of the two.
  enum class Side : std::uint8_t {
    a,  ///< the array of the first set
    b   ///< that of the second
  };

  /// Of these runs; empty where one dimension has none.
  explicit SharedRegion(std::vector<std::vector<SharedRun>> runs) : m_runs(std::move(runs)) {}
  /// Of all indices that both have, in as many dimensions.
  SharedRegion(std::span<const IndexSet> a, std::span<const IndexSet> b) {
    for (std::size_t dim = 0; dim < a.size(); ++dim) m_runs.push_back(shared_runs(a[dim], b[dim]));
  }

  /// Number of elements.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (std::size_t dim = 0; dim < m_runs.size(); ++dim) product *= size(dim);
    return product;
  }

  /// Part `which` of `parts` parts: of the outermost dimension that has an index for each, or else
  /// of the longest, as even as that allows. Some may be empty.
  [[nodiscard]] SharedRegion part(std::int64_t which, std::int64_t parts) const {
    std::size_t cut = 0;
    for (std::size_t dim = 0; dim < m_runs.size() && size(cut) < parts; ++dim)
      if (size(dim) > size(cut)) cut = dim;
    const std::int64_t each = size(cut) / parts;
    const std::int64_t extra = size(cut) % parts;
    std::int64_t skip = which * each + std::min(which, extra);
    std::int64_t left = each + (which < extra ? 1 : 0);
    SharedRegion part = *this;
    part.m_runs[cut].clear();
    for (const SharedRun& run : m_runs[cut]) {
      const std::int64_t taken = std::min(run.size - std::min(skip, run.size), left);
      if (taken > 0) part.m_runs[cut].push_back({run.a + skip, run.b + skip, taken});
      skip -= std::min(skip, run.size);
      left -= taken;
    }
    return part;
  }

  /// Its elements of so many bytes, in the array of one side: blocks that follow one another. Those
  /// of the two sides are in one order.
  [[nodiscard]] std::vector<StridedBlock> blocks(Side side, const ArrayShape& array,
                                                 Bytes element) const {
    std::vector<std::vector<Stripe>> stripes;
    for (const auto& runs : m_runs) stripes.push_back(joined(runs));
    std::vector<StridedBlock> blocks;
    if (elements() == 0) return blocks;
    std::vector<std::size_t> chosen(m_runs.size(), 0);
    do {
      StridedBlock block(element);
      std::int64_t offset = 0;
      auto stride = static_cast<std::int64_t>(element);
      for (std::size_t dim = m_runs.size(); dim-- > 0; stride *= array.extents[dim]) {
        const Stripe& stripe = stripes[dim][chosen[dim]];
        const bool first = side == Side::a;
        block = block.repeated(static_cast<std::uint64_t>(stripe.run.size), stride)
                    .repeated(static_cast<std::uint64_t>(stripe.count),
                              (first ? stripe.step.a : stripe.step.b) * stride);
        offset += (array.first[dim] + (first ? stripe.run.a : stripe.run.b)) * stride;
      }
      blocks.push_back(block.shifted(offset));
    } while (next(chosen, stripes));
    return blocks;
  }

 private:
  /// Runs of one size, at equal distances in both sets.
  struct Stripe {
    SharedRun run;
    std::int64_t count = 1;
    SharedRun step = {};
  };

  [[nodiscard]] std::int64_t size(std::size_t dim) const noexcept {
    std::int64_t sum = 0;
    for (const SharedRun& run : m_runs[dim]) sum += run.size;
    return sum;
  }

  [[nodiscard]] static std::vector<Stripe> joined(const std::vector<SharedRun>& runs) {
    std::vector<Stripe> stripes;
    for (const SharedRun& run : runs) {
      if (!stripes.empty() && stripes.back().run.size == run.size) {
        Stripe& last = stripes.back();
        const SharedRun step{(run.a - last.run.a) / last.count, (run.b - last.run.b) / last.count};
        if (last.count == 1) last.step = step;
        if (run.a == last.run.a + last.count * last.step.a &&
            run.b == last.run.b + last.count * last.step.b) {
          ++last.count;
          continue;
        }
      }
      stripes.push_back({run});
    }
    return stripes;
  }

  /// The next choice of a stripe for each dimension, the last fastest; false after the last one.
  [[nodiscard]] static bool next(std::vector<std::size_t>& chosen,
                                 const std::vector<std::vector<Stripe>>& stripes) {
    for (std::size_t dim = chosen.size(); dim-- > 0;) {
      if (++chosen[dim] < stripes[dim].size()) return true;
      chosen[dim] = 0;
    }
    return false;
  }

  std::vector<std::vector<SharedRun>> m_runs;  ///< by dimension
};

}  // namespace heddle::inline v0
