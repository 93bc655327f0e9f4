// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of island.hpp.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>
#include <heddle/systems/pathways/impl/gang_island.hpp>
#include <heddle/systems/pathways/island.hpp>
#include <heddle/systems/pathways/island_client.hpp>
#include <heddle/systems/pathways/island_options.hpp>

namespace heddle::inline v0::systems {

HEDDLE_FULL_INLINE Island::Island(const DeviceMesh& mesh, IslandOptions options)
    : m_island(std::make_unique<impl::GangIsland>(mesh.all(), std::move(options))) {}

HEDDLE_FULL_INLINE void Island::serve(std::vector<IslandClientSpec> clients) {
  std::vector<impl::GangClientBody> bodies;
  for (IslandClientSpec& spec : clients) {
    impl::GangClientBody& body = bodies.emplace_back();
    body.name = std::move(spec.name);
    body.weight = spec.weight;
    if (spec.run)  // without a function, all ranks learn of it when they exchange their clients
      body.run = [this, run = std::move(spec.run)](std::shared_ptr<impl::GangDraft> draft) {
        IslandClient client(*m_island, std::move(draft));
        run(client);
      };
  }
  m_island->serve(std::move(bodies));
}

HEDDLE_FULL_INLINE void Island::serve(std::function<void(IslandClient&)> client) {
  serve(std::vector<IslandClientSpec>{{.run = std::move(client)}});
}

HEDDLE_FULL_INLINE void Island::check_layouts(const std::string& name, std::size_t arguments,
                                              std::size_t layouts) {
  expects(layouts == arguments, [&] {
    return ErrorInfo{"heddle::systems::Island::add", "there must be one layout for each argument",
                     text("'", name, "' has ", arguments, " arguments and ", layouts, " layouts")};
  });
}

HEDDLE_FULL_INLINE void Island::check_dims(const std::string& name, const Layout& layout,
                                           std::size_t dims) {
  expects(layout.dims() == dims, [&] {
    return ErrorInfo{"heddle::systems::Island::add", "a layout has another number of dimensions",
                     text("'", name, "': ", layout, ", expected ", dims)};
  });
}

}  // namespace heddle::inline v0::systems
