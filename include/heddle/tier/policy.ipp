// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of policy.hpp.

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/policy.hpp>

namespace heddle::inline v0::tier {

HEDDLE_INLINE void Lifetimes::begin(std::span<const Object> objects) {
  expects(m_requests.size() == objects.size(), [&] {
    return ErrorInfo{"heddle::tier::Lifetimes", "there is not one number of requests per object",
                     text(m_requests.size(), " numbers, ", objects.size(), " objects")};
  });
  m_uses.assign(objects.size(), 0);
  m_recent.begin(objects);
}

HEDDLE_INLINE void FarthestNext::begin(std::span<const Object> objects) {
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  m_now = 0;
  m_next.assign(objects.size(), never);
  m_after.assign(m_requests.size(), never);
  for (std::size_t r = m_requests.size(); r-- > 0;) {
    expects(+m_requests[r] < objects.size(), [&] {
      return ErrorInfo{
          "heddle::tier::FarthestNext", "a request names no object",
          text("request ", r, " of object ", m_requests[r], ", there are ", objects.size())};
    });
    m_after[r] = std::exchange(m_next[+m_requests[r]], r);
  }
}

HEDDLE_INLINE void FarthestNext::use(ObjectId id) {
  expects(m_now < m_requests.size() && m_requests[m_now] == id, [&] {
    return ErrorInfo{
        "heddle::tier::FarthestNext", "a request is not the one that was announced",
        m_now < m_requests.size()
            ? text("request ", m_now, " is of object ", id, ", not ", m_requests[m_now])
            : text("only ", m_requests.size(), " requests were announced"),
        "give the policy all requests in order"};
  });
  m_next[+id] = m_after[m_now++];
}

}  // namespace heddle::inline v0::tier
