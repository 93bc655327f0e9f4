// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The type of the result of a search of a race.

#include <optional>
#include <type_traits>

#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::impl {

/// The type of a search: it returns an optional result, nothing if it gives up.
template <class Search>
using Found = std::invoke_result_t<Search&, Walker&>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace heddle::inline v0::impl
