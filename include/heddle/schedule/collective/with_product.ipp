// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of with_product.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/with_product.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Schedule with_product(Collective collective, Algorithm algorithm,
                                    const CollectiveOptions& options, Bytes row) {
  constexpr const char* where = "heddle::schedule::with_product";
  const bool merges =
      collective == Collective::reduce_scatter || collective == Collective::all_reduce;
  const bool exchanges = collective == Collective::all_to_all;
  if (!merges && !exchanges && collective != Collective::all_gather)
    throw infeasible({where, text("no product can be combined with ", collective),
                      "it does not move data of all ranks to every rank",
                      "use reduce_scatter, all_reduce, all_gather or all_to_all"});
  expects(!options.apart, [&] {
    return ErrorInfo{where, "an all_gather with a product must work in place",
                     "CollectiveOptions::apart is set", "leave out CollectiveOptions::apart"};
  });
  const Bytes element = options.element == 0 ? size_of(options.type) : options.element;
  expects(row > 0 && row % size_of(options.type) == 0, [&] {
    return ErrorInfo{where, "a row must be whole elements",
                     text(row, " bytes, elements of ", size_of(options.type))};
  });
  const Schedule list = schedule::collective(collective, algorithm, options);
  Builder builder = Builder::like(list, [](const Buffer& buffer) { return buffer; });
  const auto ranks = static_cast<std::size_t>(options.ranks);
  std::vector<Use> near,
      far;  // the product's uses of the collective's buffers, and of the operand or result
  const LabelId label = builder.label(merges ? "operand" : "result");
  for (std::size_t r = 0; r < ranks; ++r) {
    const BufferId id{exchanges ? ranks + r : r};
    Buffer buffer = list[id];
    const std::uint32_t parts = buffer.parts;
    near.push_back(use(merges ? Access::write : Access::read, id, 0, parts));
    std::vector<Bytes> ends;
    for (std::uint32_t part = 1; part <= parts; ++part)
      ends.push_back(part_offset(buffer, part) / element * row);
    buffer.label = label;
    buffer.bytes = ends.back();
    buffer.ends = std::make_shared<const std::vector<Bytes>>(std::move(ends));
    far.push_back(use(merges ? Access::read : Access::write, builder.add_buffer(buffer), 0, parts));
  }
  const auto multiply = [&] {
    for (std::size_t r = 0; r < ranks; ++r) {
      const Use& from = merges ? far[r] : near[r];
      const Use& to = merges ? near[r] : far[r];
      builder.add({.kind = Kind::forward, .queue = builder.local(Rank{r})}, {from, to});
    }
  };
  if (merges) multiply();
  for (std::size_t i = 0; i < list.size(); ++i)
    builder.add(list, ActionId{i}, list.uses(ActionId{i}));
  if (!merges) multiply();
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
