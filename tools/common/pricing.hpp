// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The prices of schedules, and what follows from them: the numbers that the program `schedule`
/// prints and the explorer shows.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/periodic.hpp>

namespace tool {

/// The times and sizes of one microbatch, for the share of the model that a rank has when each rank
/// has one. Schedules with different numbers of stages are then about the same model. If there are
/// several times of F, I or W, they are those of each stage as it is.
struct Prices {
  std::vector<double> forward = {1};
  std::vector<double> backward_input = {1};
  std::vector<double> backward_weight = {1};
  std::vector<double> backward = {0};  ///< of a whole backward; 0: as long as both halves
  double forward_backward = 0;         ///< of a fused pair; 0: as long as both
  double latency = 0;
  double bandwidth = 0;  ///< bytes per unit of time that a channel carries; 0: any number
  int depth = -1;        ///< results that may wait to be sent while their stage goes on; -1: all
  heddle::Bytes activation = 0;  ///< handed from stage to stage
  heddle::Bytes saved = 0;       ///< kept from forward to backward
  heddle::Bytes parameters = 0;  ///< weights

  /// Returns true if bytes are to be told.
  [[nodiscard]] bool sized() const { return activation + saved + parameters > 0; }
  /// Returns true if all stages of a schedule take equally long.
  [[nodiscard]] bool equal_stages() const {
    return forward.size() == 1 && backward_input.size() == 1 && backward_weight.size() == 1 &&
           backward.size() == 1;
  }
};

/// Returns what is wrong with the values of `prices` by themselves, or nothing. `what` and `fix` of
/// the result are set.
[[nodiscard]] std::optional<heddle::ErrorInfo> fault_of(const Prices& prices);
/// Returns what is wrong with the numbers of times for `orders`, or nothing. The text of a name is
/// `dashes` and the name.
[[nodiscard]] std::optional<heddle::ErrorInfo> fault_of(const Prices& prices,
                                                        const heddle::Orders& orders,
                                                        const std::string& dashes = "--");
/// The size of a schedule that has not been made.
struct Size {
  double actions = 0;  ///< at most, with the moves
  double bytes = 0;    ///< of memory to make and to price it, at most
};
/// Returns the size of a schedule of the catalogue. It makes a small schedule only.
[[nodiscard]] Size size_of(const heddle::schedule::NamedSchedule& entry,
                           const heddle::schedule::PipelineShape& shape);
/// Returns the orders of the fewest microbatches, at most those of `shape`, that the schedule can
/// have. They have its stages and fused pairs.
[[nodiscard]] heddle::Orders fewest_orders(const heddle::schedule::NamedSchedule& entry,
                                           heddle::schedule::PipelineShape shape);
/// Returns schedule::bubble_ratio(), the closed form of the bubble ratio, or nothing if there is
/// none for these prices. It does not count transfers.
[[nodiscard]] std::optional<double> closed_form(const heddle::schedule::NamedSchedule& entry,
                                                const heddle::schedule::PipelineShape& shape,
                                                const Prices& prices);
/// Returns the number of stages.
[[nodiscard]] int stage_count(const heddle::Orders& orders);
/// Returns true if the orders have fused pairs.
[[nodiscard]] bool has_pairs(const heddle::Orders& orders);

/// Orders with all that the tools tell about them.
struct Priced {
  heddle::Orders orders;
  heddle::Schedule schedule;
  heddle::Timeline timeline;
  int stages = 0;
  /// The live activations of every rank over time, in parts: those of single stages.
  std::vector<heddle::MemoryCurve<heddle::Seconds>> live = {};
  /// Most live activations of every rank, in those of a microbatch on the share of one rank.
  std::vector<double> activations = {};
  std::size_t messages = 0;  ///< between ranks
};

/// Returns what follows from the simulated `timeline` of `schedule`, whose orders are `orders`.
[[nodiscard]] Priced priced_timeline(heddle::Orders orders, heddle::Schedule schedule,
                                     heddle::Timeline timeline);
/// Returns the priced orders, for prices without a fault.
[[nodiscard]] Priced price(heddle::Orders orders, const Prices& prices);

/// The price of a schedule whose steady periods are skipped.
struct PeriodicPrice {
  heddle::PeriodicStep step;
  std::vector<double> activations;  ///< as those of Priced
};
/// Returns the price of a schedule of the catalogue without making all of it, for prices without a
/// fault.
[[nodiscard]] PeriodicPrice price_periodic(const heddle::schedule::NamedSchedule& entry,
                                           const heddle::schedule::PipelineShape& shape,
                                           const Prices& prices);

/// Returns the most bytes that any rank holds at any time.
[[nodiscard]] heddle::Bytes most_bytes(const heddle::Timeline& timeline);

/// Returns a number with all digits before the point and at most three behind it.
[[nodiscard]] std::string number(double value);
/// Returns a share in percent.
[[nodiscard]] std::string percent(double share);
/// Returns the values of all ranks, "4 3 2 1", or the range if they are many.
[[nodiscard]] std::string of_ranks(const std::vector<double>& values);

}  // namespace tool
