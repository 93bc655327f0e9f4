// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1

/// @file
/// pack() and unpack() against loops by hand and against the MPI library, for blocks as far apart
/// as they are long, and for the face of a cube of 256^3 doubles whose points lie 2 KiB apart. Says
/// for every length of block the worst of all sizes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/layout/pack.hpp>

#include "../../mpi_library.hpp"
#include "../../support.hpp"
#include "loops.hpp"

namespace hd = heddle;

namespace {

using bench::Blocks;
using hd::Bytes;

constexpr Bytes KiB = 1024;
constexpr Bytes largest = 64 * KiB * KiB;
constexpr std::size_t face_points = 65536;
constexpr std::size_t face_stride = 2048;

/// What all work on: memory of the strided bytes, and of the packed ones.
struct Memory {
  std::vector<double> strided =
      std::vector<double>(std::max<Bytes>(2 * largest, face_points* face_stride) / sizeof(double));
  std::vector<double> packed = std::vector<double>(largest / sizeof(double));
  std::vector<double> other = std::vector<double>(largest / sizeof(double));
};

enum Who : std::size_t { ours, library, words, blocks_by_memcpy, number_of };

/// One strided copy, one way, by all of them.
class Copy {
 public:
  Copy(const Blocks& blocks, bool packs, Memory& memory)
      : m_blocks(blocks),
        m_packs(packs),
        m_memory(memory),
        m_block(hd::StridedBlock(blocks.length)
                    .repeated(blocks.count, static_cast<std::int64_t>(blocks.stride))) {
    MPI_Type_create_hvector(static_cast<int>(blocks.count),
                            static_cast<int>(blocks.length / sizeof(double)),
                            static_cast<MPI_Aint>(blocks.stride), MPI_DOUBLE, &m_type);
    MPI_Type_commit(&m_type);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { MPI_Type_free(&m_type); }

  [[nodiscard]] Bytes bytes() const { return m_blocks.count * m_blocks.length; }

  void operator()(Who who) {
    double* const strided = m_memory.strided.data();
    double* const packed = m_memory.packed.data();
    auto* const strided_bytes = reinterpret_cast<std::byte*>(strided);
    auto* const packed_bytes = reinterpret_cast<std::byte*>(packed);
    const auto size = static_cast<int>(bytes());
    const bool single = m_blocks.length == sizeof(double);
    int position = 0;
    switch (who) {
      case ours:
        return m_packs ? hd::pack(m_block, strided_bytes, packed_bytes)
                       : hd::unpack(m_block, packed_bytes, strided_bytes);
      case library:
        if (m_packs)
          MPI_Pack(strided, 1, m_type, packed, size, &position, MPI_COMM_SELF);
        else
          MPI_Unpack(packed, size, &position, strided, 1, m_type, MPI_COMM_SELF);
        return;
      case words:
        if (single)
          return m_packs ? bench::pack_single_words(m_blocks, strided, packed)
                         : bench::unpack_single_words(m_blocks, packed, strided);
        return m_packs ? bench::pack_words(m_blocks, strided, packed)
                       : bench::unpack_words(m_blocks, packed, strided);
      default:
        return m_packs ? bench::pack_blocks(m_blocks, strided, packed)
                       : bench::unpack_blocks(m_blocks, packed, strided);
    }
  }

  /// Ends the benchmark where what `who` copies is not what the blocks say.
  void require_copied(Who who) {
    std::vector<double>& strided = m_memory.strided;
    std::vector<double>& packed = m_memory.packed;
    for (std::size_t i = 0; i < strided.size(); ++i) strided[i] = static_cast<double>(i);
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = -static_cast<double>(i) - 1;
    (*this)(who);
    const std::size_t length = m_blocks.length / sizeof(double);
    for (std::size_t b = 0; b < m_blocks.count; ++b)
      for (std::size_t w = 0; w < length; ++w) {
        const std::size_t far = b * (m_blocks.stride / sizeof(double)) + w, near = b * length + w;
        const double meant = m_packs ? static_cast<double>(far) : -static_cast<double>(near) - 1;
        if (strided[far] != meant || packed[near] != meant)
          bench::require_equal("a copied word", meant, m_packs ? packed[near] : strided[far]);
      }
  }

 private:
  Blocks m_blocks;
  bool m_packs;
  Memory& m_memory;
  hd::StridedBlock m_block;
  MPI_Datatype m_type = MPI_DATATYPE_NULL;
};

/// Times of all, and of memcpy of as many bytes.
struct Times {
  std::array<std::vector<double>, number_of> of;
  std::vector<double> memcpy;
};

Times measure(Copy& copy, Memory& memory) {
  for (std::size_t who = 0; who < number_of; ++who) copy.require_copied(Who(who));
  const Bytes bytes = copy.bytes();
  const std::size_t pairs = bytes >= 16 * KiB * KiB ? 15 : 45;
  const auto repetitions = std::max<Bytes>(256 * KiB / bytes, 1);
  const auto seconds_of_each = [&](auto&& work) {
    return bench::seconds_of([&] {
             for (Bytes r = 0; r < repetitions; ++r) work();
           }) /
           static_cast<double>(repetitions);
  };
  Times times;
  for (std::size_t round = 0; round < pairs + 1; ++round) {
    for (std::size_t i = 0; i < number_of; ++i) {
      const auto who = Who((i + round) % number_of);
      const double seconds = seconds_of_each([&] { copy(who); });
      if (round > 0) times.of[who].push_back(seconds);
    }
    times.memcpy.push_back(seconds_of_each(
        [&] { std::memcpy(memory.other.data(), memory.packed.data(), copy.bytes()); }));
  }
  times.memcpy.erase(times.memcpy.begin());
  return times;
}

/// The better of the loops by hand.
const std::vector<double>& by_hand(const Times& times) {
  return bench::summarise(times.of[words]).median <
                 bench::summarise(times.of[blocks_by_memcpy]).median
             ? times.of[words]
             : times.of[blocks_by_memcpy];
}

std::string size_name(Bytes bytes) {
  if (bytes >= KiB * KiB) return hd::text(bytes / (KiB * KiB), "MiB");
  return bytes >= KiB ? hd::text(bytes / KiB, "KiB") : hd::text(bytes, 'B');
}

void keep_worst(std::optional<bench::Summary>& worst, const bench::Summary& next) {
  if (!worst || next.median < worst->median) worst = next;
}

void run() {
  bench::skip_other_libraries("layout/pack");
  const std::string name = "layout/pack_" + bench::mpi_library();
  Memory memory;
  for (const bool packs : {true, false}) {
    const std::string verb = packs ? "pack" : "unpack";
    Copy face({face_points, sizeof(double), face_stride}, packs, memory);
    const Times times = measure(face, memory);
    bench::print_ratio(name, verb + "_k_face_over_library",
                       bench::ratios(times.of[library], times.of[ours]));
    bench::print_ratio(name, verb + "_k_face_over_loop",
                       bench::ratios(by_hand(times), times.of[ours]));
    bench::print_value(name, verb + "_k_face_of_memcpy",
                       bench::ratios(times.memcpy, times.of[ours]), "x");
    for (const Bytes length : {Bytes{8}, Bytes{64}, Bytes{512}, 4 * KiB, 64 * KiB}) {
      std::optional<bench::Summary> over_library, over_loop;
      for (const Bytes bytes : {64 * KiB, 1024 * KiB, 8192 * KiB, largest}) {
        Copy copy({bytes / length, length, 2 * length}, packs, memory);
        const Times measured = measure(copy, memory);
        const std::string what = hd::text(verb, '_', size_name(bytes), "_of_", size_name(length));
        const bench::Summary library_ratio = bench::ratios(measured.of[library], measured.of[ours]);
        const bench::Summary loop_ratio = bench::ratios(by_hand(measured), measured.of[ours]);
        bench::print_value(name, what + "_over_library", library_ratio, "x");
        bench::print_value(name, what + "_over_loop", loop_ratio, "x");
        bench::print_value(name, what + "_of_memcpy",
                           bench::ratios(measured.memcpy, measured.of[ours]), "x");
        keep_worst(over_library, library_ratio);
        keep_worst(over_loop, loop_ratio);
      }
      const std::string what = hd::text(verb, '_', size_name(length));
      bench::print_ratio(name, what + "_over_library", *over_library);
      bench::print_ratio(name, what + "_over_loop", *over_loop);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::status_of("layout/pack", run);
  MPI_Finalize();
  return status;
}
