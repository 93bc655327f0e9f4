// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The catalogue: every pipeline schedule by its name, for programs whose users choose one. A new
/// schedule needs a generator and a line in catalogue(); tools, gallery and examples then find it.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// The numbers from which a schedule of the catalogue is generated.
struct PipelineShape {
  int ranks = 4;            ///< ranks of the pipeline
  int microbatches = 8;     ///< in a step
  int stages_per_rank = 2;  ///< used by the schedules with ShapeOption::stages_per_rank
  int group = 0;            ///< microbatches of a group, 0 for the usual number of the schedule;
                            ///< used with ShapeOption::group
  int pairs = 1;            ///< pipelines in each direction; used with ShapeOption::pairs
  int most_live = 0;        ///< microbatches that a rank has memory for, 0 for all of them; used
                            ///< with ShapeOption::most_live
};

/// The members of PipelineShape that a schedule uses besides the ranks and microbatches: a set of
/// bits.
enum class ShapeOption : std::uint8_t {
  none = 0,
  stages_per_rank = 1,
  group = 2,
  pairs = 4,
  most_live = 8
};

/// Returns the options of both sets.
[[nodiscard]] constexpr ShapeOption operator|(ShapeOption a, ShapeOption b) {
  return static_cast<ShapeOption>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// A schedule of the catalogue.
struct NamedSchedule {
  std::string_view name;    ///< the name that users write
  std::string_view call;    ///< the same schedule in C++: a call of a function in heddle::schedule
  std::string_view about;   ///< a description in one line
  std::string_view source;  ///< who published it, or what it is made of
  Orders (*orders)(const PipelineShape&);  ///< throws infeasible if the shape has no such schedule
  bool synchronous = true;  ///< one update per stage, at the end of the step: its gradients
                            ///< equal the gradients of the serial model
  bool branches = false;    ///< for a model of two branches with a joint loss, not for a chain
  ShapeOption heeds = ShapeOption::none;  ///< the further options of the shape that it uses
  /// The closed form of the bubble ratio, or nullptr if there is none; see bubble_ratio().
  std::optional<double> (*bubble)(const PipelineShape&, double forward, double backward_input,
                                  double backward_weight) = nullptr;

  /// Returns true if the schedule uses any of `options`.
  [[nodiscard]] constexpr bool uses(ShapeOption options) const {
    return (static_cast<unsigned>(heeds) & static_cast<unsigned>(options)) != 0;
  }
};

/// Returns all schedules of the catalogue, in the order in which they are listed to users.
[[nodiscard]] std::span<const NamedSchedule> catalogue();

/// Returns the schedule called `name`.
/// @throws contract_error if there is none. The error lists all schedules. It suggests the nearest
///         name, also if `name` is that of a C++ function.
[[nodiscard]] const NamedSchedule& find_schedule(std::string_view name);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/catalogue.ipp>
#endif
