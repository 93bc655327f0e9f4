// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The room memory/trace/: traces of allocations, their recorder and their replay.

#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/trace.hpp>
#include <heddle/memory/trace/view_recorder.hpp>
