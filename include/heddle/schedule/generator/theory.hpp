// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Closed forms for the schedules of the generators, to compare with a simulated or measured
/// timeline.

#include <optional>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

struct NamedSchedule;
struct PipelineShape;

/// Returns the bubble ratio of GPipe and 1F1B (`stages_per_rank` = 1) and of interleaved 1F1B (V
/// stages per rank): (P - 1) / (V M + P - 1) for P ranks and M microbatches. The bubble ratio is
/// the idle share of the ranks' time.
///
/// Let F and B be the times of a rank's V stages together. A rank works for M (F + B) per step. It
/// is idle while the first microbatch goes down the P - 1 other ranks and while the last one goes
/// back up. Each of these times is that of one of its V stages, so the idle time is
/// (P - 1)(F + B) / V. The ratio idle / (idle + work) does not depend on F and B. The formula holds
/// for equal stages, if transfers take no time and there is no update. For V > 1 it needs M >= P.
///
/// Source: Huang et al., "GPipe" (2019), section 2.3; Narayanan et al., "Efficient large-scale
/// language model training on GPU clusters" (SC'21), section 2.2, which gives the bubble relative
/// to the work.
/// @throws contract_error if an argument is below 1.
[[nodiscard]] double bubble_ratio(int ranks, int microbatches, int stages_per_rank = 1);

/// Returns the bubble ratio of a schedule of the catalogue by its closed form, or nothing if there
/// is no closed form for this shape and these times: F, I and W of a stage, where a whole backward
/// takes I + W and a fused pair F + I + W. The closed form is that of equal stages, if transfers
/// and updates take no time. The orders of the schedule say where the form is from. Forms for which
/// they name no source were found by simulation. The shape must be one that the schedule has.
/// @throws contract_error if a count is below 1, or if a time is negative or not finite.
[[nodiscard]] std::optional<double> bubble_ratio(const NamedSchedule& schedule,
                                                 const PipelineShape& shape, double forward = 1,
                                                 double backward_input = 1,
                                                 double backward_weight = 1);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/theory.ipp>
#endif
