// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <iostream>

#include <heddle/heddle_core.hpp>

#include "report.hpp"

namespace examples {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void MeasuredSteps::add(const heddle::Timeline& timeline) {
  makespan.push_back(timeline.makespan());
  bubble.push_back(timeline.bubble_ratio());
}

void print(const heddle::Schedule& schedule) { std::cout << heddle::to_grid(schedule); }

void report(const Settings& s, const heddle::Timeline& predicted, const heddle::Timeline& last,
            const MeasuredSteps& measured) {
  if (s.report && !measured.makespan.empty()) {
    const int chunks = s.schedule == "interleaved" ? s.stages_per_rank : 1;
    std::cout << heddle::trace::bubble_report(
        predicted, last, heddle::schedule::bubble_ratio(s.pipe, s.training.microbatches, chunks));
    const double step = median(measured.makespan);
    std::cout << "step: predicted " << predicted.makespan() * 1e3 << " ms, measured " << step * 1e3
              << " ms (median of " << measured.makespan.size() << "), off by "
              << std::abs(predicted.makespan() / step - 1) * 100 << " %\n"
              << "bubble: predicted " << predicted.bubble_ratio() << ", measured "
              << median(measured.bubble) << '\n';
  }
  if (!s.trace.empty()) {
    heddle::trace::write(s.trace, predicted, last);
    std::cout << "trace: " << s.trace << " (open it in ui.perfetto.dev)\n";
  }
}

}  // namespace examples
