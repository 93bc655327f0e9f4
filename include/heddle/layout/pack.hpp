// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// pack() and unpack(): the bytes of a StridedBlock into one piece and back, in host memory.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <heddle/core/units.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A run whose length the compiler knows: one instruction, or a few.
template <Bytes length>
struct FixedRun {
  static constexpr Bytes bytes = length;
  void operator()(std::byte* to, const std::byte* from) const { std::memcpy(to, from, length); }
};

/// The length of a run that is shorter than what one instruction could copy, or 0.
template <class Run>
inline constexpr Bytes word_of = 0;
template <Bytes length>
inline constexpr Bytes word_of<FixedRun<length>> = length <= 8 ? length : 0;

/// A short run of more than `piece` bytes: by pieces of that length, the last of which begins
/// before the end of the one before it.
template <Bytes piece>
struct RunInPieces {
  Bytes bytes;
  void operator()(std::byte* to, const std::byte* from) const {
    const Bytes last = bytes - piece;
    for (Bytes at = 0; at < last; at += piece) std::memcpy(to + at, from + at, piece);
    std::memcpy(to + last, from + last, piece);
  }
};

/// A run of any length, by the library's memcpy.
struct AnyRun {
  Bytes bytes;
  void operator()(std::byte* to, const std::byte* from) const { std::memcpy(to, from, bytes); }
};

inline constexpr Bytes cache_line = 64;
/// So many bytes are asked for before their turn, of lines where runs are short. From 3 to 5 KiB
/// all is equally fast where it was measured.
inline constexpr Bytes bytes_ahead = 4096;

#if defined(__SSE2__)
/// A run of 16-byte words that is written past the caches: it need not be read into them first, and
/// puts nothing else out. What is read is asked for ahead, line by line, also of the runs that
/// follow `stride` bytes after one another: the processor's own prefetching begins anew with each.
template <bool packs>
struct StreamedRun {
  StreamedRun(Bytes length, std::int64_t stride)
      : bytes(length),
        m_rest(bytes_ahead % length),
        m_ahead(bytes_ahead / length * static_cast<Bytes>(stride) + m_rest),
        m_wrap(static_cast<Bytes>(stride) - length),
        m_crowded(bytes_ahead / length * std::gcd(static_cast<Bytes>(stride), way) > 8 * way) {}

  /// Whether it does so: a line has several of those that are shorter.
  [[nodiscard]] static constexpr bool asks(Bytes length) { return length >= cache_line; }

  void operator()(std::byte* to, const std::byte* from) const {
    if (!asks(bytes)) return copy_part(to, from, bytes);
    // By lines of what is written: memory takes whole ones at once.
    const Bytes to_line = -reinterpret_cast<std::uintptr_t>(to) % cache_line;
    Bytes at = to_line < bytes ? to_line : bytes;
    if (at > 0) {
      ask(from, 0);
      copy_part(to, from, at);
    }
    for (; at + cache_line <= bytes; at += cache_line) {
      ask(from, at);
      copy_line(to + at, from + at);
    }
    if (at < bytes) {
      ask(from, at);
      copy_part(to + at, from + at, bytes - at);
    }
  }

  Bytes bytes;

 private:
  /// Asks for what is to be read `bytes_ahead` after what lies `at` in this run.
  void ask(const std::byte* from, Bytes at) const {
    // As a number: it may lie behind the end of all memory.
    const std::uintptr_t ahead =
        reinterpret_cast<std::uintptr_t>(from) + at + m_ahead + (at + m_rest < bytes ? 0 : m_wrap);
    if (m_crowded)
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
    else
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 0);
  }
  /// A line, by the widest words that the compiler may use.
  static void copy_line(std::byte* to, const std::byte* from) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
    for (Bytes at = 0; at < cache_line; at += sizeof(__m256i))
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
#else
    for (Bytes at = 0; at < cache_line; at += sizeof(__m128i)) copy_word<true>(to + at, from + at);
#endif
  }
  /// A part of a line. Of what is packed, the run beside it has the rest of the line; where a line
  /// is not written as a whole, memory would have to read it first, and a cache does so sooner.
  static void copy_part(std::byte* to, const std::byte* from, Bytes length) {
    for (Bytes at = 0; at < length; at += sizeof(__m128i)) copy_word<packs>(to + at, from + at);
  }
  template <bool past_caches>
  static void copy_word(std::byte* to, const std::byte* from) {
    const __m128i word = _mm_load_si128(reinterpret_cast<const __m128i*>(from));
    if constexpr (past_caches)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), word);
    else
      _mm_store_si128(reinterpret_cast<__m128i*>(to), word);
  }

  static constexpr Bytes way = 4096;  ///< lines as far apart share their place in the first cache

  Bytes m_rest;    ///< how far in a run the line lies that is asked for with its first one
  Bytes m_ahead;   ///< where that is, from the one that is copied
  Bytes m_wrap;    ///< from the end of a run to the begin of the next one
  bool m_crowded;  ///< whether the first cache does not hold all lines that are asked for
};

/// Whether a block is to be copied so: it is large enough (as measured on an EPYC of the fifth
/// generation, 32 MiB of last cache: whoever reads the copy next takes as long as after others),
/// all of it lies on 16-byte words, and what is written is long pieces, of which few lines are
/// written in part.
template <bool packs>
[[nodiscard]] bool streams(const StridedBlock& block, const std::byte* strided,
                           const std::byte* packed) {
  constexpr Bytes large = Bytes{8} << 20;
  constexpr Bytes long_piece = 256;
  const auto address = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); };
  return !block.contiguous() && block.bytes() >= large && (packs || block.run() >= long_piece) &&
         block.shifted(-block.start()).word() == sizeof(__m128i) &&
         (address(strided) | address(packed)) % sizeof(__m128i) == 0;
}
#else
template <bool packs>
[[nodiscard]] bool streams(const StridedBlock&, const std::byte*, const std::byte*) {
  return false;
}
#endif

/// Calls `visit` with the kind of run that copies `bytes` fastest.
template <class Visit>
void with_run(Bytes bytes, Visit&& visit) {
  switch (bytes) {
    case 1: return visit(FixedRun<1>());
    case 2: return visit(FixedRun<2>());
    case 4: return visit(FixedRun<4>());
    case 8: return visit(FixedRun<8>());
    case 16: return visit(FixedRun<16>());
    case 24: return visit(FixedRun<24>());
    case 32: return visit(FixedRun<32>());
    case 64: return visit(FixedRun<64>());
    default: break;
  }
  if (bytes > 64) return visit(AnyRun{bytes});
  if (bytes > 32) return visit(RunInPieces<32>{bytes});
  if (bytes > 16) return visit(RunInPieces<16>{bytes});
  if (bytes > 8) return visit(RunInPieces<8>{bytes});
  if (bytes > 4) return visit(RunInPieces<4>{bytes});
  return visit(RunInPieces<1>{bytes});
}

template <bool packs>
using StridedPointer = std::conditional_t<packs, const std::byte*, std::byte*>;
template <bool packs>
using PackedPointer = std::conditional_t<packs, std::byte*, const std::byte*>;

template <bool packs, class Run>
void copy_run(const Run& run, StridedPointer<packs> strided, PackedPointer<packs> packed) {
  if constexpr (packs)
    run(packed, strided);
  else
    run(strided, packed);
}

/// Whether short runs are to be asked for before their turn: each lies in a cache line of its own,
/// and all of these lines together do not stay in a core's second cache. The processor's own
/// prefetching sees no line of another page.
[[nodiscard]] inline bool asks_ahead(const StridedBlock& block) {
  constexpr Bytes second_cache = Bytes{512} << 10;
  if (block.contiguous() || block.run() > 2 * cache_line) return false;
  const auto far = static_cast<std::int64_t>(block.run() + 2 * cache_line);
  return std::abs(block.loops().back().stride) >= far &&
         block.bytes() / block.run() > second_cache / cache_line;
}

/// Four words at once: packed, they are what one instruction writes or reads.
template <bool packs, Bytes word>
void copy_four(std::int64_t stride, StridedPointer<packs> strided, PackedPointer<packs> packed) {
  std::byte four[4 * word];
  constexpr auto size = static_cast<std::int64_t>(word);
  if constexpr (packs) {
    for (int w = 0; w < 4; ++w) std::memcpy(four + w * size, strided + w * stride, word);
    std::memcpy(packed, four, sizeof four);
  } else {
    std::memcpy(four, packed, sizeof four);
    for (int w = 0; w < 4; ++w) std::memcpy(strided + w * stride, four + w * size, word);
  }
}

/// The runs of one loop. Few instructions for each: a core looks only so many ahead, and the more
/// runs there are among them, the more lines are under way.
template <bool packs, bool asks, class Run>
void copy_loop(const StridedLoop& loop, const Run& run, StridedPointer<packs> strided,
               PackedPointer<packs> packed) {
  // Of its own: bytes that are written might be the loop's, for all that a compiler knows.
  const auto [count, stride] = loop;
  const Bytes length = run.bytes;
  // As numbers: what is asked for may lie behind the end of all memory.
  const std::uintptr_t ahead =
      static_cast<std::uintptr_t>(stride) * (bytes_ahead / (length + cache_line - 1));
  // Into the second cache: of strides that are powers of two the first one holds but a few lines.
  const auto ask = [&](StridedPointer<packs> now) {
    if constexpr (asks) {
      const std::uintptr_t far = reinterpret_cast<std::uintptr_t>(now) + ahead;
      for (Bytes at = 0; at < length; at += cache_line)
        __builtin_prefetch(reinterpret_cast<const void*>(far + at), 0, 2);
    }
  };
  std::uint64_t turn = 0;
  if constexpr (word_of<Run> != 0)
    for (; turn + 4 <= count; turn += 4, strided += 4 * stride, packed += 4 * word_of<Run>) {
      for (int w = 0; w < 4; ++w) ask(strided + w * stride);
      copy_four<packs, word_of<Run>>(stride, strided, packed);
    }
  for (; turn < count; ++turn, strided += stride, packed += run.bytes) {
    ask(strided);
    copy_run<packs>(run, strided, packed);
  }
}

/// Copies between `strided` memory and what is `packed`. @returns where that goes on.
template <bool packs, bool asks, class Run>
PackedPointer<packs> copy_loops(std::span<const StridedLoop> loops, const Run& run,
                                StridedPointer<packs> strided, PackedPointer<packs> packed) {
  if (loops.empty()) {
    copy_run<packs>(run, strided, packed);
    return packed + run.bytes;
  }
  const StridedLoop& loop = loops.front();
  if (loops.size() == 1) {
    copy_loop<packs, asks>(loop, run, strided, packed);
    return packed + loop.count * run.bytes;
  }
  for (std::uint64_t turn = 0; turn < loop.count; ++turn, strided += loop.stride)
    packed = copy_loops<packs, asks>(loops.subspan(1), run, strided, packed);
  return packed;
}

/// All of a block, which begins at `strided`, or a part of one that `streamed` as a whole.
template <bool packs>
void copy_block(const StridedBlock& block, StridedPointer<packs> strided,
                PackedPointer<packs> packed, [[maybe_unused]] bool streamed) {
  if (block.run() == 0) return;
  const auto copy = [&](const auto& run, bool asks) {
    if (asks)
      copy_loops<packs, true>(block.loops(), run, strided, packed);
    else
      copy_loops<packs, false>(block.loops(), run, strided, packed);
  };
  const bool asks = asks_ahead(block);
#if defined(__SSE2__)
  if (streamed) {
    const auto run = static_cast<std::int64_t>(block.run());
    copy(StreamedRun<packs>(block.run(), packs ? block.loops().back().stride : run),
         asks && !StreamedRun<packs>::asks(block.run()));
    _mm_sfence();  // for whoever is told next that it is there
    return;
  }
#endif
  with_run(block.run(), [&](const auto& run) { copy(run, asks); });
}

}  // namespace impl

/// Copies the bytes of `block`, which lie around `base`, to `packed`, in order: block.bytes() of
/// them.
inline void pack(const StridedBlock& block, const std::byte* base, std::byte* packed) {
  const std::byte* const first = base + block.start();
  impl::copy_block<true>(block, first, packed, impl::streams<true>(block, first, packed));
}

/// Copies block.bytes() bytes from `packed` to where the block's lie around `base`, in order.
inline void unpack(const StridedBlock& block, const std::byte* packed, std::byte* base) {
  std::byte* const first = base + block.start();
  impl::copy_block<false>(block, first, packed, impl::streams<false>(block, first, packed));
}

/// The same for the first `bytes` of them alone: of a message that is shorter than it may be.
inline void unpack_first(Bytes bytes, const StridedBlock& block, const std::byte* packed,
                         std::byte* base) {
  if (bytes >= block.bytes()) return unpack(block, packed, base);
  impl::with_run(block.run(), [&](const auto& run) {
    // Of each loop the turns that are there as a whole; what is left lies in the next one.
    std::byte* to = base + block.start();
    Bytes turn = block.bytes();
    for (auto loops = block.loops(); !loops.empty(); loops = loops.subspan(1)) {
      turn /= loops[0].count;
      const StridedLoop whole{bytes / turn, loops[0].stride};
      if (loops.size() == 1)
        impl::copy_loop<false, false>(whole, run, to, packed);
      else
        for (std::uint64_t t = 0; t < whole.count; ++t)
          impl::copy_loops<false, false>(loops.subspan(1), run,
                                         to + static_cast<std::int64_t>(t) * whole.stride,
                                         packed + t * turn);
      to += static_cast<std::int64_t>(whole.count) * whole.stride;
      packed += whole.count * turn;
      bytes -= whole.count * turn;
    }
    std::memcpy(to, packed, bytes);
  });
}

}  // namespace heddle::inline v0
