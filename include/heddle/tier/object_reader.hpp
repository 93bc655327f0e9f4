// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// reader_of(): reads objects as the parts of one buffer, for the moves of a Schedule.

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::inline v0::tier {

/// Returns the bytes of objects, in this order.
/// @throws contract_error if there is no such object.
[[nodiscard]] std::vector<Bytes> sizes_of(const Objects& tier, std::span<const ObjectId> ids);

/// Returns a function that reads a buffer whose parts are these objects, in this order. The
/// function copies the bytes from an offset of the buffer on. Both ends of a read lie between
/// objects, as those of a move of whole parts do. The tier must outlive the function.
///
///     mover.attach_reader(weights, tier::reader_of(store, layers));  // mover: a ThreadMover
///
/// The function throws contract_error if an end of a read lies within an object, and the errors of
/// Objects::read(), which name the object.
/// @throws contract_error if there is no such object.
[[nodiscard]] std::function<void(Bytes offset, std::span<std::byte> to)> reader_of(
    Objects& tier, std::span<const ObjectId> ids);

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/object_reader.ipp>
#endif
