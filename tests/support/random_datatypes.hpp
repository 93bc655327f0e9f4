// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random nests of MPI datatypes, with the bytes that the standard says they have.

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <mpi.h>

namespace heddle::test {

/// A datatype that is freed.
class Owned {
 public:
  explicit Owned(MPI_Datatype type) : m_type(type) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { MPI_Type_free(&m_type); }
  [[nodiscard]] MPI_Datatype get() const { return m_type; }

 private:
  MPI_Datatype m_type;
};

/// A datatype and, apart from it, the bytes that the standard says it has, in their order.
struct Mapped {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<std::int64_t> bytes = {};
  bool backwards = false;  ///< a stride below 0 is in it
};

/// Random nests of what loops can say.
class Nests {
 public:
  explicit Nests(unsigned seed) : m_random(seed) {}

  int draw(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(m_random);
  }

  Mapped operator()() {
    const std::array named = {MPI_CHAR, MPI_SHORT, MPI_FLOAT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX};
    constexpr std::array sizes = {1, 2, 4, 8, 16};
    const auto which = static_cast<std::size_t>(draw(0, 4));
    Mapped made;
    MPI_Type_dup(named[which], &made.type);
    for (int b = 0; b < sizes[which]; ++b) made.bytes.push_back(b);
    for (int depth = draw(0, 4); depth > 0; --depth) {
      const Owned inner(made.type);
      made = around(made);
    }
    return made;
  }

 private:
  Mapped around(const Mapped& inner) {
    Mapped made{.backwards = inner.backwards};
    MPI_Aint lower = 0, extent = 0;
    MPI_Type_get_extent(inner.type, &lower, &extent);
    const auto place = [&](std::int64_t offset) {
      for (const std::int64_t byte : inner.bytes) made.bytes.push_back(offset + byte);
    };
    const auto place_blocks = [&](int count, int length, std::int64_t begin, std::int64_t step) {
      for (int c = 0; c < count; ++c)
        for (int i = 0; i < length; ++i) place(begin + c * step + i * extent);
      made.backwards |= step < 0;
    };
    const int count = draw(0, 7) == 0 ? 0 : draw(1, 4);
    const int block = draw(0, 9) == 0 ? 0 : draw(1, 3);
    switch (draw(0, 8)) {
      case 0:
        MPI_Type_contiguous(count, inner.type, &made.type);
        place_blocks(count, 1, 0, extent);
        break;
      case 1: {
        const int stride = draw(-4, 6);
        MPI_Type_vector(count, block, stride, inner.type, &made.type);
        place_blocks(count, block, 0, stride * extent);
        break;
      }
      case 2: {
        const MPI_Aint stride = draw(-40, 80);
        MPI_Type_create_hvector(count, block, stride, inner.type, &made.type);
        place_blocks(count, block, 0, stride);
        break;
      }
      case 3:
        MPI_Type_create_resized(inner.type, draw(-8, 8), draw(0, 64), &made.type);
        place(0);
        break;
      case 4: {
        const int begin = draw(-5, 5), step = draw(-3, 6), blocks = draw(0, 3);
        const std::array begins = {begin, begin + step, begin + 2 * step};
        MPI_Type_create_indexed_block(blocks, block, begins.data(), inner.type, &made.type);
        place_blocks(blocks, block, begin * extent, step * extent);
        break;
      }
      case 5: {
        const MPI_Aint begin = draw(-50, 50), step = draw(-30, 60);
        const int blocks = draw(1, 3);
        const std::array begins = {begin, begin + step, begin + 2 * step};
        const std::array lengths = {block, block, block};
        MPI_Type_create_hindexed(blocks, lengths.data(), begins.data(), inner.type, &made.type);
        place_blocks(blocks, block, begin, step);
        break;
      }
      case 6: {
        const MPI_Aint begin = draw(-50, 50);
        MPI_Type_create_struct(1, &block, &begin, &inner.type, &made.type);
        place_blocks(1, block, begin, 0);
        break;
      }
      default: {
        const int dimensions = draw(1, 3);
        std::array<int, 3> sizes{1, 1, 1}, parts{1, 1, 1}, begins{0, 0, 0};
        for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
          sizes[d] = draw(1, 5);
          parts[d] = draw(1, sizes[d]);
          begins[d] = draw(0, sizes[d] - parts[d]);
        }
        const bool c = draw(0, 1) == 0;
        MPI_Type_create_subarray(dimensions, sizes.data(), parts.data(), begins.data(),
                                 c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner.type, &made.type);
        // From the slowest to the fastest index; what has fewer than three has others of size 1.
        const auto slow = static_cast<std::size_t>(c ? 0 : 2), fast = 2 - slow;
        for (int i = 0; i < parts[slow]; ++i)
          for (int j = 0; j < parts[1]; ++j)
            for (int k = 0; k < parts[fast]; ++k)
              place(extent * (((begins[slow] + i) * sizes[1] + begins[1] + j) * sizes[fast] +
                              begins[fast] + k));
      }
    }
    return made;
  }

  std::mt19937 m_random;
};

}  // namespace heddle::test
