// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedBlock: a sequence of bytes in memory, described as runs of bytes in nested loops. Used
/// for packing, and to find out whether two descriptions mean the same bytes.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the error of an offset that does not fit in 64 bits: "offsets do not fit in 64 bits
/// (why)".
[[nodiscard]] ErrorInfo too_far(std::string why);
/// Returns the same error for the product of `a` and `b`.
[[nodiscard]] ErrorInfo too_far(std::int64_t a, std::int64_t b);
[[nodiscard]] ErrorInfo too_far(std::int64_t a, std::uint64_t b);
/// Returns a + b. @throws contract_error if it does not fit in 64 bits.
[[nodiscard]] std::int64_t offset_sum(std::int64_t a, std::int64_t b);
/// Returns b - a. @throws contract_error if it does not fit in 64 bits.
[[nodiscard]] std::int64_t offset_between(std::int64_t a, std::int64_t b);
/// Returns a * b. @throws contract_error if it does not fit in 64 bits.
template <std::integral Number>
[[nodiscard]] std::int64_t offset_product(std::int64_t a, Number b) {
  std::int64_t result = 0;
  expects(!__builtin_mul_overflow(a, b, &result), [&] {
    using Wide = std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>;
    return too_far(a, Wide{b});
  });
  return result;
}

}  // namespace impl

/// A sequence of bytes in memory, as offsets from an address: run() bytes from start() on, for
/// every turn of loops(). It is built from a contiguous block with shifted() and repeated():
///
///     StridedBlock(8).repeated(256, 2048).repeated(256, 524288)  // the k-face of doubles 256^3
///
/// A block is always in its canonical form, with the longest run and the fewest loops. Therefore
/// two blocks are equal if and only if they are the same bytes in the same order. (This is the
/// canonical form of TEMPI, Pearson et al., HPDC 2021, except that the order of bytes stays,
/// because MPI packs in that order.) A loop of one turn disappears. A loop that continues where the
/// inner loop or the run ends makes the inner one longer. Each rule removes a loop, and the inner
/// loops are already in canonical form, so no rule is tried twice.
class StridedBlock {
 public:
  /// A loop that repeats the inner loops and the run.
  struct Loop {
    std::uint64_t count = 1;  ///< number of turns
    std::int64_t stride = 0;  ///< bytes from one turn to the next, of either sign
    friend bool operator==(const Loop&, const Loop&) = default;
  };

  /// Constructs a block of no bytes.
  StridedBlock() = default;
  /// Constructs a contiguous block of `run` bytes.
  explicit StridedBlock(Bytes run) : m_run(run) {}

  /// Returns the block moved by `bytes` bytes. @throws contract_error if an offset does not fit in
  /// 64 bits.
  [[nodiscard]] StridedBlock shifted(std::int64_t bytes) const;

  /// Returns `count` copies of the block, each `stride` bytes after the one before it.
  /// @throws contract_error if an offset does not fit in 64 bits.
  [[nodiscard]] StridedBlock repeated(std::uint64_t count, std::int64_t stride) const;

  /// The offset of the first byte.
  [[nodiscard]] std::int64_t start() const noexcept { return m_start; }
  /// Number of bytes in a run. It is 0 if and only if the block has no bytes.
  [[nodiscard]] Bytes run() const noexcept { return m_run; }
  /// The loops, the outermost first.
  [[nodiscard]] std::span<const Loop> loops() const noexcept;
  /// Returns true if all bytes are adjacent, in ascending order.
  [[nodiscard]] bool contiguous() const noexcept { return m_loops.empty(); }
  /// Number of bytes of all runs. A byte that occurs twice counts twice.
  [[nodiscard]] Bytes bytes() const;

  /// A range of offsets.
  struct Bounds {
    std::int64_t begin = 0;  ///< offset of the lowest byte
    std::int64_t end = 0;    ///< one past the offset of the highest byte
    friend bool operator==(const Bounds&, const Bounds&) = default;
  };
  /// The range of offsets that holds the block.
  [[nodiscard]] Bounds bounds() const;

  /// Divides the block into at most `parts` consecutive parts. They are turns of the outermost
  /// loop, or pieces of the run if there is no loop, and as even as that allows.
  [[nodiscard]] std::vector<StridedBlock> split(std::size_t parts) const;

  /// The widest word of 1, 2, 4, 8 or 16 bytes that divides the run, the strides and the start. One
  /// instruction can copy such a word if the base address has the same alignment.
  [[nodiscard]] std::size_t word() const noexcept {
    auto all = static_cast<std::uint64_t>(m_start) | m_run | 16;
    for (const Loop& loop : m_loops) all |= static_cast<std::uint64_t>(loop.stride);
    return all & -all;
  }

  /// Calls `visit(offset)` for every run, in order.
  template <std::invocable<std::int64_t> Visit>
  void for_each_run(Visit&& visit) const {
    if (m_run != 0) runs(0, m_start, visit);
  }

  friend bool operator==(const StridedBlock&, const StridedBlock&) = default;

  /// Prints "8 B of 256 x 524288, 256 x 2048 at 16".
  friend std::ostream& operator<<(std::ostream& out, const StridedBlock& block);

 private:
  template <class Visit>
  void runs(std::size_t depth, std::int64_t offset, Visit& visit) const {
    if (depth == m_loops.size()) {
      visit(offset);
      return;
    }
    const Loop& loop = m_loops[depth];
    for (std::uint64_t turn = 0; turn < loop.count; ++turn, offset += loop.stride)
      runs(depth + 1, offset, visit);
  }

  std::int64_t m_start = 0;
  Bytes m_run = 0;
  std::vector<Loop> m_loops;
};

}  // namespace heddle::inline v0

namespace std {  // doxygen does not find the scope of `struct std::hash<...>`

/// Equal blocks have equal hashes.
template <>
struct hash<heddle::StridedBlock> {
  /// Hashes the start, the run and the loops.
  std::size_t operator()(const heddle::StridedBlock& block) const noexcept {
    std::uint64_t mixed = 0;
    const auto mix = [&](std::uint64_t value) {  // Fibonacci hashing: 2^64 / golden ratio
      mixed = (mixed ^ value) * 0x9e3779b97f4a7c15u;
      mixed ^= mixed >> 32;
    };
    mix(static_cast<std::uint64_t>(block.start()));
    mix(block.run());
    for (const heddle::StridedBlock::Loop& loop : block.loops()) {
      mix(loop.count);
      mix(static_cast<std::uint64_t>(loop.stride));
    }
    return static_cast<std::size_t>(mixed);
  }
};

}  // namespace std

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/strided_block.ipp>
#endif
