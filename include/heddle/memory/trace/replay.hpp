// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Recorder writes down what passes through a resource; replay() does it again with another one.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/trace/trace.hpp>

namespace heddle::inline v0::memory {

namespace impl {

/// Of std::chrono::steady_clock.
[[nodiscard]] inline Seconds now() noexcept {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace impl

/// An upstream, with a trace of all that is asked of it and comes back, under the Label of the
/// moment.
template <Resource Up>
class Recorder {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Over `upstream`, which it owns, or refers to if that has a name; see UpstreamOf.
  template <class Given>
  requires std::constructible_from<Up, Given>
  explicit Recorder(Given&& upstream) : m_upstream(std::forward<Given>(upstream)) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Of upstream. What it refuses is not in the trace.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const block = m_upstream.allocate(bytes, alignment);
    if (block == nullptr) return nullptr;
    const std::scoped_lock lock(m_lock);
    try {
      m_out[block] =
          m_trace.take(now(), bytes, static_cast<std::uint32_t>(alignment), Label::current());
    } catch (...) {
      m_out.erase(block);
      m_upstream.deallocate(block, bytes, alignment);
      throw;
    }
    return block;
  }
  /// To upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    {
      const std::scoped_lock lock(m_lock);
      if (const auto found = m_out.find(block); found != m_out.end()) {
        m_trace.give(now(), found->second);
        m_out.erase(found);
      }
    }
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }

  /// All until now.
  [[nodiscard]] Trace trace() const {
    const std::scoped_lock lock(m_lock);
    return m_trace;
  }

 private:
  [[nodiscard]] Seconds now() const noexcept { return impl::now() - m_begin; }

  Up m_upstream;
  const Seconds m_begin = impl::now();
  mutable impl::Mutex m_lock;
  Trace m_trace;
  std::map<void*, std::uint32_t> m_out;
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Recorder(Given&&) -> Recorder<UpstreamOf<Given>>;

/// Which bytes of a block replay() writes.
enum class Touch : std::uint8_t {
  none,
  pages,  ///< the first of every 4 KiB
  all,
};

/// What replay() found.
struct Replayed {
  Seconds seconds = 0;          ///< of all calls and writes together
  std::uint64_t peak_live = 0;  ///< bytes, as they were asked for
  std::uint64_t refused = 0;    ///< blocks that the resource did not have
  friend bool operator==(const Replayed&, const Replayed&) = default;
  /// As in "0.25 s, peak 1048576 B, 0 refused".
  friend std::ostream& operator<<(std::ostream& out, const Replayed& replayed) {
    return out << replayed.seconds << " s, peak " << replayed.peak_live << " B, "
               << replayed.refused << " refused";
  }
};

/// Takes and gives back on this thread what `trace` says, in its order and without its pauses; what
/// is left at the end comes back too. Of blocks that are refused it goes without.
/// @throws what else than std::bad_alloc the resource throws; all blocks are back then.
template <Resource R>
Replayed replay(const Trace& trace, R& resource, Touch touch = Touch::none) {
  struct Block {
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
    std::uint32_t alignment = 1;
  };
  std::vector<Block> blocks(trace.blocks());
  Replayed replayed{.peak_live = trace.peak()};
  const auto give_back_all = [&]() noexcept {
    for (const Block& block : blocks)
      resource.deallocate(block.begin, block.bytes, block.alignment);
  };
  const Seconds begin = impl::now();
  for (const TraceEvent& event : trace.events()) {
    Block& block = blocks[event.block];
    if (!event.taken) {
      resource.deallocate(std::exchange(block.begin, nullptr), block.bytes, block.alignment);
      continue;
    }
    block.bytes = event.bytes;
    block.alignment = event.alignment;
    try {
      block.begin = static_cast<std::byte*>(resource.allocate(event.bytes, event.alignment));
    } catch (const std::bad_alloc&) {
      ++replayed.refused;
      continue;
    } catch (...) {
      give_back_all();
      throw;
    }
    if (touch == Touch::all) std::fill_n(block.begin, block.bytes, std::byte{1});
    for (std::uint64_t at = 0; touch == Touch::pages && at < block.bytes; at += 4096)
      block.begin[at] = std::byte{1};
  }
  give_back_all();
  replayed.seconds = impl::now() - begin;
  return replayed;
}

}  // namespace heddle::inline v0::memory
