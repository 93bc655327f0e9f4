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
/// A constant converts, `Rank root = 0`; other numbers are named, `Rank{n}`. Compares with integers
/// by value, `rank == n`. Read `value`, or `+rank` where an array wants an index.
template <class Tag>
struct Index {
  std::uint32_t value = 0;  ///< the plain number

  constexpr Index() = default;
  /// From a constant. Does not compile for a negative one, or one that 4 bytes do not hold.
  template <std::integral Number>
  consteval Index(Number number) : value(in_range(number)) {}
  /// @throws contract_error for a negative number, or one that 4 bytes do not hold.
  template <std::integral Number>
  requires std::convertible_to<Number, std::uint32_t>  // always; preferred to the other for it
  constexpr explicit Index(Number number) : value(in_range(number)) {}

  /// The plain number, as an array index.
  [[nodiscard]] constexpr std::size_t operator+() const noexcept { return value; }
  /// The next one.
  constexpr Index& operator++() noexcept {
    ++value;
    return *this;
  }
  friend constexpr bool operator==(Index, Index) = default;
  friend constexpr auto operator<=>(Index, Index) = default;
  /// Compares the values, so that every index is greater than a negative number.
  template <std::integral Number>
  friend constexpr std::strong_ordering operator<=>(Index index, Number number) noexcept {
    if (std::cmp_less(number, index.value)) return std::strong_ordering::greater;
    return std::cmp_equal(number, index.value) ? std::strong_ordering::equal
                                               : std::strong_ordering::less;
  }
  template <std::integral Number>
  friend constexpr bool operator==(Index index, Number number) noexcept {
    return std::cmp_equal(index.value, number);
  }
  friend std::ostream& operator<<(std::ostream& out, Index index) { return out << index.value; }

 private:
  [[nodiscard]] static constexpr std::uint32_t in_range(std::integral auto number) {
    expects(std::in_range<std::uint32_t>(number), [&] {
      return Complaint{"heddle::Index", "index out of range", std::to_string(number),
                       "valid range is [0, 4294967295]"};
    });
    return static_cast<std::uint32_t>(number);
  }
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
