// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedBlock: which bytes of memory, in which order: runs of bytes in nested loops. For packing,
/// and for whoever asks whether two descriptions are of the same bytes.

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
[[nodiscard]] Complaint too_far(std::string why);
/// Returns the same error for the product of `a` and `b`.
[[nodiscard]] Complaint too_far(std::int64_t a, std::int64_t b);
[[nodiscard]] Complaint too_far(std::int64_t a, std::uint64_t b);
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

/// What repeats what is inside of it.
struct StridedLoop {
  std::uint64_t count = 1;  ///< times
  std::int64_t stride = 0;  ///< bytes from one to the next, of either sign
  friend bool operator==(const StridedLoop&, const StridedLoop&) = default;
};

/// A sequence of bytes in memory, as offsets from an address: run() bytes from start() on, for
/// every turn of loops(). Made from a contiguous one by shifted() and repeated():
///
///     StridedBlock(8).repeated(256, 2048).repeated(256, 524288)  // the k-face of doubles 256^3
///
/// It is always in the one form that has the longest run and the fewest loops, so that two blocks
/// are equal just when they are the same bytes in the same order. (The canonical form of TEMPI,
/// Pearson et al., HPDC 2021, but for the order, which stays: MPI packs by it.) A loop of one turn
/// leaves none; one that goes on where the loop or the run inside of it ends makes that longer.
/// Each of these rules takes a loop away, and what is inside is in that form before: no rule is
/// tried twice.
class StridedBlock {
 public:
  /// No bytes.
  StridedBlock() = default;
  /// So many bytes, one after the other.
  explicit StridedBlock(Bytes run) : m_run(run) {}

  /// The same, so many bytes further on.
  [[nodiscard]] StridedBlock shifted(std::int64_t bytes) const;

  /// `count` of them, each `stride` bytes after the one before it. @throws contract_error where
  /// offsets do not fit in 64 bits.
  [[nodiscard]] StridedBlock repeated(std::uint64_t count, std::int64_t stride) const;

  /// Offset of the first byte.
  [[nodiscard]] std::int64_t start() const noexcept { return m_start; }
  /// Bytes one after the other; 0: there are no bytes at all.
  [[nodiscard]] Bytes run() const noexcept { return m_run; }
  /// The first one is the outermost.
  [[nodiscard]] std::span<const StridedLoop> loops() const noexcept { return m_loops; }
  /// Whether all bytes follow one another.
  [[nodiscard]] bool contiguous() const noexcept { return m_loops.empty(); }
  /// All of its bytes; those that it has twice count twice.
  [[nodiscard]] Bytes bytes() const {
    std::int64_t bytes = static_cast<std::int64_t>(m_run);
    for (const StridedLoop& loop : m_loops) bytes = impl::offset_product(bytes, loop.count);
    return static_cast<Bytes>(bytes);
  }

  /// A range of offsets.
  struct Bounds {
    std::int64_t begin = 0;  ///< of the lowest byte
    std::int64_t end = 0;    ///< of the one after the highest
    friend bool operator==(const Bounds&, const Bounds&) = default;
  };
  /// Where in memory it lies.
  [[nodiscard]] Bounds bounds() const;

  /// Parts that follow one another, at most so many, as even as the outermost loop allows, or the
  /// run where there is none.
  [[nodiscard]] std::vector<StridedBlock> split(std::size_t parts) const;

  /// The widest word of 1, 2, 4, 8 or 16 bytes of which runs and strides are multiples, and the
  /// start: what one instruction may copy, where the address is aligned likewise.
  [[nodiscard]] std::size_t word() const noexcept {
    auto all = static_cast<std::uint64_t>(m_start) | m_run | 16;
    for (const StridedLoop& loop : m_loops) all |= static_cast<std::uint64_t>(loop.stride);
    return all & -all;
  }

  /// Calls `visit(offset)` for every run, in order.
  template <std::invocable<std::int64_t> Visit>
  void for_each_run(Visit&& visit) const {
    if (m_run != 0) runs(0, m_start, visit);
  }

  friend bool operator==(const StridedBlock&, const StridedBlock&) = default;

  /// As in "8 B of 256 x 524288, 256 x 2048 at 16".
  friend std::ostream& operator<<(std::ostream& out, const StridedBlock& block);

 private:
  template <class Visit>
  void runs(std::size_t depth, std::int64_t offset, Visit& visit) const {
    if (depth == m_loops.size()) {
      visit(offset);
      return;
    }
    const StridedLoop& loop = m_loops[depth];
    for (std::uint64_t turn = 0; turn < loop.count; ++turn, offset += loop.stride)
      runs(depth + 1, offset, visit);
  }

  std::int64_t m_start = 0;
  Bytes m_run = 0;
  std::vector<StridedLoop> m_loops;
};

}  // namespace heddle::inline v0

namespace std {  // `struct std::hash<...>` says the same, but doxygen does not find its scope

/// Equal blocks have equal hashes.
template <>
struct hash<heddle::StridedBlock> {
  /// Of the start, the run and the loops.
  std::size_t operator()(const heddle::StridedBlock& block) const noexcept {
    std::uint64_t mixed = 0;
    const auto mix = [&](std::uint64_t value) {  // of Fibonacci hashing: 2^64 / golden ratio
      mixed = (mixed ^ value) * 0x9e3779b97f4a7c15u;
      mixed ^= mixed >> 32;
    };
    mix(static_cast<std::uint64_t>(block.start()));
    mix(block.run());
    for (const heddle::StridedLoop& loop : block.loops()) {
      mix(loop.count);
      mix(static_cast<std::uint64_t>(loop.stride));
    }
    return static_cast<std::size_t>(mixed);
  }
};

}  // namespace std

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/strided_block.ipp>
#endif
