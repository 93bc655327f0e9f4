// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Device: the processor of one rank, and its memories.

#include <string>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

/// A memory level of a device.
struct Memory {
  std::string name;    ///< shown to people
  Bytes capacity = 0;  ///< bytes; 0 if unknown
  Link link = {};      ///< the link of moves between this level and the levels before it

  friend bool operator==(const Memory&, const Memory&) = default;
};

/// The processor of one rank.
struct Device {
  std::string name = "device";  ///< shown to people
  double speed = 1;             ///< relative; divides costs that are not measured on this device
  int units = 0;                ///< units that actions share (Action::units); 0: not counted
  std::vector<Memory> memories = {};  ///< by Tier; kernels compute in the first one

  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace heddle::inline v0
