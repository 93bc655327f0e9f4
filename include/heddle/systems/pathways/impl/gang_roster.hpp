// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// agree_on_clients(): the ranks of an island tell each other their clients.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/systems/pathways/gang_order.hpp>
#include <heddle/systems/pathways/impl/gang_island.hpp>
#include <heddle/systems/pathways/impl/gang_program.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

/// A client in the exchange at the begin of the service.
struct GangClientRecord {
  std::uint64_t functions = 0;  ///< a hash of the registry
  std::uint32_t weight = 0;
  char name[43] = {};
  bool runs = false;  ///< whether the client has a function
};

/// Exchanges the clients of all ranks, and checks that the ranks have the same functions.
[[nodiscard]] inline std::vector<GangClientInfo> agree_on_clients(
    MpiTransport& transport, const std::vector<GangEntry>& entries,
    const std::vector<GangClientBody>& bodies, const ExecuteOptions& options) {
  std::string registry;
  for (const GangEntry& entry : entries) {
    registry += text(entry.name, ": ", entry.output, entry.communicates,
                     entry.measure ? " unsized" : "", '\n');
    for (const Layout& input : entry.inputs) registry += text(input, '\n');
  }
  std::vector<GangClientRecord> mine{{fnv1a(registry), 0, {}, false}};
  for (const GangClientBody& body : bodies) {
    GangClientRecord& record =
        mine.emplace_back(GangClientRecord{mine.front().functions, body.weight, {}, false});
    record.runs = body.run != nullptr;
    std::memcpy(record.name, body.name.data(), std::min(body.name.size(), sizeof record.name - 1));
  }
  const auto all = all_gather<GangClientRecord>(transport, mine, options);
  std::vector<GangClientInfo> clients;
  for (std::size_t r = 0; r < all.size(); ++r) {
    expects(all[r].front().functions == all.front().front().functions, [&] {
      return ErrorInfo{"heddle::systems::Island::serve", "the ranks have different functions",
                       text("rank ", r, " differs from rank 0"),
                       "add the same functions with the same layouts, in the same order"};
    });
    for (std::size_t c = 1; c < all[r].size(); ++c) {
      const GangClientRecord& record = all[r][c];
      expects(record.runs, [&] {
        return ErrorInfo{"heddle::systems::Island::serve", "a client has no function to run",
                         text("client '", record.name, "' of rank ", r),
                         "set IslandClientSpec::run"};
      });
      expects(record.weight >= 1 && record.weight <= GangOrder::most_weight, [&] {
        return ErrorInfo{
            "heddle::systems::Island::serve", "the weight of a client is out of range",
            text("client '", record.name, "' of rank ", r, " has the weight ", record.weight),
            text("choose a weight in 1 .. ", GangOrder::most_weight)};
      });
      clients.push_back({record.name, Rank{r}, record.weight});
    }
  }
  return clients;
}

}  // namespace heddle::inline v0::systems::impl
