// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of strided_block.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {
namespace impl {

HEDDLE_INLINE ErrorInfo too_far(std::string why) {
  return {"heddle::StridedBlock", "offsets do not fit in 64 bits", std::move(why)};
}

HEDDLE_INLINE ErrorInfo too_far(std::int64_t a, std::int64_t b) {
  return too_far(text(a, " x ", b));
}

HEDDLE_INLINE ErrorInfo too_far(std::int64_t a, std::uint64_t b) {
  return too_far(text(a, " x ", b));
}

HEDDLE_INLINE std::int64_t offset_sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  expects(!__builtin_add_overflow(a, b, &result), [&] { return too_far(text(a, " + ", b)); });
  return result;
}

HEDDLE_INLINE std::int64_t offset_between(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  expects(!__builtin_sub_overflow(b, a, &result), [&] { return too_far(text(b, " - ", a)); });
  return result;
}

}  // namespace impl

HEDDLE_INLINE StridedBlock StridedBlock::shifted(std::int64_t bytes) const {
  StridedBlock block = *this;
  if (m_run != 0) block.m_start = impl::offset_sum(m_start, bytes);
  return block;
}

HEDDLE_INLINE StridedBlock StridedBlock::repeated(std::uint64_t count, std::int64_t stride) const {
  if (count == 0 || m_run == 0) return {};
  StridedBlock block = *this;
  if (count == 1) return block;
  const auto turns = static_cast<std::int64_t>(count);
  const auto reach =
      [](const StridedBlock::Loop& loop) {  // the stride with which an outer loop would continue it
        return impl::offset_product(loop.stride, loop.count);
      };
  expects(turns > 0, [&] { return impl::too_far(text(count, " turns")); });
  if (!m_loops.empty() && reach(m_loops.front()) == stride)
    block.m_loops.front().count = static_cast<std::uint64_t>(
        impl::offset_product(static_cast<std::int64_t>(m_loops.front().count), count));
  else if (m_loops.empty() && static_cast<std::int64_t>(m_run) == stride)
    block.m_run = static_cast<Bytes>(impl::offset_product(stride, count));
  else
    block.m_loops.insert(block.m_loops.begin(), {count, stride});
  (void)block.bounds();
  (void)block.bytes();
  return block;
}

HEDDLE_INLINE std::span<const StridedBlock::Loop> StridedBlock::loops() const noexcept {
  return m_loops;
}

HEDDLE_INLINE Bytes StridedBlock::bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(m_run);
  for (const StridedBlock::Loop& loop : m_loops) bytes = impl::offset_product(bytes, loop.count);
  return static_cast<Bytes>(bytes);
}

HEDDLE_INLINE StridedBlock::Bounds StridedBlock::bounds() const {
  Bounds bounds{m_start, impl::offset_sum(m_start, static_cast<std::int64_t>(m_run))};
  for (const StridedBlock::Loop& loop : m_loops) {
    const std::int64_t last = impl::offset_product(loop.stride, loop.count - 1);
    (last < 0 ? bounds.begin : bounds.end) =
        impl::offset_sum(last < 0 ? bounds.begin : bounds.end, last);
  }
  return bounds;
}

HEDDLE_INLINE std::vector<StridedBlock> StridedBlock::split(std::size_t parts) const {
  const std::uint64_t turns = m_loops.empty() ? m_run : m_loops.front().count;
  const std::int64_t stride = m_loops.empty() ? 1 : m_loops.front().stride;
  StridedBlock inside(1);
  if (!m_loops.empty()) {
    inside.m_run = m_run;
    inside.m_loops.assign(m_loops.begin() + 1, m_loops.end());
  }
  std::vector<StridedBlock> split;
  const std::uint64_t most = std::min<std::uint64_t>(turns, std::max<std::size_t>(1, parts));
  std::uint64_t begin = 0;
  for (std::uint64_t part = 0; part < most; ++part) {
    const std::uint64_t end = begin + impl::even_count(turns, most, part);
    split.push_back(inside.repeated(end - begin, stride)
                        .shifted(m_start + static_cast<std::int64_t>(begin) * stride));
    begin = end;
  }
  return split;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const StridedBlock& block) {
  out << block.m_run << " B";
  for (std::size_t l = 0; l < block.m_loops.size(); ++l)
    out << (l == 0 ? " of " : ", ") << block.m_loops[l].count << " x " << block.m_loops[l].stride;
  return block.m_start == 0 ? out : out << " at " << block.m_start;
}

}  // namespace heddle::inline v0
