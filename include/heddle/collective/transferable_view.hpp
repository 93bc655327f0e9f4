// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TransferableView: the concept of the Views that collective calls accept.

#include <type_traits>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {

/// A View whose elements can be sent as bytes.
template <class V>
concept TransferableView =
    Kokkos::is_view_v<V> && std::is_trivially_copyable_v<typename V::non_const_value_type>;

}  // namespace heddle::inline v0
