// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceMethod: how attention is computed over a sequence that is sharded over ranks.

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>

#include <heddle/core/internal/enumerator.hpp>

namespace heddle::inline v0 {

/// A method of sequence parallelism. The heads axis has U ranks, the ring axis R ranks.
enum class SequenceMethod : std::uint8_t {
  ulysses,     ///< each rank gets all tokens of some heads; R = 1 (Jacobs et al., 2023)
  ring,        ///< keys and values travel around the ring; U = 1 (Liu et al., 2023)
  usp,         ///< ulysses along the heads axis, ring along the ring axis (Fang and Zhao, 2024)
  rsa,         ///< keys, then values travel around the ring; U = 1 (Li et al., 2021)
  token_ring,  ///< queries travel around the ring; U = 1 (Wang et al., 2024)
  automatic,   ///< the method of the least predicted time
};

/// Prints the name of the enumerator, such as "ulysses".
inline std::ostream& operator<<(std::ostream& out, SequenceMethod method) {
  constexpr std::array names = {"ulysses", "ring", "usp", "rsa", "token_ring", "automatic"};
  return out << impl::enumerator_name(names, method);
}

}  // namespace heddle::inline v0
