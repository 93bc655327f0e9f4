// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shaped_mover.hpp.

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/shaped_mover.hpp>
#include <heddle/machine/internal/expect_link.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE MoverShape mover_shape_of(Device device) {
  for (const Memory& memory : device.memories)
    impl::expect_link(memory.link, "heddle::mover_shape_of",
                      [&] { return text("memory '", memory.name, "' of '", device.name, "'"); });
  MoverShape shape;
  shape.link = [device = std::move(device)](Tier from, Tier to, Seconds) {
    const std::size_t farther = +std::max(from, to);
    return farther < device.memories.size() ? device.memories[farther].link : Link{};
  };
  return shape;
}

}  // namespace heddle::inline v0::impl
