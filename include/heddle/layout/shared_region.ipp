// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_region.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/shared_region.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Bytes SharedRegion::Array::bytes(Bytes element) const {
  Bytes product = element;
  bool fits = true;
  for (std::size_t dim = 0; dim < extents.size(); ++dim) {
    expects(extents[dim] >= 0, [&] {
      return ErrorInfo{"heddle::SharedRegion::Array::bytes", "an extent is negative",
                       text("dimension ", dim, ": ", extents[dim])};
    });
    fits = fits && !__builtin_mul_overflow(product, static_cast<Bytes>(extents[dim]), &product);
  }
  expects(fits && product <= static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()), [&] {
    std::string all;
    for (const std::int64_t extent : extents) all += text(all.empty() ? "" : " x ", extent);
    return ErrorInfo{"heddle::SharedRegion::Array::bytes",
                     "the size of an array does not fit in 63 bits",
                     text(all, " elements of ", element, " bytes")};
  });
  return product;
}

namespace impl {

HEDDLE_INLINE std::vector<SharedRun> shared_runs(const IndexSet& a, const IndexSet& b) {
  std::vector<SharedRun> runs;
  std::int64_t before_a = 0;
  std::int64_t before_b = 0;
  const std::span<const Interval> of_a = a.intervals(), of_b = b.intervals();
  for (std::size_t i = 0, j = 0; i < of_a.size() && j < of_b.size();) {
    const Interval& in_a = of_a[i];
    const Interval& in_b = of_b[j];
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

}  // namespace impl

HEDDLE_INLINE SharedRegion::SharedRegion(std::vector<std::vector<impl::SharedRun>> runs)
    : m_runs(std::move(runs)) {
  for (std::size_t dim = 0; dim < m_runs.size(); ++dim)
    for (std::size_t i = 0; i < m_runs[dim].size(); ++i) {
      const impl::SharedRun& run = m_runs[dim][i];
      expects(run.size >= 1, [&] {  // positions may be negative: they can lie in a halo
        return ErrorInfo{"heddle::SharedRegion", "a run has at least one index",
                         text("run ", i, " of dimension ", dim, ": a = ", run.a, ", b = ", run.b,
                              ", size = ", run.size)};
      });
    }
}

HEDDLE_INLINE SharedRegion::SharedRegion(std::span<const IndexSet> a, std::span<const IndexSet> b) {
  expects(a.size() == b.size(), [&] {
    return ErrorInfo{"heddle::SharedRegion", "both arrays need a set for each dimension",
                     text(a.size(), " and ", b.size(), " sets")};
  });
  for (std::size_t dim = 0; dim < a.size(); ++dim)
    m_runs.push_back(impl::shared_runs(a[dim], b[dim]));
}

HEDDLE_INLINE SharedRegion SharedRegion::part(std::int64_t which, std::int64_t parts) const {
  expects(which >= 0 && which < parts, [&] {
    return ErrorInfo{"heddle::SharedRegion::part", "there is no such part",
                     text("part ", which, " of ", parts)};
  });
  if (m_runs.empty()) return *this;
  std::size_t cut = 0;
  for (std::size_t dim = 0; dim < m_runs.size() && size(cut) < parts; ++dim)
    if (size(dim) > size(cut)) cut = dim;
  const std::int64_t each = size(cut) / parts;
  const std::int64_t extra = size(cut) % parts;
  std::int64_t skip = which * each + std::min(which, extra);
  std::int64_t left = each + (which < extra ? 1 : 0);
  SharedRegion part = *this;
  part.m_runs[cut].clear();
  for (const impl::SharedRun& run : m_runs[cut]) {
    const std::int64_t taken = std::min(run.size - std::min(skip, run.size), left);
    if (taken > 0) part.m_runs[cut].push_back({run.a + skip, run.b + skip, taken});
    skip -= std::min(skip, run.size);
    left -= taken;
  }
  return part;
}

HEDDLE_INLINE std::vector<StridedBlock> SharedRegion::blocks(Side side,
                                                             const SharedRegion::Array& array,
                                                             Bytes element) const {
  expects(array.extents.size() == m_runs.size() && array.first.size() == m_runs.size(), [&] {
    return ErrorInfo{"heddle::SharedRegion::blocks", "an array needs every dimension of the region",
                     text(array.extents.size(), " extents and ", array.first.size(),
                          " first positions for ", m_runs.size(), " dimensions")};
  });
  for (std::size_t dim = 0; dim < m_runs.size(); ++dim)
    for (const impl::SharedRun& run : m_runs[dim]) {
      const std::int64_t begin = array.first[dim] + (side == Side::a ? run.a : run.b);
      expects(begin >= 0 && run.size <= array.extents[dim] - begin, [&] {
        return ErrorInfo{"heddle::SharedRegion::blocks", "a run lies outside of the array",
                         text("dimension ", dim, ": positions ", begin, " to ",
                              begin + run.size - 1, " of ", array.extents[dim])};
      });
    }
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

HEDDLE_INLINE std::int64_t SharedRegion::size(std::size_t dim) const noexcept {
  std::int64_t sum = 0;
  for (const impl::SharedRun& run : m_runs[dim]) sum += run.size;
  return sum;
}

HEDDLE_INLINE std::vector<SharedRegion::Stripe> SharedRegion::joined(
    const std::vector<impl::SharedRun>& runs) {
  std::vector<Stripe> stripes;
  for (const impl::SharedRun& run : runs) {
    if (!stripes.empty() && stripes.back().run.size == run.size) {
      Stripe& last = stripes.back();
      const impl::SharedRun step{(run.a - last.run.a) / last.count,
                                 (run.b - last.run.b) / last.count};
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

HEDDLE_INLINE bool SharedRegion::next(std::vector<std::size_t>& chosen,
                                      const std::vector<std::vector<Stripe>>& stripes) {
  for (std::size_t dim = chosen.size(); dim-- > 0;) {
    if (++chosen[dim] < stripes[dim].size()) return true;
    chosen[dim] = 0;
  }
  return false;
}

}  // namespace heddle::inline v0
