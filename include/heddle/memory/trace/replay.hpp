// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Recorder records the allocations of a resource. replay() repeats them with another resource.

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

#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/trace/trace.hpp>

namespace heddle::inline v0::memory {

namespace impl {

/// Returns the time of std::chrono::steady_clock in seconds.
[[nodiscard]] inline Seconds now() noexcept {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace impl

/// A resource that records all allocations and deallocations of its upstream in a trace, with the
/// current Label.
template <Resource Up>
class Recorder {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs the adaptor over `upstream`. It owns an rvalue and refers to an lvalue; see
  /// UpstreamOf.
  template <class Given>
  requires std::constructible_from<Up, Given>
  explicit Recorder(Given&& upstream) : m_upstream(std::forward<Given>(upstream)) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Allocates from the upstream. Failed allocations are not in the trace.
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
  /// Deallocates a block through the upstream.
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

  /// Returns the trace up to now.
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

/// The bytes of each block that replay() writes.
enum class Touch : std::uint8_t {
  none,
  pages,  ///< the first byte of every 4 KiB
  all,
};

/// The result of replay().
struct Replayed {
  Seconds seconds = 0;          ///< time of all calls and writes together
  std::uint64_t peak_live = 0;  ///< peak of the live bytes, in the sizes requested
  std::uint64_t refused = 0;    ///< allocations that failed
  friend bool operator==(const Replayed&, const Replayed&) = default;
  /// Prints, for example, "0.25 s, peak 1048576 B, 0 refused".
  friend std::ostream& operator<<(std::ostream& out, const Replayed& replayed) {
    return out << replayed.seconds << " s, peak " << replayed.peak_live << " B, "
               << replayed.refused << " refused";
  }
};

/// Replays the allocations and deallocations of `trace` on this thread, in order, without its idle
/// times. Blocks that are still live at the end are deallocated. Failed allocations are skipped.
/// Throws the resource's exceptions other than std::bad_alloc, after all blocks are deallocated.
template <Resource R>
Replayed replay(const Trace& trace, R& resource, Touch touch = Touch::none) {
  heddle::impl::expect_enumerator("heddle::memory::replay", "touch", touch, Touch::all);
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
  for (const Trace::Event& event : trace.events()) {
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
