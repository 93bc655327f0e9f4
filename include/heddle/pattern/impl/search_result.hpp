// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The type of the result of a search of a race.

#include <optional>
#include <type_traits>

#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::impl {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// The type of what a search finds. It returns it as an optional, which is empty if it gives up.
template <class Search>
struct FoundBy {
  using Returned = std::invoke_result_t<Search&, pattern::Walker&>;
  static_assert(is_optional<Returned>,
                "a search of heddle::pattern::race() returns a std::optional");
  using type = typename Returned::value_type;
};
template <class Search>
using Found = typename FoundBy<Search>::type;

}  // namespace heddle::inline v0::impl
