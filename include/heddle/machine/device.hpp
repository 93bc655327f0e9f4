// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Device: where one rank computes, and the memory it has.

#include <string>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

/// A level of memory of a device.
struct Memory {
  std::string name;    ///< for people to read
  Bytes capacity = 0;  ///< 0: not said
  Link link = {};      ///< which moves between it and the levels before it take
};

/// Where one rank computes.
struct Device {
  std::string name = "device";  ///< for people to read
  double speed = 1;             ///< relative; costs of no device in particular are divided by it
  int units = 0;                ///< that actions share (Action::units); 0: they share nothing
  std::vector<Memory> memories = {};  ///< by Tier; the first is where kernels compute
};

}  // namespace heddle::inline v0
