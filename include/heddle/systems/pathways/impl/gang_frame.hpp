// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangFrame: the control message of an island. It has one size, and carries a whole program.

#include <array>
#include <cstdint>
#include <type_traits>

namespace heddle::inline v0::systems::impl {

/// A call in a program: a function, the values that it reads, and the value that it makes.
struct GangNode {
  /// The function that brings a value to a client.
  static constexpr std::uint32_t get = 0xffffffffu;

  std::uint32_t function = get;  ///< a number in the registry of the island, or `get`
  std::uint32_t arguments = 0;   ///< the number of values that it reads
  std::uint64_t result = 0;      ///< the value that it makes, or the number of the get
  std::array<std::uint64_t, 4> argument = {};  ///< the values that it reads
};

/// A control message between a rank and the scheduler of the island. All frames have the same size,
/// so that receives can be posted before anybody knows what comes. It fits an eager message.
struct GangFrame {
  /// The kinds of frames.
  enum class Kind : std::uint32_t {
    submit,  ///< to the scheduler: a program of a client
    run,     ///< from the scheduler: run this program
    done,    ///< to the scheduler: this rank has run program `number`
    end,     ///< from the scheduler: there are no more programs
    bye      ///< to the scheduler: the last frame of this rank
  };
  static constexpr std::uint32_t most_nodes = 48;
  static constexpr std::uint32_t most_drops = 64;

  Kind kind = Kind::submit;
  std::uint32_t client = 0;
  std::uint32_t nodes = 0;
  std::uint32_t drops = 0;
  std::uint32_t forget = 0;  ///< 1: the client has ended, and all its values go
  std::uint32_t unused = 0;
  std::uint64_t number = 0;  ///< the place of the program in the order of the island
  std::array<GangNode, most_nodes> node = {};
  std::array<std::uint64_t, most_drops> drop = {};  ///< values that go after the program
};
static_assert(std::is_trivially_copyable_v<GangFrame> && sizeof(GangFrame) < 4000);

}  // namespace heddle::inline v0::systems::impl
