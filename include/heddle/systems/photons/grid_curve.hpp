// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GridCurve: the Hilbert and the Morton curve through the cells of a grid in 2 or 3 dimensions.
/// Source of the Hilbert curve: J. Skilling, "Programming the Hilbert curve", 2004.

#include <array>
#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::systems {

/// The curves of GridCurve.
enum class CurveKind : std::uint8_t {
  hilbert,  ///< (Peano-Hilbert) consecutive cells share a face, so each piece is connected
  morton,   ///< (Z-order) keys are interleaved coordinates: cheaper, but the curve has jumps
};

/// A curve that passes once through each cell of a grid with 2^bits cells in each of `D`
/// dimensions. The key of a cell is its place on the curve, from 0. The cells with equal leading
/// D * k bits of their keys are a cube of side 2^(bits - k), for both curves. Such a cube is a node
/// of a quadtree or octree, see CurveTree.
template <std::size_t D>
requires(D == 2 || D == 3) class GridCurve {
 public:
  using Cell = std::array<std::uint32_t, D>;         ///< coordinates of a cell, each below side()
  static constexpr int max_bits = D == 2 ? 31 : 21;  ///< so that a key has at most 63 bits

  /// Constructs the curve of this kind through a grid of 2^`bits` cells in each dimension.
  /// @throws contract_error if `bits` is below 1 or above max_bits.
  constexpr GridCurve(CurveKind kind, int bits) : m_kind(kind), m_bits(bits) {
    expects(bits >= 1 && bits <= max_bits, [&] {
      return ErrorInfo{"heddle::systems::GridCurve",
                       "keys must have at least 1 and at most 63 bits",
                       text("bits = ", bits, " in ", D, " dimensions"),
                       text("take 1 to ", max_bits, " bits a dimension")};
    });
  }

  /// Returns the kind of the curve.
  [[nodiscard]] constexpr CurveKind kind() const noexcept { return m_kind; }
  /// Returns the number of bits of a coordinate.
  [[nodiscard]] constexpr int bits() const noexcept { return m_bits; }
  /// Returns the number of cells in each dimension.
  [[nodiscard]] constexpr std::uint32_t side() const noexcept { return std::uint32_t{1} << m_bits; }
  /// Returns the number of cells, which is one more than the largest key.
  [[nodiscard]] constexpr std::uint64_t size() const noexcept {
    return std::uint64_t{1} << (D * static_cast<std::size_t>(m_bits));
  }

  /// Returns the key of a cell. @throws contract_error if a coordinate is not below side().
  [[nodiscard]] constexpr std::uint64_t key(Cell cell) const {
    for (std::size_t d = 0; d < D; ++d)
      expects(cell[d] < side(), [&] {
        return ErrorInfo{"heddle::systems::GridCurve::key", "the cell is not in the grid",
                         text("coordinate ", d, " is ", cell[d], ", the grid has ", side(),
                              " cells in each dimension"),
                         "scale the coordinates, or construct the curve with more bits"};
      });
    if (m_kind == CurveKind::hilbert) to_transposed_key(cell);
    std::uint64_t key = 0;
    for (int bit = m_bits - 1; bit >= 0; --bit)
      for (std::size_t d = 0; d < D; ++d) key = key << 1 | (cell[d] >> bit & 1);
    return key;
  }

  /// Returns the cell with this key. @throws contract_error if `key` is not below size().
  [[nodiscard]] constexpr Cell cell(std::uint64_t key) const {
    expects(key < size(), [&] {
      return ErrorInfo{"heddle::systems::GridCurve::cell", "the curve has no such key",
                       text("key = ", key, ", the curve has ", size(), " cells")};
    });
    Cell cell{};
    for (int bit = 0; bit < m_bits; ++bit)
      for (std::size_t d = D; d-- > 0; key >>= 1)
        cell[d] |= static_cast<std::uint32_t>(key & 1) << bit;
    if (m_kind == CurveKind::hilbert) to_coordinates(cell);
    return cell;
  }

 private:
  /// Exchanges or inverts the bits of `x` below `bit`, as the subcube at this bit of coordinate `d`
  /// is turned.
  static constexpr void turn(Cell& x, std::uint32_t bit, std::size_t d) {
    const std::uint32_t below = bit - 1;
    if ((x[d] & bit) != 0) {
      x[0] ^= below;
    } else {
      const std::uint32_t differs = (x[0] ^ x[d]) & below;
      x[0] ^= differs;
      x[d] ^= differs;
    }
  }

  /// Replaces coordinates by the key, bit i of which is in x[i % D], counted from the highest bit.
  constexpr void to_transposed_key(Cell& x) const {
    const std::uint32_t top = side() >> 1;
    for (std::uint32_t bit = top; bit > 1; bit >>= 1)
      for (std::size_t d = 0; d < D; ++d) turn(x, bit, d);
    for (std::size_t d = 1; d < D; ++d) x[d] ^= x[d - 1];  // to the Gray code
    std::uint32_t flips = 0;
    for (std::uint32_t bit = top; bit > 1; bit >>= 1)
      if ((x[D - 1] & bit) != 0) flips ^= bit - 1;
    for (std::uint32_t& word : x) word ^= flips;
  }

  /// Undoes to_transposed_key().
  constexpr void to_coordinates(Cell& x) const {
    const std::uint32_t flips = x[D - 1] >> 1;
    for (std::size_t d = D - 1; d > 0; --d) x[d] ^= x[d - 1];
    x[0] ^= flips;
    for (std::uint32_t bit = 2; bit < side(); bit <<= 1)
      for (std::size_t d = D; d-- > 0;) turn(x, bit, d);
  }

  CurveKind m_kind;
  int m_bits;
};

}  // namespace heddle::inline v0::systems
