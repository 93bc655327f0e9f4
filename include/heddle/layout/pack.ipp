// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pack.hpp.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/pack.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Copies a run whose length is known at compile time, with one or a few instructions.
template <Bytes length>
struct FixedRun {
  static constexpr Bytes bytes = length;
  void operator()(std::byte* to, const std::byte* from) const { std::memcpy(to, from, length); }
};

/// The length of a run that is shorter than one instruction could copy, or 0.
template <class Run>
inline constexpr Bytes word_of = 0;
template <Bytes length>
inline constexpr Bytes word_of<FixedRun<length>> = length <= 8 ? length : 0;

/// Copies a short run of more than `piece` bytes in pieces of that length. The last piece overlaps
/// the one before it.
template <Bytes piece>
struct RunInPieces {
  Bytes bytes;
  void operator()(std::byte* to, const std::byte* from) const {
    const Bytes last = bytes - piece;
    for (Bytes at = 0; at < last; at += piece) std::memcpy(to + at, from + at, piece);
    std::memcpy(to + last, from + last, piece);
  }
};

/// Copies a run of any length with the library's memcpy.
struct AnyRun {
  Bytes bytes;
  void operator()(std::byte* to, const std::byte* from) const { std::memcpy(to, from, bytes); }
};

inline constexpr Bytes cache_line = 64;
/// The distance of software prefetches, in bytes of the lines that are read. Distances from 3 to
/// 5 KiB were equally fast in measurements.
inline constexpr Bytes bytes_ahead = 4096;

#if defined(__SSE2__)
/// Copies a run of 16-byte words with non-temporal stores. They need not read the target into the
/// caches first, and evict nothing from them. The source is prefetched line by line, also across
/// runs, which are `stride` bytes apart, because the hardware prefetcher starts anew with each run.
template <bool packs>
struct StreamedRun {
  StreamedRun(Bytes length, std::int64_t stride)
      : bytes(length),
        m_rest(bytes_ahead % length),
        m_ahead(bytes_ahead / length * static_cast<Bytes>(stride) + m_rest),
        m_wrap(static_cast<Bytes>(stride) - length),
        m_crowded(bytes_ahead / length * std::gcd(static_cast<Bytes>(stride), way) > 8 * way) {}

  /// Returns true if runs of this length are prefetched. Several shorter runs share a cache line.
  [[nodiscard]] static constexpr bool asks(Bytes length) { return length >= cache_line; }

  void operator()(std::byte* to, const std::byte* from) const {
    if (!asks(bytes)) return copy_part(to, from, bytes);
    // By lines of the target, because memory takes whole lines at once.
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
  /// Prefetches the line that is read `bytes_ahead` bytes after the one at offset `at` of this run.
  void ask(const std::byte* from, Bytes at) const {
    // An integer, because the address may lie past the end of memory.
    const std::uintptr_t ahead =
        reinterpret_cast<std::uintptr_t>(from) + at + m_ahead + (at + m_rest < bytes ? 0 : m_wrap);
    if (m_crowded)
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
    else
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 0);
  }
  /// Copies a line with the widest words that the compiler may use.
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
  /// Copies a part of a line. In packed memory, the neighbouring run fills the rest of the line. In
  /// strided memory it stays partial, and a partial line must be read before it is written, which a
  /// cache does faster than memory.
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

  static constexpr Bytes way =
      4096;  ///< lines at this distance map to the same set of the L1 cache

  Bytes m_rest;    ///< offset in a run of the line that is prefetched with the first line
  Bytes m_ahead;   ///< its distance from the line that is copied
  Bytes m_wrap;    ///< from the end of a run to the beginning of the next run
  bool m_crowded;  ///< whether the L1 cache cannot hold all prefetched lines
};

template <bool packs>
bool streams(const StridedBlock& block, const std::byte* strided, const std::byte* packed) {
  constexpr Bytes large = Bytes{8} << 20;
  constexpr Bytes long_piece = 256;
  const auto address = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); };
  return !block.contiguous() && block.bytes() >= large && (packs || block.run() >= long_piece) &&
         block.shifted(-block.start()).word() == sizeof(__m128i) &&
         (address(strided) | address(packed)) % sizeof(__m128i) == 0;
}
#else
template <bool packs>
bool streams(const StridedBlock&, const std::byte*, const std::byte*) {
  return false;
}
#endif

/// Calls `visit` with the run type that copies `bytes` bytes fastest.
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

template <bool packs, class Run>
void copy_run(const Run& run, StridedPointer<packs> strided, PackedPointer<packs> packed) {
  if constexpr (packs)
    run(packed, strided);
  else
    run(strided, packed);
}

/// Returns whether to prefetch short runs: if each of them lies in a cache line of its own, and all
/// of these lines together exceed a core's L2 cache. The hardware prefetcher does not cross pages.
[[nodiscard]] inline bool asks_ahead(const StridedBlock& block) {
  constexpr Bytes second_cache = Bytes{512} << 10;
  if (block.contiguous() || block.run() > 2 * cache_line) return false;
  const auto far = static_cast<std::int64_t>(block.run() + 2 * cache_line);
  return std::abs(block.loops().back().stride) >= far &&
         block.bytes() / block.run() > second_cache / cache_line;
}

/// Copies four words at once. One instruction writes or reads them in packed memory.
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

/// Copies the runs of one loop, with few instructions for each run. The reorder window of a core
/// holds a fixed number of instructions, so fewer instructions a run mean more lines in flight.
template <bool packs, bool asks, class Run>
void copy_loop(const StridedBlock::Loop& loop, const Run& run, StridedPointer<packs> strided,
               PackedPointer<packs> packed) {
  // Local copies, because the compiler must assume that written bytes alias the loop.
  const auto [count, stride] = loop;
  const Bytes length = run.bytes;
  // Integers, because a prefetched address may lie past the end of memory.
  const std::uintptr_t ahead =
      static_cast<std::uintptr_t>(stride) * (bytes_ahead / (length + cache_line - 1));
  // To the L2 cache: if strides are powers of two, the L1 cache holds only a few of the lines.
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

/// Copies between `strided` and `packed` memory. Returns where the packed memory continues.
template <bool packs, bool asks, class Run>
PackedPointer<packs> copy_loops(std::span<const StridedBlock::Loop> loops, const Run& run,
                                StridedPointer<packs> strided, PackedPointer<packs> packed) {
  if (loops.empty()) {
    copy_run<packs>(run, strided, packed);
    return packed + run.bytes;
  }
  const StridedBlock::Loop& loop = loops.front();
  if (loops.size() == 1) {
    copy_loop<packs, asks>(loop, run, strided, packed);
    return packed + loop.count * run.bytes;
  }
  for (std::uint64_t turn = 0; turn < loop.count; ++turn, strided += loop.stride)
    packed = copy_loops<packs, asks>(loops.subspan(1), run, strided, packed);
  return packed;
}

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
    _mm_sfence();  // makes the stores visible before a later signal to another thread
    return;
  }
#endif
  with_run(block.run(), [&](const auto& run) { copy(run, asks); });
}

}  // namespace impl

#if !HEDDLE_HEADER_ONLY
template bool impl::streams<true>(const StridedBlock&, const std::byte*, const std::byte*);
template bool impl::streams<false>(const StridedBlock&, const std::byte*, const std::byte*);
template void impl::copy_block<true>(const StridedBlock&, const std::byte*, std::byte*, bool);
template void impl::copy_block<false>(const StridedBlock&, std::byte*, const std::byte*, bool);
#endif

HEDDLE_INLINE void pack(const StridedBlock& block, const std::byte* base, std::byte* packed) {
  const std::byte* const first = base + block.start();
  impl::copy_block<true>(block, first, packed, impl::streams<true>(block, first, packed));
}

HEDDLE_INLINE void unpack(const StridedBlock& block, const std::byte* packed, std::byte* base) {
  std::byte* const first = base + block.start();
  impl::copy_block<false>(block, first, packed, impl::streams<false>(block, first, packed));
}

namespace impl {

HEDDLE_INLINE void unpack_first(Bytes bytes, const StridedBlock& block, const std::byte* packed,
                                std::byte* base) {
  if (bytes >= block.bytes()) return unpack(block, packed, base);
  impl::with_run(block.run(), [&](const auto& run) {
    // Copies the complete turns of each loop. The rest lies in the next inner loop.
    std::byte* to = base + block.start();
    Bytes turn = block.bytes();
    for (auto loops = block.loops(); !loops.empty(); loops = loops.subspan(1)) {
      turn /= loops[0].count;
      const StridedBlock::Loop whole{bytes / turn, loops[0].stride};
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

}  // namespace impl

}  // namespace heddle::inline v0
