// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of block_datatype.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/block_datatype.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE BlockDatatype::BlockDatatype(const StridedBlock& block)
    : BlockDatatype() {  // which makes it one to be freed, whatever fails below
  constexpr const char* where = "heddle::BlockDatatype";
  const auto count_of = [&](std::uint64_t count) {
    expects(count <= std::numeric_limits<int>::max(), [&] {
      return ErrorInfo{where, "the block does not fit MPI's counts of type int",
                       text("the block is ", block),
                       "send the block in several messages, or pack it"};
    });
    return static_cast<int>(count);
  };
  check(MPI_Type_contiguous(count_of(block.run()), MPI_BYTE, &m_type), where);
  const std::span<const StridedBlock::Loop> loops = block.loops();
  for (std::size_t l = loops.size(); l-- > 0;) {
    BlockDatatype inside = std::move(*this);
    check(MPI_Type_create_hvector(count_of(loops[l].count), 1, loops[l].stride, inside.m_type,
                                  &m_type),
          where);
  }
  check(MPI_Type_commit(&m_type), where);
}

HEDDLE_FULL_INLINE BlockDatatype::BlockDatatype(const std::vector<StridedBlock>& blocks)
    : BlockDatatype(blocks.empty() ? StridedBlock() : blocks.front()) {
  expects(!blocks.empty(), [] {
    return ErrorInfo{"heddle::BlockDatatype", "a datatype needs a block", "0 blocks were given"};
  });
  if (blocks.size() == 1) return;
  std::vector<BlockDatatype> parts;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> places;
  for (const StridedBlock& block : blocks) {
    types.push_back(parts.emplace_back(block).get());
    places.push_back(block.start() - blocks.front().start());
  }
  const std::vector<int> once(blocks.size(), 1);
  BlockDatatype all;
  check(MPI_Type_create_struct(static_cast<int>(blocks.size()), once.data(), places.data(),
                               types.data(), &all.m_type),
        "heddle::BlockDatatype");
  check(MPI_Type_commit(&all.m_type), "heddle::BlockDatatype");
  *this = std::move(all);
}

HEDDLE_FULL_INLINE BlockDatatype::~BlockDatatype() {
  if (m_type != MPI_DATATYPE_NULL && impl::mpi_is_up()) MPI_Type_free(&m_type);
}

}  // namespace heddle::inline v0
