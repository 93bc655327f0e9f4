// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Strong index types: passing a Stage for a Rank does not compile.

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Throws the contract_error for `number`, which is not an index.
[[noreturn]] void refuse_index(const std::string& number);
/// Prints the number of an index.
std::ostream& print_index(std::ostream& out, std::uint32_t value);

}  // namespace impl

/// An index whose type tells what it counts. It has 4 bytes, is ordered and prints as the plain
/// number. A constant converts implicitly, `Rank root = 0`; other numbers convert explicitly,
/// `Rank{n}`. An Index compares with integers by value, `rank == n`. Read `value`, or write `+rank`
/// to index an array.
template <class Tag>
struct Index {
  std::uint32_t value = 0;  ///< the plain number

  constexpr Index() = default;
  /// Converts a constant. Does not compile if it is negative or does not fit 4 bytes.
  template <std::integral Number>
  consteval Index(Number number) : value(in_range(number)) {}
  /// Converts a number. @throws contract_error if it is negative or does not fit 4 bytes.
  template <std::integral Number>
  requires std::convertible_to<Number,
                               std::uint32_t>  // always true; overload resolution prefers it
  constexpr explicit Index(Number number) : value(in_range(number)) {}

  /// Returns the plain number, as an array index.
  [[nodiscard]] constexpr std::size_t operator+() const noexcept { return value; }
  /// Advances to the next index.
  constexpr Index& operator++() noexcept {
    ++value;
    return *this;
  }
  friend constexpr bool operator==(Index, Index) = default;
  friend constexpr auto operator<=>(Index, Index) = default;
  /// Compares the values. Every index is greater than a negative number.
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
  friend std::ostream& operator<<(std::ostream& out, Index index) {
    return impl::print_index(out, index.value);
  }

 private:
  [[nodiscard]] static constexpr std::uint32_t in_range(std::integral auto number) {
    if (!std::in_range<std::uint32_t>(number)) [[unlikely]]
      impl::refuse_index(std::to_string(number));
    return static_cast<std::uint32_t>(number);
  }
};

using Rank = Index<struct RankTag>;      ///< a process or thread that runs one Program
using Stage = Index<struct StageTag>;    ///< a part of the model that one rank holds
using Item = Index<struct ItemTag>;      ///< an input of a stage: a microbatch, token or chunk
using Tier = Index<struct TierTag>;      ///< a memory level of a rank; 0 is where kernels compute
using Lane = Index<struct LaneTag>;      ///< one of several in-order queues between the same ranks
using Worker = Index<struct WorkerTag>;  ///< one of the workers that share a range of items
using BufferId = Index<struct BufferTag>;  ///< a Buffer of a Schedule, in the order of its list
using QueueId = Index<struct QueueTag>;    ///< an in-order queue of a Schedule
using ActionId = Index<struct ActionTag>;  ///< an Action of a Schedule, in the order of its list
using LabelId = Index<struct LabelTag>;    ///< a label that actions of a Schedule print

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/index.ipp>
#endif
