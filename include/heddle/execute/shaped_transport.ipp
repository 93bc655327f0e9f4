// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shaped_transport.hpp.

#include <memory>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Shape Shape::of(Machine machine) {
  const auto all = std::make_shared<const Machine>(std::move(machine));
  const auto ports = [all](Rank rank, Seconds) {
    return all->levels()[0].ranks == 1 ? all->ports(0, +rank) : Ports{};
  };
  bool shares = false;
  const Rank end{all->ranks()};
  for (Rank from; from < end; ++from)
    for (Rank to; to < end; ++to) {
      const bool out = from != to && ports(from, 0).out != Ports::unlimited;
      const bool in = from != to && ports(to, 0).in != Ports::unlimited;
      shares = shares || out || in;
      const Machine::Route route = all->route(from, to, Lane{0});
      // The ranks' own ports are the first on the way out and the last on the way in.
      std::vector<SharedId> more(route.out.begin() + out, route.out.end());
      more.insert(more.end(), route.in.begin(), route.in.end() - in);
      expects(more.empty(), [&] {
        return ErrorInfo{"heddle::Shape::of",
                         "only links and ports of single ranks can be emulated",
                         text("messages from rank ", from, " to ", to, " share '",
                              all->shared()[+more[0]].name, "'")};
      });
    }
  Shape shape;
  shape.link = [all](Rank from, Rank to, Seconds) { return all->link(from, to); };
  if (shares) shape.ports = ports;
  return shape;
}

}  // namespace heddle::inline v0
