// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Strong index types: a stage is not a rank, and passing one for the other does not compile.

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>

namespace heddle::inline v0 {

/// A number that says what it counts. 4 bytes, ordered, prints as the plain number.
/// Write `Rank{3}`; read `value`, or `+rank` where an array wants an index.
template <class Tag>
struct Index {
  std::uint32_t value = 0;  ///< the plain number

  constexpr Index() = default;
  /// @throws contract_error for a negative number, or one that 4 bytes do not hold.
  constexpr explicit Index(std::integral auto number) : value(static_cast<std::uint32_t>(number)) {
    expects(std::in_range<std::uint32_t>(number), [&] {
      return Complaint{"heddle::Index", "no such number", std::to_string(number),
                       "an index counts from 0 to 4294967295"};
    });
  }

  /// The plain number, as an array index.
  [[nodiscard]] constexpr std::size_t operator+() const noexcept { return value; }
  /// The next one.
  constexpr Index& operator++() noexcept {
    ++value;
    return *this;
  }
  friend constexpr auto operator<=>(Index, Index) = default;
  friend std::ostream& operator<<(std::ostream& out, Index index) { return out << index.value; }
};

using Rank = Index<struct RankTag>;    ///< a process (or thread) that runs one Program
using Stage = Index<struct StageTag>;  ///< a piece of the model that lives on one rank
using Item = Index<struct ItemTag>;    ///< a microbatch, token or chunk: what a stage is applied to
using Tier = Index<struct TierTag>;    ///< a memory level of a rank; 0 is where kernels compute
using Lane = Index<struct LaneTag>;    ///< one of several in-order queues between the same ends
using Worker = Index<struct WorkerTag>;    ///< one of those that share a range of items
using BufferId = Index<struct BufferTag>;  ///< a Buffer of a Schedule, in the order of its list
using QueueId = Index<struct QueueTag>;    ///< an in-order queue of a Schedule
using ActionId = Index<struct ActionTag>;  ///< an Action of a Schedule, in the order of its list
using LabelId = Index<struct LabelTag>;    ///< a label that actions of a Schedule print

}  // namespace heddle::inline v0
