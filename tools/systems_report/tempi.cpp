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
#include <string>
#include <random>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr int nests = 10000;

/// MPI, unless it is up already.
class Library {
 public:
  Library() {
    MPI_Initialized(&m_up);
    if (m_up == 0) MPI_Init(nullptr, nullptr);
  }
  ~Library() {
    if (m_up == 0) MPI_Finalize();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 private:
  int m_up = 0;
};

/// A nest of loops twice: as our descriptor and as a datatype of the MPI library.
struct Nest {
  hd::StridedBlock block;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  explicit Nest(int run) : block(static_cast<hd::Bytes>(run)) {
    MPI_Type_contiguous(run, MPI_BYTE, &type);
  }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;
  ~Nest() { MPI_Type_free(&type); }

  void repeat(int count, int first, int stride) {
    block = block.shifted(first).repeated(static_cast<std::uint64_t>(count), stride);
    std::vector<MPI_Aint> places;
    for (int i = 0; i < count; ++i) places.push_back(first + i * stride);
    MPI_Datatype outer = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed_block(count, 1, places.data(), type, &outer);
    MPI_Type_free(&type);
    type = outer;
  }
};

/// How many of random nests of loops have another descriptor than the first with the same bytes in
/// the same order, and how many are packed otherwise than by MPI_Pack, which also says what the
/// bytes are.
struct Disagreements {
  int descriptors = 0;
  int packed = 0;
  std::size_t different = 0;  ///< sequences of bytes among the nests
};
Disagreements random_nests() {
  std::mt19937 random(12);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  // Each byte of the memory tells its place: the lower half in one array, the upper in another.
  constexpr int reach = 256;  // most bytes before and behind the begin
  std::array<std::vector<std::byte>, 2> memory;
  for (int place = 0; place < 2 * reach; ++place) {
    memory[0].push_back(std::byte(place % 256));
    memory[1].push_back(std::byte(place / 256));
  }
  std::map<std::string, hd::StridedBlock> known;
  Disagreements found;
  for (int i = 0; i < nests; ++i) {
    Nest nest(draw(1, 4));
    for (int depth = draw(0, 4); depth > 0; --depth)
      nest.repeat(draw(1, 3), draw(-3, 3), draw(-6, 12));
    MPI_Type_commit(&nest.type);
    const std::size_t bytes = nest.block.bytes();
    int size = 0;
    MPI_Type_size(nest.type, &size);
    std::string theirs(2 * static_cast<std::size_t>(size), '\0'), ours(2 * bytes, '\0');
    int position = 0;
    for (std::size_t half = 0; half < 2; ++half) {
      MPI_Pack(memory[half].data() + reach, 1, nest.type, theirs.data(), 2 * size, &position,
               MPI_COMM_SELF);
      hd::pack(nest.block, memory[half].data() + reach,
               reinterpret_cast<std::byte*>(ours.data()) + half * bytes);
    }
    found.packed += ours != theirs;
    found.descriptors +=
        known.try_emplace(std::move(theirs), nest.block).first->second != nest.block;
  }
  found.different = known.size();
  return found;
}

/// The median of the library's time over ours for the k-face of a cube of n^3 doubles.
struct Face {
  double pack;
  double unpack;
};
Face against_library(int n) {
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
  return face;
}

}  // namespace

std::vector<Comparison> tempi() {
#ifdef OPEN_MPI
  constexpr double pack_bar = 1.4, unpack_bar = 1.5;
#else
  constexpr double pack_bar = 1.3, unpack_bar = 1.3;
#endif
  const Library library;
  const Disagreements found = random_nests();
  const Face face = against_library(256);
  return {
      {hd::text("random nests of loops, of ", nests, " with ", found.different,
                " sequences of bytes by MPI_Pack, that have another descriptor than the first of "
                "the same bytes"),
       "", hd::text(found.descriptors), "0", verdict(found.descriptors == 0)},
      {"of these nests, those that we pack otherwise than MPI_Pack", "", hd::text(found.packed),
       "0", verdict(found.packed == 0)},
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
