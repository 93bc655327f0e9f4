// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// TEMPI's canonical descriptions of strided bytes, and packing by them against the MPI library.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr int nests = 10000;

/// Random nests of loops, of which many come to the same bytes in the same order: how many of those
/// have another descriptor than the first that did.
int unequal_descriptors() {
  std::mt19937 random(12);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  std::map<std::vector<std::int64_t>, hd::StridedBlock> known;
  int unequal = 0;
  for (int nest = 0; nest < nests; ++nest) {
    hd::StridedBlock block(static_cast<hd::Bytes>(draw(1, 4)));
    for (int depth = draw(0, 4); depth > 0; --depth)
      block =
          block.shifted(draw(-3, 3)).repeated(static_cast<std::uint64_t>(draw(1, 3)), draw(-6, 12));
    std::vector<std::int64_t> bytes;
    block.for_each_run([&](std::int64_t offset) {
      for (hd::Bytes b = 0; b < block.run(); ++b)
        bytes.push_back(offset + static_cast<std::int64_t>(b));
    });
    unequal += known.try_emplace(std::move(bytes), block).first->second != block;
  }
  return unequal;
}

/// The median of the library's time over ours for the k-face of a cube of n^3 doubles.
struct Face {
  double pack;
  double unpack;
};
Face against_library(int n) {
  int up = 0;
  MPI_Initialized(&up);
  if (up == 0) MPI_Init(nullptr, nullptr);
  const std::array sizes{n, n, n}, parts{n, n, 1}, begins{0, 0, 1};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(3, sizes.data(), parts.data(), begins.data(), MPI_ORDER_C, MPI_DOUBLE,
                           &type);
  MPI_Type_commit(&type);
  const auto points = static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(n);
  const hd::StridedBlock block = hd::StridedBlock(8).repeated(points, 8 * n).shifted(8);
  std::vector<double> cube(points * static_cast<std::uint64_t>(n), 1.0), packed(points);
  auto* const from = reinterpret_cast<std::byte*>(cube.data());
  auto* const to = reinterpret_cast<std::byte*>(packed.data());
  const auto bytes = static_cast<int>(points * sizeof(double));
  const auto ratio = [&](auto&& theirs, auto&& ours) {
    std::vector<double> ratios;
    for (int round = 0; round < 31; ++round) {
      std::array<double, 2> seconds{};
      for (const int i : {0, 1}) {
        const auto who = static_cast<std::size_t>((i + round) % 2);
        const auto start = std::chrono::steady_clock::now();
        who == 0 ? theirs() : ours();
        seconds[who] =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      }
      if (round > 0) ratios.push_back(seconds[0] / seconds[1]);
    }
    std::ranges::sort(ratios);
    return ratios[ratios.size() / 2];
  };
  int position = 0;
  const Face face{
      ratio([&] { MPI_Pack(from, 1, type, to, bytes, &(position = 0), MPI_COMM_SELF); },
            [&] { hd::pack(block, from, to); }),
      ratio([&] { MPI_Unpack(to, bytes, &(position = 0), from, 1, type, MPI_COMM_SELF); },
            [&] { hd::unpack(block, to, from); })};
  MPI_Type_free(&type);
  if (up == 0) MPI_Finalize();
  return face;
}

}  // namespace

std::vector<Comparison> tempi() {
#ifdef OPEN_MPI
  constexpr double pack_bar = 1.4, unpack_bar = 1.5;
#else
  constexpr double pack_bar = 1.3, unpack_bar = 1.3;
#endif
  const int unequal = unequal_descriptors();
  const Face face = against_library(256);
  return {
      {hd::text("random nests of loops with the same bytes in the same order, of ", nests,
                ", that have different descriptors"),
       "", hd::text(unequal), "0", verdict(unequal == 0)},
      {"time of MPI_Pack over ours, host memory, the face of 256^3 doubles whose points lie apart",
       "", hd::text(face.pack), hd::text("at least ", pack_bar), verdict(face.pack >= pack_bar)},
      {"the same of MPI_Unpack", "", hd::text(face.unpack), hd::text("at least ", unpack_bar),
       verdict(face.unpack >= unpack_bar)},
      {"packing on a device; a halo of 3072 processes", "up to 242,000x; 917x", "", "none",
       "not reproducible: they measure how bad one MPI library's path for datatypes in memory of "
       "GPUs was; our ways through it are run on host memory only"},
  };
}

}  // namespace report
