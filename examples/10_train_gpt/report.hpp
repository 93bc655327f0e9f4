// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What train_gpt prints of schedules and timelines.

#include <vector>

#include <heddle/schedule.hpp>

#include "settings.hpp"

namespace examples {

/// Makespan and bubble ratio of every step that the prediction is compared with.
struct MeasuredSteps {
  std::vector<heddle::Seconds> makespan;
  std::vector<double> bubble;

  void add(const heddle::Timeline& timeline);
};

/// The grid of the schedule.
void print(const heddle::Schedule& schedule);

/// The bubble in theory, as predicted and as measured in `last`; the step as predicted against the
/// median of the measured ones. With --trace the file for Perfetto.
void report(const Settings& s, const heddle::Timeline& predicted, const heddle::Timeline& last,
            const MeasuredSteps& measured);

}  // namespace examples
