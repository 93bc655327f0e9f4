// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the commands are told: the shape of the schedules, and what things cost.

#include <span>
#include <string>
#include <vector>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

namespace tool {

/// Times and sizes are those of one microbatch for the share of the model that a rank has when each
/// has one, so that schedules with different numbers of stages are about the same model.
struct Settings {
  heddle::schedule::PipelineShape shape = {};
  double F = 1;
  double I = 1;
  double W = 1;
  double FB = 0;  ///< of a fused pair; 0: as long as both
  double latency = 0;
  heddle::Bytes activation = 0;  ///< handed from stage to stage
  heddle::Bytes saved = 0;       ///< kept from forward to backward
  bool old_dialect = false;
  bool replicas = false;
  bool transfers = false;
  std::string svg = {}, perfetto = {}, dot = {}, csv = {};
};

/// A command line: names, then options.
struct Arguments {
  std::vector<std::string> names = {};
  Settings settings = {};
  bool help = false;  ///< was asked for, and has been printed
};

/// Reads a command line with `least` to `most` names of a `what`.
/// @throws contract_error for anything else.
[[nodiscard]] Arguments read(std::span<char*> arguments, const char* what, std::size_t least,
                             std::size_t most);

/// Orders with all that the commands tell about them.
struct Priced {
  heddle::Orders orders;
  heddle::Schedule schedule;
  heddle::Timeline timeline;
  int stages = 0;
  /// Most live activations of every rank, in those of a microbatch on the share of one rank.
  std::vector<double> activations = {};
  std::size_t messages = 0;  ///< between ranks
};

[[nodiscard]] Priced price(heddle::Orders orders, const Settings& settings);

/// A number with at most three decimals.
[[nodiscard]] std::string number(double value);
/// A share in percent.
[[nodiscard]] std::string percent(double share);
/// Of all ranks, "4 3 2 1", or the range where they are many.
[[nodiscard]] std::string of_ranks(const std::vector<double>& values);

}  // namespace tool
