// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockDatatype: the MPI datatype of StridedBlocks, so that the MPI library gathers their bytes.

#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/core/linkage.hpp>
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
  explicit BlockDatatype(const StridedBlock& block);
  /// Constructs the datatype of at least one consecutive block. One item of it, at `base` plus the
  /// start of the first block, covers the bytes of all blocks in order. Throws the same errors,
  /// and contract_error if there is no block.
  explicit BlockDatatype(const std::vector<StridedBlock>& blocks);
  /// Moves the datatype. `other` is left null.
  BlockDatatype(BlockDatatype&& other) noexcept
      : m_type(std::exchange(other.m_type, MPI_DATATYPE_NULL)) {}
  /// Swaps the two datatypes.
  BlockDatatype& operator=(BlockDatatype&& other) noexcept {
    std::swap(m_type, other.m_type);
    return *this;
  }
  ~BlockDatatype();

  /// Returns the handle for MPI calls. This object keeps ownership.
  [[nodiscard]] MPI_Datatype get() const noexcept { return m_type; }

 private:
  MPI_Datatype m_type = MPI_DATATYPE_NULL;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/block_datatype.ipp>
#endif
