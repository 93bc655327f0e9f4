// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockDatatype: the MPI datatype of StridedBlocks, so that the MPI library gathers their bytes.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

/// A committed MPI datatype made of MPI_BYTEs. One item of it at `base + block.start()` covers the
/// bytes of the block, in order. The object can be moved, but not copied.
class BlockDatatype {
 public:
  /// Constructs a null datatype.
  BlockDatatype() = default;
  /// Constructs the datatype of `block`. @throws contract_error if the iterations of a loop or the
  /// bytes of a run do not fit in an int, communication_error if MPI reports an error.
  explicit BlockDatatype(const StridedBlock& block)
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
    const std::span<const StridedLoop> loops = block.loops();
    for (std::size_t l = loops.size(); l-- > 0;) {
      BlockDatatype inside = std::move(*this);
      check(MPI_Type_create_hvector(count_of(loops[l].count), 1, loops[l].stride, inside.m_type,
                                    &m_type),
            where);
    }
    check(MPI_Type_commit(&m_type), where);
  }
  /// Constructs the datatype of at least one consecutive block. One item of it, at `base` plus the
  /// start of the first block, covers the bytes of all blocks in order. @throws the same errors.
  explicit BlockDatatype(const std::vector<StridedBlock>& blocks) : BlockDatatype(blocks.front()) {
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
  /// Moves the datatype. `other` is left null.
  BlockDatatype(BlockDatatype&& other) noexcept
      : m_type(std::exchange(other.m_type, MPI_DATATYPE_NULL)) {}
  /// Swaps the two datatypes.
  BlockDatatype& operator=(BlockDatatype&& other) noexcept {
    std::swap(m_type, other.m_type);
    return *this;
  }
  ~BlockDatatype() {
    if (m_type != MPI_DATATYPE_NULL && impl::mpi_is_up()) MPI_Type_free(&m_type);
  }

  /// Returns the handle for MPI calls. This object keeps ownership.
  [[nodiscard]] MPI_Datatype get() const noexcept { return m_type; }

 private:
  MPI_Datatype m_type = MPI_DATATYPE_NULL;
};

}  // namespace heddle::inline v0
