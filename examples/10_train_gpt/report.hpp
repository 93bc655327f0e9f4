// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What train_gpt prints of schedules and timelines.

#include <vector>

#include <heddle/schedule.hpp>

#include "settings.hpp"

namespace examples {

/// The grid of the schedule.
void print(const heddle::Schedule& schedule);

/// The bubble in theory, as predicted and as measured in the step that took the median time of
/// `measured`, how far the prediction is off, and what memory every rank needed, beside the bytes
/// that its Runner has `allocated`. With --trace the file for Perfetto.
void report(const Settings& s, const heddle::Timeline& predicted,
            std::vector<heddle::Timeline> measured, std::vector<heddle::Bytes> allocated);

}  // namespace examples
