// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of group_mask.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/lpd/group_mask.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE GroupMask::GroupMask(std::span<const std::int64_t> sizes, std::int64_t prompt) {
  expects(!sizes.empty() && prompt >= 0, [&] {
    return ErrorInfo{"heddle::systems::GroupMask",
                     "a decoder needs a group, and a prompt of at least 0",
                     text(sizes.size(), " groups, prompt = ", prompt)};
  });
  m_ends.push_back(prompt);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    expects(sizes[i] >= 1, [&] {
      return ErrorInfo{"heddle::systems::GroupMask", "a group has at least one token",
                       text("sizes[", i, "] = ", sizes[i])};
    });
    m_ends.push_back(m_ends.back() + sizes[i]);
  }
}

HEDDLE_INLINE Interval GroupMask::context_of(int group) const {
  expects(group >= -1 && group < groups() - 1, [&] {
    return ErrorInfo{"heddle::systems::GroupMask::context_of", "the group has no context",
                     text("group ", group, " of ", groups())};
  });
  if (group < 0) return {0, m_ends[0]};
  const auto g = static_cast<std::size_t>(group);
  return {m_ends[g], m_ends[g + 1]};
}

HEDDLE_INLINE Interval GroupMask::queries_of(int group) const {
  expects(group >= 0 && group < groups(), [&] {
    return ErrorInfo{"heddle::systems::GroupMask::queries_of", "there is no such group",
                     text("group ", group, " of ", groups())};
  });
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t shift = context() - m_ends[0];
  return {shift + m_ends[g], shift + m_ends[g + 1]};
}

HEDDLE_INLINE int GroupMask::group_of(std::int64_t token) const {
  expects(token >= 0 && token < tokens(), [&] {
    return ErrorInfo{"heddle::systems::GroupMask", "there is no such token",
                     text("token ", token, " of ", tokens())};
  });
  const std::int64_t at = token < context() ? token : token - context() + m_ends[0];
  return static_cast<int>(std::upper_bound(m_ends.begin(), m_ends.end(), at) - m_ends.begin()) - 1;
}

HEDDLE_INLINE std::vector<Interval> GroupMask::visible(std::int64_t token) const {
  const int group = group_of(token);
  if (token < context()) return {{0, m_ends[static_cast<std::size_t>(group + 1)]}};
  const std::int64_t known = m_ends[static_cast<std::size_t>(group)];
  const Interval own = queries_of(group);
  if (known == 0) return {own};
  if (known == own.begin) return {{0, own.end}};
  return {{0, known}, own};
}

}  // namespace heddle::inline v0::systems
