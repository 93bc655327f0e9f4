// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of strided_exchange.hpp.

#include <algorithm>
#include <string>
#include <vector>

#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/strided_exchange.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE PathTable impl::paths_of(const StridedOptions& options,
                                            const BoxMemory& memory) {
  if (options.paths) {
    expect_usable(*options.paths, memory, "heddle::StridedExchange");
    return *options.paths;
  }
  if (memory.on_host) return PathTable(default_pack_gains());
  return PathTable(memory.mpi_takes_it ? StridedPath::direct : StridedPath::staged);
}

HEDDLE_FULL_INLINE Bytes impl::expect_same_sizes(const std::vector<StridedBlock>& sends,
                                                 const std::vector<StridedBlock>& receives) {
  const auto listed = [](const std::vector<StridedBlock>& blocks) {
    std::string list;
    for (const StridedBlock& block : blocks)
      list += text(list.empty() ? "" : " + ", block.bytes(), " B");
    return list.empty() ? "nothing" : list;
  };
  const bool same =
      std::ranges::equal(sends, receives, {}, &StridedBlock::bytes, &StridedBlock::bytes);
  expects(same, [&] {
    return ErrorInfo{
        "heddle::StridedExchange",
        "the boxes that this rank sends to itself differ in size from those that it receives",
        text("sends ", listed(sends), ", receives ", listed(receives))};
  });
  Bytes most = 0;
  for (const StridedBlock& block : sends) most = std::max(most, block.bytes());
  return most;
}

}  // namespace heddle::inline v0
