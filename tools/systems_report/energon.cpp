// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// EnergonAI's non-blocking pipeline against stages that wait until what they made is sent.

#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// The simulated throughput of a pipeline of 4 stages and 64 requests over the same that blocks. A
/// transfer takes `transfer` of the time of a stage.
double gain(double transfer) {
  const auto makespan = [transfer](int depth) {
    constexpr hd::Bytes bytes = 1024;
    return hd::simulate(
               hd::schedule::energon(
                   {.stages = 4, .requests = 64, .depth = depth, .sizes = {.activation = bytes}}),
               {.forward = 1, .per_byte = transfer / static_cast<double>(bytes)})
        .makespan();
  };
  return makespan(0) / makespan(1);
}

}  // namespace

std::vector<Comparison> energon() {
  return {
      {"simulated throughput over blocking sends, S=4, 64 requests, c = 0.25 t", "bound 1.25",
       hd::text(gain(0.25), 'x'), "at least 1.18", verdict(gain(0.25) >= 1.18)},
      {"the same with c = 0.1 t", "+10% scaling; bound 1.10", hd::text(gain(0.1), 'x'),
       "at least 1.08", verdict(gain(0.1) >= 1.08)},
      {"latency of tensor parallel inference, packed tokens, peer memory", "-37%", "", "none",
       "not reproducible: of EnergonAI the pipeline is here, not its tensor parallel layers, its "
       "packed tokens or its peer memory"},
  };
}

}  // namespace report
