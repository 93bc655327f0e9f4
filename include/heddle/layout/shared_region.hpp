// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedRegion: the elements that two arrays of one tensor have in common, and their bytes in each
/// array. A rank sends these bytes from one array, and another rank stores them in the other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A run of `size` common indices: positions [a, a + size) in one set, [b, b + size) in another.
struct SharedRun {
  std::int64_t a = 0;     ///< the first position in the first set
  std::int64_t b = 0;     ///< the first position in the second set
  std::int64_t size = 0;  ///< number of indices
};

/// Returns the common indices of two sets in ascending order, as the longest runs possible.
[[nodiscard]] std::vector<SharedRun> shared_runs(const IndexSet& a, const IndexSet& b);

}  // namespace impl

/// The elements that two arrays have in common: a list of runs of indices for each dimension.
class SharedRegion {
 public:
  /// The shape of a dense array, the last dimension fastest, with room around the elements that it
  /// holds.
  struct Array {
    std::vector<std::int64_t> extents;  ///< extent of each dimension, with the halo
    std::vector<std::int64_t> first;    ///< position of the first index of each dimension

    /// Number of elements.
    [[nodiscard]] std::int64_t elements() const noexcept {
      std::int64_t product = 1;
      for (const std::int64_t extent : extents) product *= extent;
      return product;
    }
    /// Size of the array in bytes, for elements of `element` bytes.
    /// @throws contract_error if an extent is negative, or if the size does not fit in 63 bits.
    [[nodiscard]] Bytes bytes(Bytes element) const;
  };

  /// One of the two arrays.
  enum class Side : std::uint8_t {
    a,  ///< the array of the first set
    b   ///< the array of the second set
  };

  /// Constructs the region of these runs. It is empty if a dimension has no runs.
  /// @throws contract_error if a run has no index.
  explicit SharedRegion(std::vector<std::vector<impl::SharedRun>> runs);
  /// Constructs the region of the common indices of `a` and `b`, which have one set for each
  /// dimension.
  /// @throws contract_error if they differ in the number of dimensions.
  SharedRegion(std::span<const IndexSet> a, std::span<const IndexSet> b);

  /// Number of elements.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (std::size_t dim = 0; dim < m_runs.size(); ++dim) product *= size(dim);
    return product;
  }

  /// Returns part `which` of `parts` parts. It divides the outermost dimension with at least
  /// `parts` indices, or else the longest dimension, as evenly as possible. Some parts may be
  /// empty. The one element of a region without dimensions is in every part.
  /// @throws contract_error if there is no such part.
  [[nodiscard]] SharedRegion part(std::int64_t which, std::int64_t parts) const;

  /// Returns the bytes of the region in the array of one side, for elements of `element` bytes, as
  /// consecutive blocks. The blocks of both sides list the elements in the same order.
  /// @throws contract_error if the array has other dimensions, or if a run lies outside of it.
  [[nodiscard]] std::vector<StridedBlock> blocks(Side side, const Array& array,
                                                 Bytes element) const;

 private:
  /// Runs of equal size, at equal distances in both sets.
  struct Stripe {
    impl::SharedRun run;
    std::int64_t count = 1;
    impl::SharedRun step = {};
  };

  /// Number of common indices of a dimension.
  [[nodiscard]] std::int64_t size(std::size_t dim) const noexcept;

  /// Joins runs into as few stripes as a pass from left to right finds.
  [[nodiscard]] static std::vector<Stripe> joined(const std::vector<impl::SharedRun>& runs);

  /// Advances to the next choice of a stripe for each dimension, the last dimension fastest.
  /// Returns false after the last choice.
  [[nodiscard]] static bool next(std::vector<std::size_t>& chosen,
                                 const std::vector<std::vector<Stripe>>& stripes);

  std::vector<std::vector<impl::SharedRun>> m_runs;  ///< by dimension
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/shared_region.ipp>
#endif
