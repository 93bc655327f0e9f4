// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The run times that the tool race reads.

#include <cmath>
#include <vector>

#include "../../tools/race/times.hpp"
#include "support.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepts([&] {
    const std::vector<double> times = tool::times_of(fuzz::text_of(data, size), "times");
    fuzz::check(!times.empty(), "there are no times");
    for (const double time : times)
      fuzz::check(std::isfinite(time) && time >= 0, "a time is no finite number of at least 0");
  });
  return 0;
}
