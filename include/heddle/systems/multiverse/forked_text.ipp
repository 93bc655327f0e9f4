// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of forked_text.hpp.

#include <algorithm>
#include <cstddef>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE ForkedText::ForkedText() : m_paths(1) {}

HEDDLE_INLINE ForkedText& ForkedText::say(std::int64_t tokens) {
  expects(tokens >= 0, [&] {
    return ErrorInfo{"heddle::systems::ForkedText::say",
                     "the number of tokens must not be negative", text("tokens = ", tokens)};
  });
  if (tokens == 0) return *this;
  m_segments.push_back({m_tokens, tokens, m_positions, 0});
  m_tokens += tokens;
  m_positions += tokens;
  return *this;
}

HEDDLE_INLINE ForkedText& ForkedText::fork(const std::vector<ForkedText>& paths) {
  expects(!paths.empty(), [] {
    return ErrorInfo{"heddle::systems::ForkedText::fork", "a fork needs at least one path",
                     "there are none"};
  });
  const int number = m_forks++;
  std::int64_t longest = 0;
  for (const ForkedText& path : paths) {
    // The path's own text becomes path `base`, and its paths follow.
    const auto base = static_cast<int>(m_paths.size());
    for (const Path& inner : path.m_paths)
      m_paths.push_back(inner.parent < 0 ? Path{0, number}
                                         : Path{base + inner.parent, m_forks + inner.fork});
    m_forks += path.m_forks;
    for (const Segment& segment : path.m_segments)
      m_segments.push_back({m_tokens + segment.first, segment.tokens,
                            m_positions + segment.position, base + segment.path});
    m_tokens += path.m_tokens;
    longest = std::max(longest, path.m_positions);
  }
  m_positions += longest;
  return *this;
}

HEDDLE_INLINE const ForkedText::Segment& ForkedText::segment_of(std::int64_t token) const {
  expects(token >= 0 && token < m_tokens, [&] {
    return ErrorInfo{"heddle::systems::ForkedText", "there is no such token",
                     text("token ", token, " of ", m_tokens)};
  });
  const auto behind =
      std::upper_bound(m_segments.begin(), m_segments.end(), token,
                       [](std::int64_t wanted, const Segment& s) { return wanted < s.first; });
  return *(behind - 1);
}

HEDDLE_INLINE std::int64_t ForkedText::position_of(std::int64_t token) const {
  const Segment& segment = segment_of(token);
  return segment.position + (token - segment.first);
}

HEDDLE_INLINE bool ForkedText::sees(int reader, int written) const {
  // A parent has a lower number than its paths, so the walk up meets at the common ancestor. The
  // path below it on either side is where the two part.
  int below_reader = -1;
  int below_written = -1;
  while (reader != written) {
    if (reader > written) {
      below_reader = reader;
      reader = m_paths[static_cast<std::size_t>(reader)].parent;
    } else {
      below_written = written;
      written = m_paths[static_cast<std::size_t>(written)].parent;
    }
  }
  if (below_reader < 0 || below_written < 0) return true;
  return m_paths[static_cast<std::size_t>(below_reader)].fork !=
         m_paths[static_cast<std::size_t>(below_written)].fork;
}

HEDDLE_INLINE std::vector<Interval> ForkedText::visible(std::int64_t token) const {
  const Segment& own = segment_of(token);
  std::vector<Interval> intervals;
  for (const Segment& segment : m_segments) {
    if (segment.first > token) break;
    if (!sees(own.path, segment.path)) continue;
    const std::int64_t end = std::min(segment.first + segment.tokens, token + 1);
    if (!intervals.empty() && intervals.back().end == segment.first)
      intervals.back().end = end;
    else
      intervals.push_back({segment.first, end});
  }
  return intervals;
}

}  // namespace heddle::inline v0::systems
