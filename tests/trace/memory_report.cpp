// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <limits>
#include <sstream>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/internal/number.hpp>
#include <heddle/trace/memory_report.hpp>

#include "support/complaint.hpp"

namespace test_memory_report {

using namespace heddle;

TEST_CASE("numbers of bytes have units") {
  CHECK(trace::impl::bytes_text(0) == "0 B");
  CHECK(trace::impl::bytes_text(999) == "999 B");
  CHECK(trace::impl::bytes_text(1000) == "1 kB");
  CHECK(trace::impl::bytes_text(12345) == "12.35 kB");  // 12.345 is a hair above in binary
  CHECK(trace::impl::bytes_text(999'949) == "999.9 kB");
  CHECK(trace::impl::bytes_text(999'950) == "1 MB");
  CHECK(trace::impl::bytes_text(1'500'000) == "1.5 MB");
  CHECK(trace::impl::bytes_text(std::numeric_limits<Bytes>::max()) == "18446744 TB");
}

TEST_CASE("the memory report has what is held, predicted and measured, and what is allocated") {
  const Schedule schedule =
      schedule::one_f_one_b({.ranks = 2,
                             .microbatches = 3,
                             .sizes = {.activation = 10, .saved = 1000, .parameters = 500}});
  const Timeline simulated = simulate(schedule, {.forward = 1, .backward = 2});
  const Timeline measured = simulate(schedule, {.forward = 1, .backward = 2, .latency = 5});
  std::ostringstream out;
  out << trace::memory_report(simulated, measured, {2520, 1530});
  // Rank 0 at its second backward: two saved, weights and gradients, the gradient that came back.
  // With latency the next one is there already. Rank 1: one saved, weights and gradients, its
  // input and that one's gradient, and the next input.
  CHECK(out.str() ==
        "most memory of 1F1B P=2 M=3:\n"
        "                      activations         weights             all\n"
        "rank 0  simulated         2: 2 kB        1: 500 B         3.01 kB\n"
        "        measured          2: 2 kB        1: 500 B         3.02 kB\n"
        "        allocated                                         2.52 kB\n"
        "rank 1  simulated         1: 1 kB        1: 500 B         2.03 kB\n"
        "        measured          1: 1 kB        1: 500 B         2.03 kB\n"
        "        allocated                                         1.53 kB\n");
  const std::string alone = to_string(trace::memory_report(simulated));
  CHECK(alone.find("measured") == std::string::npos);
  CHECK(alone.find("allocated") == std::string::npos);

  const std::string why = test::message_of<contract_error>(
      [&] { (void)trace::memory_report(simulated, measured, {1}); });
  CHECK(why.find("`allocated` must be empty or have one number of bytes per rank") !=
        std::string::npos);
  CHECK(why.find("1 numbers, 2 ranks") != std::string::npos);
}

TEST_CASE("odd timelines have memory reports") {
  CHECK(trace::memory_report(Timeline{}).simulated->empty());
  CHECK(to_string(trace::MemoryReport{}) ==
        "most memory:\n                      activations         weights             all\n");
  const Schedule one = schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  CHECK(schedule::peak(trace::memory_report(simulate(one, {})).simulated->at(0).activations) ==
        Footprint{1, 0});
  Timeline bad = simulate(one, {.forward = 1});
  bad.spans()[0].end = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(trace::memory_report(bad), contract_error);
}

}  // namespace test_memory_report
