// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Pool: keeps the memory of a resource and gives it out again, for blocks of any size.

#include <cstddef>
#include <limits>
#include <ostream>
#include <type_traits>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/block_pool.hpp>
#include <heddle/memory/impl/brief_mutex.hpp>
#include <heddle/memory/impl/fork_guard.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/impl/thread_caches.hpp>
#include <heddle/memory/pool_options.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/machine_memory.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// Blocks out of chunks of an upstream, which is asked only where no free range is large enough,
/// also with what the thread has at hand: for a sixteenth of what it has given and at least
/// `least_chunk`; where it refuses, for the block alone. If upstream can extend the newest chunk,
/// that grows by a 128th of all and at least a 32nd of `least_chunk`; to multiples of one, as huge
/// pages want it, from 32 of them on or where several threads have blocks at hand, which would wait
/// for each other's pages. Chunks stay until trim() or the end. Before any of that, a block of at
/// most 8 KiB whose size is no power of two may be a free one that is up to half as large again.
///
/// Of a PagedResource, pages of free ranges become those of a block that lies where there were none
/// yet, if the pool would otherwise have a sixteenth more than was used at most, or a sixth where
/// they are huge: a large block needs no hole of its size, but the pages of several. For ranges of
/// up to 256 KiB that is done once in 512 of them. Whoever tells a device where a block's pages are
/// has it take that back before the block ends, as for any memory that may go back to the system.
///
/// Blocks of at most 256 KiB have one of eight sizes in an octave, and each thread has some at
/// hand, for which it needs no lock. Larger ones are whole KiB, best fit, joined with their
/// neighbours when they come back. Nothing is written into memory that is free, so that it may be a
/// device's.
///
/// It outlives its blocks and Views: a View that dies later gives its block to a pool that is not
/// there any more, whatever happens then. A SharedPool lasts as long as its Views. What a thread
/// has at hand is not there for others: at most `cached`, or a 48th part of the chunks by the
/// number of threads; where there are several, eight times `cached` for each, as long as all have
/// no more than a quarter of the chunks. Sizes that the thread has not run out of while it fetched
/// small blocks 64 times go back. (Magazines: Bonwick and Adams, USENIX 2001; bins of free ranges:
/// Masmano et al., TLSF, ECRTS 2004; blocks out of pages from several places: Guo et al., GMLake,
/// ASPLOS 2024.)
///
/// Its blocks together never have more than PoolOptions::most bytes, by default what the machine
/// can back: a pool over pages throws out_of_memory instead of giving out what the system does not
/// have. Other pools and other processes are not counted.
///
/// A child of fork() uses the pool as its parent does, if the upstream works in a child (FromSpace
/// may not). The blocks that other threads of the parent had at hand are lost to the child.
template <Resource Up>
class Pool {
 public:
  using Upstream = Up;  ///< the resource that provides the chunks

  /// Over pages of the host.
  Pool() requires std::same_as<Upstream, Pages> : Pool(Pages(HugePages::yes, Pages::room(room))) {}
  /// Over `upstream`, which it owns, or refers to if that has a name; see UpstreamOf.
  /// @throws contract_error for chunks of nothing, or no bytes at most.
  template <class Given>
  requires std::same_as<UpstreamOf<Given>, Upstream>
  explicit Pool(Given&& upstream, const PoolOptions& options = {})
      : m_pool(UpstreamOf<Given>(std::forward<Given>(upstream)), checked(options)) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  /// No block is out, and no View lives. In debug builds, and where HEDDLE_CHECK_VIEWS is defined,
  /// the program ends with a sentence that names the Views which do.
  ~Pool() { impl::ListedView::expect_none_in(*this, "heddle::memory::Pool"); }

  /// As in Resource. @throws out_of_memory where upstream has no more, or PoolOptions::most bytes
  /// are in use; nothing is written then.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_pool.blocks.allocate(cache(), bytes, alignment);
  }
  /// As in Resource; by any thread.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_pool.blocks.deallocate(cache(), block, bytes, alignment);
  }

  /// make_view<DataType>(*this, label, extents...), of memory/view.hpp: a plain Kokkos::View.
  template <class DataType, class... Arguments>
  [[nodiscard]] auto view(Arguments&&... arguments) & {
    return make_view<DataType>(*this, std::forward<Arguments>(arguments)...);
  }
  /// The View would outlive it.
  template <class DataType, class... Arguments>
  void view(Arguments&&... arguments) && = delete;

  /// Gives upstream the chunks of which nothing is used, and of a PagedResource what is free in
  /// others, as long as `keep` bytes stay. What other threads have at hand is used.
  void trim(std::size_t keep = 0) noexcept { m_pool.blocks.trim(cache(), keep); }

  /// Whether an address lies in a chunk.
  [[nodiscard]] bool owns(const void* address) const { return m_pool.blocks.owns(address); }
  /// Bytes of all chunks; of a PagedResource but for pages that were never used or went elsewhere,
  /// as long as the system makes no huge pages of small ones.
  [[nodiscard]] std::size_t reserved() const { return m_pool.blocks.reserved(); }
  /// Bytes of these that are neither in blocks nor near a thread.
  [[nodiscard]] std::size_t idle() const { return m_pool.blocks.idle(); }
  /// The resource that it asks.
  [[nodiscard]] const Upstream& upstream() const noexcept { return m_pool.blocks.upstream(); }

  /// As in "4194304 B reserved, 1048576 B idle".
  friend std::ostream& operator<<(std::ostream& out, const Pool& pool) {
    return out << pool.reserved() << " B reserved, " << pool.idle() << " B idle";
  }

 private:
  /// Addresses that a chunk of Pages() may grow into.
  static constexpr std::size_t room = std::size_t{64} << 30;

  struct Held final : impl::CachedPool {
    Held(Upstream upstream, const PoolOptions& options)
        : blocks(std::move(upstream), {options.least_chunk, options.most_growth, most_of(options)},
                 options.cached) {}
    ~Held() override { end(); }
    [[nodiscard]] impl::Cache* new_cache() override { return blocks.new_cache(); }
    void retire(impl::Cache* cache) noexcept override { blocks.retire(cache); }
    [[nodiscard]] bool lock_by(impl::Deadline deadline) {
      if (!impl::lock_by(link->ending, deadline)) return false;
      if (blocks.lock_by(deadline)) return true;
      link->ending.unlock();
      return false;
    }
    void unlock() {
      blocks.unlock();
      link->ending.unlock();
    }
    impl::BlockPool<Upstream> blocks;
    impl::ForkGuard guard{*this};
  };

  [[nodiscard]] static std::size_t most_of(const PoolOptions& options) {
    if (options.most) return *options.most;
    if constexpr (is_overcommitted<Upstream>) return machine_memory();
    return std::numeric_limits<std::size_t>::max();
  }
  [[nodiscard]] static const PoolOptions& checked(const PoolOptions& options) {
    expects(options.least_chunk > 0 && options.most_growth > 0, [&] {
      return Complaint{
          "heddle::memory::Pool", "a chunk has at least a byte",
          text("least_chunk = ", options.least_chunk, ", most_growth = ", options.most_growth)};
    });
    expects(options.most != 0, [] {
      return Complaint{"heddle::memory::Pool", "a pool that may give out nothing", "most = 0"};
    });
    return options;
  }
  [[nodiscard]] impl::Cache* cache() noexcept { return impl::ThreadCaches::of(m_pool); }

  Held m_pool;
};

/// Over pages of the host.
Pool()->Pool<Pages>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
Pool(Given&&) -> Pool<UpstreamOf<Given>>;
/// Likewise.
template <class Given>
Pool(Given&&, const PoolOptions&) -> Pool<UpstreamOf<Given>>;

static_assert(OwningResource<Pool<Pages>>);

}  // namespace heddle::inline v0::memory
