// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RunOptions: what a Runner is told.

#include <cstdint>
#include <optional>

#include <heddle/execute/execute_options.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// Options of a Runner: how it executes, and how much storage it uses.
struct RunOptions {
  ExecuteOptions execute = {};  ///< the options of the executor
  bool fold = true;             ///< bounded storage, see schedule::fold()
  std::uint32_t slack = 1;      ///< slots beyond the minimum, for buffers of messages
  /// The machine on which it runs. If it is given, buffers of uneven parts are folded, too, into
  /// arenas (see schedule::fold()), and the constructor checks that all buffers fit in the
  /// machine's memories.
  std::optional<Machine> machine = {};
};

}  // namespace heddle::inline v0
