// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// type_words(): the name of a type in files, for the journals of farms.

#include <cstddef>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

template <class V>
inline constexpr bool is_vector = false;
template <class E>
inline constexpr bool is_vector<std::vector<E>> = true;

/// Return the name of a type of numbers by its kind and bytes, and that of a class.
[[nodiscard]] std::string number_words(char kind, std::size_t bytes);
[[nodiscard]] std::string class_words(const char* name, std::size_t bytes);

/// Returns the name of a type, which is the same in each run and for each compiler of one platform.
/// Numbers are named by kind and bits ("i64", "u8", "f32"), so equal types have one name. An enum
/// or a class is named by its mangled name and its bytes, because its members are not known: a
/// class whose members change must change its name, too. A pointer stands for the element that it
/// points to.
template <class V>
[[nodiscard]] std::string type_words() {
  if constexpr (std::is_pointer_v<V>)
    return type_words<std::remove_cv_t<std::remove_pointer_t<V>>>();
  else if constexpr (std::is_same_v<V, bool>)
    return "bool";
  else if constexpr (std::is_floating_point_v<V>)
    return number_words('f', sizeof(V));
  else if constexpr (std::is_integral_v<V>)
    return number_words(std::is_signed_v<V> ? 'i' : 'u', sizeof(V));
  else if constexpr (std::is_same_v<V, std::string>)
    return "string";
  else if constexpr (is_vector<V>)
    return "vector of " + type_words<typename V::value_type>();
  else
    return class_words(typeid(V).name(), sizeof(V));
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/type_words.ipp>
#endif
