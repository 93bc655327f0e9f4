// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// collective_in_segments(): one collective after the other on pieces of the data, so that what one
/// part of it leaves in the cache the next one finds there. For ranks that share memory.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/form.hpp>

namespace heddle::inline v0::schedule {

/// As collective(), on `segments` pieces of the data of every rank, one behind the other: all of an
/// all-reduce is done with the first piece before the second is begun. Of collectives whose ranks
/// have no block of their own: all_reduce, broadcast and reduce.
/// @throws infeasible for the others, or where the algorithm does not perform it; contract_error
/// for
///         no segments, and as collective().
[[nodiscard]] inline Schedule collective_in_segments(Collective collective, Algorithm algorithm,
                                                     const CollectiveOptions& options,
                                                     int segments) {
  constexpr const char* where = "heddle::schedule::collective_in_segments";
  expects(segments >= 1 && options.blocks.empty(), [&] {
    return Complaint{
        where, "the data is cut in at least one segment, evenly",
        text("segments = ", segments, ", blocks of ", options.blocks.size(), " ranks are given")};
  });
  if (collective != Collective::all_reduce && collective != Collective::broadcast &&
      collective != Collective::reduce)
    throw infeasible({where, text("no ", collective, " in segments"),
                      "each rank has a block of its own", "use chunks"});
  const CollectiveForm form{collective, algorithm, options.chunks, options.root, options.levels};
  const impl::BlockCut cut(options);
  const std::vector<Bytes> sizes = cut.evenly(options.bytes, static_cast<std::size_t>(segments));
  const std::uint32_t parts = form.parts(static_cast<std::size_t>(options.ranks));
  Builder builder(
      text(algorithm, ' ', collective, " P=", options.ranks, " C=", options.chunks, " x", segments),
      options.ranks);
  std::vector<Use> members;
  for (int r = 0; r < options.ranks; ++r) {
    Buffer buffer{
        .rank = Rank{r}, .label = builder.label("data"), .type = options.type, .transient = false};
    cut.size(buffer, sizes, parts);
    members.push_back(update(builder.add_buffer(buffer), 0, parts));
  }
  for (int segment = 0; segment < segments; ++segment) {
    form(builder, members, Stage{0});
    for (Use& member : members) member.first += parts;
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
