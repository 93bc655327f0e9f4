// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure_collectives.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/collective/impl/timed_calls.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/measure_collectives.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::vector<plan::CollectiveChoice> shortlist(
    const std::vector<plan::CollectivePrediction>& all, std::size_t count) {
  std::vector<plan::CollectiveChoice> flat, shared, nested;
  for (const auto& [choice, time] : all) {
    const auto same =
        std::ranges::count(flat, choice.algorithm, &plan::CollectiveChoice::algorithm);
    if (choice.shared || !choice.levels.empty()) {
      auto& others = choice.shared ? shared : nested;
      if (others.size() < 2) others.push_back(choice);
    } else if (flat.size() < count && same < 2) {
      flat.push_back(choice);
    }
  }
  flat.insert(flat.end(), shared.begin(), shared.end());
  flat.insert(flat.end(), nested.begin(), nested.end());
  return flat;
}

// Returns what of `options` must be equal on all ranks.
inline impl::CollectiveCall call_to_measure(const char* where,
                                            const CollectiveMeasureOptions& options) {
  const LinkOptions& links = options.links;
  std::string names = printable(links.name);
  for (const std::string& name : links.names) names += ", " + printable(name);
  return {where,
          {{"collectives", listed(options.collectives)},
           {"sizes", listed(options.sizes)},
           {"candidates", text(options.candidates)},
           {"budget", text(options.budget)},
           {"budget of a link", text(links.budget)},
           {"piece", text(links.piece)},
           {"largest burst", text(links.largest)},
           {"bursts", text(links.bursts)},
           {"names of devices", std::move(names)}}};
}

HEDDLE_FULL_INLINE plan::CostTable measure_collectives(const Communicator& comm,
                                                       const CollectiveMeasureOptions& options,
                                                       const TimedInstances& by) {
  using schedule::Collective;
  const auto ranks = static_cast<Bytes>(comm.size());
  constexpr const char* where = "heddle::measure_collectives";
  const auto check = [&] {
    for (std::size_t c = 0; c < options.collectives.size(); ++c)
      expect_enumerator(where, text("collectives[", c, "]").c_str(), options.collectives[c],
                        Collective::exclusive_scan);
    for (std::size_t s = 0; s < options.sizes.size(); ++s) {
      const Bytes bytes = options.sizes[s];
      expects(
          bytes % sizeof(float) == 0 && fits_int(bytes) && fits_int(bytes + ranks * sizeof(float)),
          [&] {
            return ErrorInfo{where,
                             "a size must be a multiple of 4 bytes (a float) and below 2^31 bytes",
                             text("sizes[", s, "] = ", bytes)};
          });
    }
    expects(options.budget >= 0, [&] {
      return ErrorInfo{where, "the budget must be a time of at least 0",
                       text("budget = ", options.budget, " s")};
    });
    expect_valid(options.links, where);
  };
  check_together(
      comm, where, check, [&] { return call_to_measure(where, options); },
      ContractLevel::communication);
  const Communicator own(comm.get());  // what it keeps for the calls ends with it
  MpiTransport transport(own.get());
  const auto table = std::make_shared<plan::CostTable>(measure_links(transport, options.links));
  // Of memory that the host does not reach, nothing is read in place.
  std::vector<std::uint32_t> domains;
  if (by.moves.on_host()) domains = SharedTransport(own.get()).domains();
  for (const Collective collective : options.collectives) {
    const std::vector<Bytes> none{0};
    const std::vector<Bytes>& sizes = collective == Collective::barrier ? none : options.sizes;
    for (const Bytes bytes : sizes) {
      const schedule::CollectiveOptions size{
          .ranks = comm.size(), .bytes = bytes, .type = Scalar::f32};
      std::vector<plan::CollectiveChoice> choices{{.library = true}};
      if (comm.size() > 1) {
        const auto all = plan::predict(collective, size, table->machine(), domains);
        if (all.front().time > options.budget && bytes != sizes.front()) continue;
        const auto best = shortlist(all, options.candidates);
        choices.insert(choices.end(), best.begin(), best.end());
      }
      const TimedCalls timed(by, collective, bytes, own, table, options.links.wait.watchdog);
      std::vector<std::function<void()>> calls;
      for (const plan::CollectiveChoice& choice : choices) calls.push_back(timed(choice));
      const std::vector<Seconds> times = time_in_turns(calls, options.budget, own);
      for (std::size_t c = 0; c < choices.size(); ++c)
        for (const plan::CollectiveChoice& same : plan::same_at(collective, choices[c], size))
          table->set(collective, bytes, same, times[c]);
    }
  }
  return *table;
}

}  // namespace heddle::inline v0::impl
