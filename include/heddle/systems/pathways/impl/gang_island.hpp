// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangIsland: the service loop of an Island.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>
#include <heddle/systems/pathways/island_options.hpp>

namespace heddle::inline v0::systems::impl {

/// A client that a rank brings to the service.
struct GangClientBody {
  std::string name;
  std::uint32_t weight;
  std::function<void(std::shared_ptr<GangDraft>)> run;
};

/// The functions of an island, and the loop that serves its clients.
class GangIsland {
 public:
  GangIsland(const Communicator& comm, IslandOptions options);
  GangIsland(const GangIsland&) = delete;
  GangIsland& operator=(const GangIsland&) = delete;
  ~GangIsland();

  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] const GangEntry& entry(std::uint32_t number) const;
  [[nodiscard]] const IslandCounts& counts() const noexcept;
  [[nodiscard]] Schedule record() const;
  /// Adds a function, and returns its number.
  std::uint32_t add(GangEntry entry);
  void serve(std::vector<GangClientBody> bodies);

 private:
  class State;
  std::unique_ptr<State> m_state;
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/pathways/impl/gang_island.ipp>
#endif
