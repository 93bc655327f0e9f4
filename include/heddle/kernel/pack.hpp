// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// pack() and unpack() of StridedBlocks in the memory of any execution space, and the StridedBlock
/// of a View. Messages need contiguous memory, so data with gaps are packed before they are sent.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/units.hpp>
#include <heddle/kernel/internal/walk.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/pack.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

struct Copy {
  template <class T>
  KOKKOS_FUNCTION T operator()(const T& value) const {
    return value;
  }
};

/// The 16 bytes that one instruction copies.
struct alignas(16) Word16 {
  std::uint64_t low, high;
};

/// The words of a block as rows: of its runs, or of the innermost loop where a run is one word. The
/// View `strided` of the walk is the block, the other one is its bytes in one piece.
template <class Word, std::size_t strided>
[[nodiscard]] Walk<2> walk_of(const StridedBlock& block) {
  Walk<2> walk;
  const auto in_words = [](std::int64_t bytes) {
    return static_cast<std::ptrdiff_t>(bytes / static_cast<std::int64_t>(sizeof(Word)));
  };
  auto loops = block.loops();
  walk.columns = block.run() / sizeof(Word);
  walk.step[0] = walk.step[1] = 1;
  if (walk.columns == 1 && !loops.empty()) {
    walk.columns = loops.back().count;
    walk.step[strided] = in_words(loops.back().stride);
    loops = loops.first(loops.size() - 1);
  }
  auto piece = static_cast<std::ptrdiff_t>(walk.columns);
  walk.axes = static_cast<int>(loops.size());
  for (std::size_t axis = loops.size(); axis-- > 0;) {
    walk.extent[axis] = loops[axis].count;
    walk.stride[axis][strided] = in_words(loops[axis].stride);
    walk.stride[axis][1 - strided] = piece;
    piece *= static_cast<std::ptrdiff_t>(loops[axis].count);
    walk.rows *= loops[axis].count;
  }
  return walk;
}

/// A host core's share of a block.
template <bool packs>
struct CopyParts {
  const std::vector<StridedBlock>& parts;
  const std::vector<Bytes>& begins;  // of each part in the piece
  std::byte* base;
  std::byte* packed;
  bool streamed;  // as the whole is

  void operator()(std::int64_t index) const {
    const auto part = static_cast<std::size_t>(index);
    heddle::impl::copy_block<packs>(parts[part], base + parts[part].start(), packed + begins[part],
                                    streamed);
  }
};

template <bool packs, ExecutionSpace Exec>
void copy_block(const char* where, const Exec& exec, const StridedBlock& block, std::byte* base,
                std::byte* packed) {
  if (block.run() == 0) return;
  std::byte* const first = base + block.start();
  if constexpr (runs_on_host<Exec>) {
    constexpr Bytes few = Bytes{64} << 10;  // for which other threads are not worth waking
    const bool streamed = heddle::impl::streams<packs>(block, first, packed);
    if (block.bytes() < few || exec.concurrency() <= 1) {
      exec.fence(where);  // after whatever is queued
      heddle::impl::copy_block<packs>(block, first, packed, streamed);
      return;
    }
    const std::vector<StridedBlock> parts =
        block.split(static_cast<std::size_t>(exec.concurrency()));
    std::vector<Bytes> begins;
    Bytes begin = 0;
    for (const StridedBlock& part : parts) {
      begins.push_back(begin);
      begin += part.bytes();
    }
    Kokkos::parallel_for(where,
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                             exec, 0, static_cast<std::int64_t>(parts.size())),
                         CopyParts<packs>{parts, begins, base, packed, streamed});
    exec.fence(where);  // the parts are here
  } else if (const std::span<const StridedBlock::Loop> loops = block.loops();
             loops.size() > Walk<2>::most_axes) {
    // More than one kernel walks: one for each turn of the outermost loop.
    for (const StridedBlock& turn : block.split(loops.front().count)) {
      copy_block<packs>(where, exec, turn, base, packed);
      packed += turn.bytes();
    }
  } else {
    const auto by = [&]<class Word>(Word) {
      auto* const inside = reinterpret_cast<Word*>(first);
      auto* const outside = reinterpret_cast<Word*>(packed);
      if constexpr (packs)
        map_rows(where, exec, Copy{}, walk_of<Word, 1>(block), outside,
                 static_cast<const Word*>(inside));
      else
        map_rows(where, exec, Copy{}, walk_of<Word, 0>(block), inside,
                 static_cast<const Word*>(outside));
    };
    const auto address = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); };
    const std::uintptr_t aligned =
        address(first) | address(packed) | block.shifted(-block.start()).word();
    // Of rows of several words those of 8 bytes are as fast, and faster where rows are short.
    if (aligned % 16 == 0 && block.run() == 16)
      by(Word16{});
    else if (aligned % 8 == 0)
      by(std::uint64_t{});
    else if (aligned % 4 == 0)
      by(std::uint32_t{});
    else if (aligned % 2 == 0)
      by(std::uint16_t{});
    else
      by(std::uint8_t{});
  }
}

}  // namespace impl

/// Returns the StridedBlock of a View: its elements as bytes relative to data(), with the last
/// index fastest, whatever the layout is.
template <class View>
requires Kokkos::is_view_v<View>
[[nodiscard]] StridedBlock strided_block_of(const View& view) {
  StridedBlock block(sizeof(typename View::value_type));
  for (std::size_t axis = View::rank; axis-- > 0;)
    block = block.repeated(view.extent(axis),
                           static_cast<std::int64_t>(view.stride(axis)) *
                               static_cast<std::int64_t>(sizeof(typename View::value_type)));
  return block;
}

/// Returns the address, as bytes, to which strided_block_of() of a View is relative.
template <class View>
requires Kokkos::is_view_v<View>
[[nodiscard]] auto* bytes_of(const View& view) {
  using Byte =
      std::conditional_t<std::is_const_v<typename View::value_type>, const std::byte, std::byte>;
  return reinterpret_cast<Byte*>(view.data());
}

/// Copies the bytes of `block`, relative to `base`, to `packed`, in order. `packed` has
/// block.bytes() bytes. Both must be in memory that kernels of `Exec` can access. The kernels are
/// queued in `exec`; on host cores the copy is complete on return. On devices, a block of more than
/// 8 loops needs several kernels.
template <ExecutionSpace Exec>
void pack(const Exec& exec, const StridedBlock& block, const std::byte* base, std::byte* packed) {
  impl::copy_block<true>("heddle::kernel::pack", exec, block, const_cast<std::byte*>(base), packed);
}

/// Copies block.bytes() bytes from `packed` to the bytes of `block`, relative to `base`. It is the
/// reverse of pack(). If the block contains a byte twice, that byte gets one of the two values.
template <ExecutionSpace Exec>
void unpack(const Exec& exec, const StridedBlock& block, const std::byte* packed, std::byte* base) {
  impl::copy_block<false>("heddle::kernel::unpack", exec, block, base,
                          const_cast<std::byte*>(packed));
}

/// Packs several blocks one after another into `packed`.
template <ExecutionSpace Exec>
void pack(const Exec& exec, const std::vector<StridedBlock>& blocks, const std::byte* base,
          std::byte* packed) {
  for (const StridedBlock& block : blocks) {
    pack(exec, block, base, packed);
    packed += block.bytes();
  }
}
/// Unpacks several blocks one after another from `packed`.
template <ExecutionSpace Exec>
void unpack(const Exec& exec, const std::vector<StridedBlock>& blocks, const std::byte* packed,
            std::byte* base) {
  for (const StridedBlock& block : blocks) {
    unpack(exec, block, packed, base);
    packed += block.bytes();
  }
}

}  // namespace heddle::inline v0::kernel
