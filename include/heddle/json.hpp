// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of json/: files of profiles, machines, plans and tensor programs. Programs link
/// heddle::json, which is there if CMake finds nlohmann_json.

#include <heddle/json/machine.hpp>
#include <heddle/json/plan.hpp>
#include <heddle/json/profile.hpp>
