// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of strided_datatype.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/strided_datatype.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

namespace impl {

// One level of a datatype as MPI describes it, with the handles that MPI created for the
// description.
class DatatypeContents {
 public:
  explicit DatatypeContents(MPI_Datatype type) {
    Envelope envelope;
    call(envelope.read(type));
    m_combiner = envelope.combiner;
    m_readable = envelope.large == 0;
    // Other calls refuse large counts, and MPI's own has nothing to be asked for, or that need be.
    if (!m_readable || predefined(m_combiner)) return;
    m_integers.resize(static_cast<std::size_t>(envelope.integers));
    m_addresses.resize(static_cast<std::size_t>(envelope.addresses));
    m_types.resize(static_cast<std::size_t>(envelope.types), MPI_DATATYPE_NULL);
    call(PMPI_Type_get_contents(
        type, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
        static_cast<int>(envelope.types), m_integers.data(), m_addresses.data(), m_types.data()));
  }
  DatatypeContents(const DatatypeContents&) = delete;
  DatatypeContents& operator=(const DatatypeContents&) = delete;
  ~DatatypeContents() {
    for (MPI_Datatype& type : m_types) {
      Envelope envelope;
      if (envelope.read(type) == MPI_SUCCESS && !predefined(envelope.combiner))
        PMPI_Type_free(&type);
    }
  }

  // Returns false if the datatype was created with counts of type MPI_Count, which cannot be read.
  [[nodiscard]] bool readable() const noexcept { return m_readable; }
  [[nodiscard]] int combiner() const noexcept { return m_combiner; }
  // Returns all integers: the arguments of the combiner that are neither addresses nor types.
  [[nodiscard]] std::span<const int> integers() const noexcept { return m_integers; }
  [[nodiscard]] std::span<const MPI_Aint> addresses() const noexcept { return m_addresses; }
  [[nodiscard]] std::span<const MPI_Datatype> types() const noexcept { return m_types; }

  static void call(int code) { check(code, "heddle::strided_block_of"); }

 private:
  // The combiner of a datatype, and the number of its arguments of each kind.
  struct Envelope {
    MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
    int combiner = MPI_COMBINER_NAMED;

    [[nodiscard]] int read(MPI_Datatype type) noexcept {
#if MPI_VERSION >= 4  // whose plain call refuses what was made with large counts
      return PMPI_Type_get_envelope_c(type, &integers, &addresses, &large, &types, &combiner);
#else
      int some = 0, places = 0, inner = 0;
      const int code = PMPI_Type_get_envelope(type, &some, &places, &inner, &combiner);
      integers = some, addresses = places, types = inner;
      return code;
#endif
    }
  };
  // Returns true if the datatype is predefined, also by Fortran's kinds. Predefined datatypes are
  // not freed.
  [[nodiscard]] static bool predefined(int combiner) noexcept {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  }

  bool m_readable = true;
  int m_combiner = MPI_COMBINER_NAMED;
  std::vector<int> m_integers;
  std::vector<MPI_Aint> m_addresses;
  std::vector<MPI_Datatype> m_types;
};

// Returns `blocks` blocks of so many items each, if loops can describe them: all blocks must have
// equal lengths and equal distances. The first block begins `begins(0)` bytes after the base
// address.
template <class Lengths, class Begins>
[[nodiscard]] std::optional<StridedBlock> evenly(const StridedBlock& item, std::int64_t extent,
                                                 std::size_t blocks, Lengths&& lengths,
                                                 Begins&& begins) {
  if (blocks == 0) return StridedBlock();
  const std::int64_t stride = blocks > 1 ? offset_between(begins(0), begins(1)) : 0;
  for (std::size_t b = 1; b < blocks; ++b)
    if (lengths(b) != lengths(0) || offset_between(begins(b - 1), begins(b)) != stride)
      return std::nullopt;
  return item.repeated(static_cast<std::uint64_t>(lengths(0)), extent)
      .repeated(blocks, stride)
      .shifted(begins(0));
}

}  // namespace impl

HEDDLE_FULL_INLINE std::int64_t extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0, extent = 0;
  impl::DatatypeContents::call(PMPI_Type_get_extent(type, &lower, &extent));
  return extent;
}

HEDDLE_FULL_INLINE std::optional<StridedBlock> strided_block_of(MPI_Datatype type) {
  const impl::DatatypeContents contents(type);
  if (!contents.readable()) return std::nullopt;
  const auto integer = [&](std::size_t i) { return std::int64_t{contents.integers()[i]}; };
  const auto times = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };

  if (contents.types().empty()) {
    MPI_Count bytes = 0;
    impl::DatatypeContents::call(PMPI_Type_size_x(type, &bytes));
    if (bytes != extent_of(type)) return std::nullopt;
    return StridedBlock(static_cast<Bytes>(bytes));
  }
  for (const MPI_Datatype each : contents.types())
    if (each != contents.types()[0]) return std::nullopt;
  const std::optional<StridedBlock> item = strided_block_of(contents.types()[0]);
  if (!item) return std::nullopt;
  const std::int64_t extent = extent_of(contents.types()[0]);

  switch (contents.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return item;
    case MPI_COMBINER_CONTIGUOUS: return item->repeated(times(integer(0)), extent);
    case MPI_COMBINER_VECTOR:
      return item->repeated(times(integer(1)), extent)
          .repeated(times(integer(0)), impl::offset_product(extent, integer(2)));
    case MPI_COMBINER_HVECTOR:
      return item->repeated(times(integer(1)), extent)
          .repeated(times(integer(0)), contents.addresses()[0]);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED: {
      const auto blocks = times(integer(0));
      const bool in_bytes = contents.combiner() == MPI_COMBINER_HINDEXED;
      return impl::evenly(
          *item, extent, blocks, [&](std::size_t b) { return integer(1 + b); },
          [&](std::size_t b) {
            return in_bytes ? contents.addresses()[b]
                            : impl::offset_product(extent, integer(1 + blocks + b));
          });
    }
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const bool in_bytes = contents.combiner() == MPI_COMBINER_HINDEXED_BLOCK;
      return impl::evenly(
          *item, extent, times(integer(0)), [&](std::size_t) { return integer(1); },
          [&](std::size_t b) {
            return in_bytes ? contents.addresses()[b]
                            : impl::offset_product(extent, integer(2 + b));
          });
    }
    case MPI_COMBINER_STRUCT:
      return impl::evenly(
          *item, extent, times(integer(0)), [&](std::size_t b) { return integer(1 + b); },
          [&](std::size_t b) { return contents.addresses()[b]; });
    case MPI_COMBINER_SUBARRAY: {
      const auto dimensions = times(integer(0));
      const bool last_is_fastest = integer(1 + 3 * dimensions) == MPI_ORDER_C;
      StridedBlock block = *item;
      std::int64_t stride = extent;
      for (std::size_t d = 0; d < dimensions; ++d) {
        const std::size_t at = 1 + (last_is_fastest ? dimensions - 1 - d : d);
        block = block.repeated(times(integer(dimensions + at)), stride)
                    .shifted(impl::offset_product(stride, integer(2 * dimensions + at)));
        stride = impl::offset_product(stride, integer(at));
      }
      return block;
    }
    default: return std::nullopt;
  }
}

}  // namespace heddle::inline v0
