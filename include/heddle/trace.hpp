// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of trace/: looking at schedules and timelines, in the terminal, as pictures, in a
/// trace viewer and as numbers.

#include <heddle/trace/dot.hpp>
#include <heddle/trace/grid.hpp>
#include <heddle/trace/memory_report.hpp>
#include <heddle/trace/named_timeline.hpp>
#include <heddle/trace/perfetto.hpp>
#include <heddle/trace/plan_error.hpp>
#include <heddle/trace/png.hpp>
#include <heddle/trace/report.hpp>
#include <heddle/trace/svg.hpp>
