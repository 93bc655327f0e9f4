// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// All-reduces chosen from a measured table against the MPI library's own, on emulated networks of
/// unequal links. HEDDLE_NETLAB names the script that makes them (it needs root); without it the
/// case is skipped. Every network is a job of its own: its first rank prints what it measured as
/// lines `sample WHAT VALUE`, of which this program makes the ratios.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <string>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include "../../network_job.hpp"
#include "../../support.hpp"
#include "ranks.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "collective/network";

/// A list is one value for each node.
struct Network {
  const char* name;
  int nodes;
  const char* rates;
  const char* delays;
};

/// 10 Mbit/s to 1 Gbit/s and 0.2 to 20 ms, unequal; and one of equal nodes where the star and the
/// ring change places.
constexpr Network networks[] = {
    {"each_slower", 4, "1gbit,1gbit,100mbit,10mbit", "200us,1ms,5ms,20ms"},
    {"one_far", 4, "1gbit,1gbit,1gbit,100mbit", "200us,200us,200us,5ms"},
    {"mild", 4, "1gbit,500mbit,200mbit,100mbit", "1ms,1ms,2ms,5ms"},
    {"two_sites", 8, "1gbit,1gbit,1gbit,1gbit,100mbit,100mbit,100mbit,100mbit",
     "200us,200us,200us,200us,5ms,5ms,5ms,5ms"},
    {"each_slower_8", 8, "1gbit,1gbit,1gbit,500mbit,200mbit,100mbit,50mbit,10mbit",
     "200us,200us,500us,1ms,2ms,5ms,10ms,20ms"},
    {"one_far_8", 8, "1gbit,1gbit,1gbit,1gbit,1gbit,1gbit,1gbit,100mbit",
     "200us,200us,200us,200us,200us,200us,200us,20ms"},
    {"equal", 4, "100mbit", "5ms"},
};

using bench::Samples;

/// The geometric mean of medians, with that of the ends of their spreads.
[[nodiscard]] bench::Summary geometric_mean(const Samples& samples) {
  const auto mean_of = [&](const char* what) {
    double sum = 0;
    for (const double value : samples.at(what)) sum += std::log(value);
    return std::exp(sum / static_cast<double>(samples.at(what).size()));
  };
  return {mean_of("ratio"),      mean_of("ratio_low"), mean_of("ratio_high"),
          mean_of("ratio_from"), mean_of("ratio_to"),  samples.at("ratio").size()};
}

/// The case with the least median.
[[nodiscard]] bench::Summary worst(const Samples& samples) {
  const auto& medians = samples.at("ratio");
  const auto at = static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
  return {medians[at],
          samples.at("ratio_low")[at],
          samples.at("ratio_high")[at],
          samples.at("ratio_from")[at],
          samples.at("ratio_to")[at],
          1};
}

void all_networks(const std::string& script) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  Samples samples;
  for (const Network& network : networks) {
    std::cout << "network " << network.name << ": " << network.nodes << " nodes of "
              << network.rates << ", " << network.delays << std::endl;
    bench::gather(
        name,
        hd::text("'", script, "' run -L hc", getpid() % 100000, " -n ", network.nodes, " -r ",
                 network.rates, " -d ", network.delays, " -- '", self, "' ", network.name),
        samples);
  }
  bench::print_ratio(name, "openmpi_geometric_mean", geometric_mean(samples));
  bench::print_ratio(name, "openmpi_worst", worst(samples));
  for (const std::string after : {"", "_after_barrier"}) {
    const std::vector<double>& wrong = samples.at("wrong" + after);
    bench::print_value(name, "star_or_ring_wrong" + after,
                       bench::summarise({std::accumulate(wrong.begin(), wrong.end(), 0.0)}),
                       "choices");
    bench::print_value(name, "predicted_error" + after,
                       bench::summarise(samples.at("error" + after)), "%");
  }
  bench::print_value(name, "table_error", bench::summarise(samples.at("table_error")), "%");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const script = std::getenv("HEDDLE_NETLAB");
  if (argc == 2) return network::run_rank(argc, argv, argv[1]);
  return bench::status_of(name, [&] {
    if (script != nullptr && std::filesystem::exists(script))
      all_networks(script);
    else
      std::cout << "skip " << name
                << " HEDDLE_NETLAB does not name the script of an emulated network\n";
  });
}
