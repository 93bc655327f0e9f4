// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/heddle_core.hpp>
#include <heddle/trace.hpp>

#include "report.hpp"

namespace examples {

namespace {

/// The closed form, where it needs no more than the numbers of ranks, stages and microbatches.
std::optional<double> theory(const Settings& s) {
  const int chunks = s.schedule == "interleaved" ? s.stages_per_rank : 1;
  if (s.schedule != "gpipe" && s.schedule != "1f1b" && s.schedule != "interleaved") return {};
  return heddle::schedule::bubble_ratio(s.pipe, s.training.microbatches, chunks);
}

}  // namespace

void print(const heddle::Schedule& schedule) { std::cout << heddle::to_grid(schedule); }

void report(const Settings& s, const heddle::Timeline& predicted,
            std::vector<heddle::Timeline> measured, std::vector<heddle::Bytes> allocated) {
  const auto median = measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2);
  std::nth_element(measured.begin(), median, measured.end(),
                   [](const auto& a, const auto& b) { return a.makespan() < b.makespan(); });
  if (s.report) {
    std::cout << heddle::trace::bubble_report(predicted, *median, theory(s));
    std::cout << "step: predicted " << predicted.makespan() * 1e3 << " ms, measured "
              << median->makespan() * 1e3 << " ms (median of " << measured.size() << "), off by "
              << std::abs(predicted.makespan() / median->makespan() - 1) * 100
              << " % of the measured time\n"
              << "bubble: predicted " << predicted.bubble_ratio() << ", measured "
              << median->bubble_ratio() << '\n'
              << heddle::trace::memory_report(predicted, *median, std::move(allocated));
  }
  if (!s.trace.empty()) {
    heddle::trace::write(s.trace, predicted, *median);
    std::cout << "trace: " << s.trace
              << (s.trace.ends_with(".svg") ? "\n" : " (open it in ui.perfetto.dev)\n");
  }
}

}  // namespace examples
