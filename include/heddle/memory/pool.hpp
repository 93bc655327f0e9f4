// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Pool: caches the memory of a resource and reuses it for blocks of any size.

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

/// A resource that allocates blocks from chunks of its upstream and reuses them.
///
/// Growth. The pool asks the upstream only if no free range is large enough, even after the calling
/// thread has emptied its cache. It asks for a sixteenth of what it has, and for at least
/// `min_chunk`. If the upstream throws, the pool asks for the block alone. If the upstream can
/// extend the newest chunk, that chunk grows instead by a 128th of all chunks and at least a 32nd
/// of `min_chunk`. It grows to multiples of `min_chunk`, which suit huge pages, if there are at
/// least 32 of them. It does so too if several threads have caches, because they would wait for
/// each other's page faults. Before the pool asks the upstream, a block of at most 8 KiB whose size
/// is not a power of two may use a free block that is up to half as large again. Chunks stay until
/// trim() or the end of the pool.
///
/// Pages. If the upstream is a PagedResource, a block may lie at addresses that have no pages yet.
/// The pool then moves pages from free ranges to the block, if it would otherwise exceed its peak
/// use by more than a sixteenth, or by a sixth if whole huge pages move. So a large block does not
/// need one free range of its size. For ranges of up to 256 KiB there is at most one move for every
/// 512 ranges. If a program has registered a block's pages with a device, it must deregister them
/// before it deallocates the block, as for any memory that may return to the system.
///
/// Sizes. Blocks of at most 256 KiB are rounded up to one of eight sizes in each octave. Each
/// thread caches some of them, which it allocates without a lock. Larger blocks are whole KiB, are
/// placed by best fit, and are joined with free neighbours when they are deallocated. Nothing is
/// written into free memory, so it may be device memory.
///
/// Lifetime. The pool must outlive its blocks and Views. A View that dies later deallocates its
/// block through a pool that no longer exists, which is undefined behaviour. A SharedPool lives as
/// long as its Views.
///
/// Caches. Other threads use the blocks that a thread caches only if a request would otherwise
/// fail, because the pool then empties all caches (on Linux 4.14 and later). A thread caches at
/// most `cached` bytes, or a 48th of the chunks divided by the number of threads if that is more.
/// If there are several threads, each may cache eight times `cached`, as long as all caches
/// together have no more than a quarter of the chunks. After 64 refills of small blocks a thread
/// returns the blocks of all sizes that it has not refilled since.
///
/// Limit. The blocks together never have more than PoolOptions::most bytes, by default what the
/// machine can back. So a pool over pages throws out_of_memory instead of promising memory that the
/// system does not have. Other pools and other processes are not counted.
///
/// fork(). A child uses the pool as its parent does, if the upstream works in a child (FromSpace
/// may not). The child cannot use the blocks that other threads of the parent had cached.
///
/// Sources. Thread caches (magazines): Bonwick and Adams, USENIX 2001. Bins of free ranges: Masmano
/// et al., TLSF, ECRTS 2004. Blocks of pages from several places: Guo et al., GMLake, ASPLOS 2024.
template <Resource Up = Pages>
class Pool {
 public:
  using Upstream = Up;  ///< the resource that provides the chunks

  /// Constructs a pool over host pages.
  Pool() requires std::same_as<Upstream, Pages> : Pool(Pages(HugePages::yes, room)) {}
  /// Constructs a pool over `upstream`. The pool owns an rvalue and refers to an lvalue; see
  /// UpstreamOf. @throws contract_error if `min_chunk`, `max_chunk_growth` or `most` is 0.
  template <class Given>
  requires std::same_as<UpstreamOf<Given>, Upstream>
  explicit Pool(Given&& upstream, const PoolOptions& options = {})
      : m_pool(UpstreamOf<Given>(std::forward<Given>(upstream)), checked(options)) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  /// Returns all chunks to the upstream. No block and no View may be live. In debug builds, and if
  /// HEDDLE_CHECK_VIEWS is defined, the program otherwise ends with a message that names the live
  /// Views.
  ~Pool() { impl::ListedView::expect_none_in(*this, "heddle::memory::Pool"); }

  /// Allocates a block; see Resource. @throws out_of_memory if the upstream has no more memory, or
  /// if PoolOptions::most bytes are in use. Nothing is written then.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_pool.blocks.allocate(cache(), bytes, alignment);
  }
  /// Deallocates a block, on any thread; see Resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_pool.blocks.deallocate(cache(), block, bytes, alignment);
  }

  /// Returns make_view<DataType>(*this, label, extents...) of memory/view.hpp, a plain
  /// Kokkos::View.
  template <class DataType, class... Arguments>
  [[nodiscard]] auto view(Arguments&&... arguments) & {
    return make_view<DataType>(*this, std::forward<Arguments>(arguments)...);
  }
  /// Deleted for temporaries, because the View would outlive the pool.
  template <class DataType, class... Arguments>
  void view(Arguments&&... arguments) && = delete;

  /// Returns unused chunks to the upstream, as long as `keep` bytes stay. If the upstream is a
  /// PagedResource, it also releases the free pages of other chunks. Blocks in the caches of other
  /// threads count as used.
  void trim(std::size_t keep = 0) noexcept { m_pool.blocks.trim(cache(), keep); }

  /// Returns whether the address lies in a chunk.
  [[nodiscard]] bool owns(const void* address) const { return m_pool.blocks.owns(address); }
  /// Returns the bytes of all chunks. If the upstream is a PagedResource, pages that were never
  /// used or that were moved or released do not count. This is exact unless the system merges small
  /// pages into huge ones.
  [[nodiscard]] std::size_t reserved() const { return m_pool.blocks.reserved(); }
  /// Returns the reserved bytes that are neither in blocks nor in the caches of threads.
  [[nodiscard]] std::size_t idle() const { return m_pool.blocks.idle(); }
  /// Returns the upstream resource.
  [[nodiscard]] const Upstream& upstream() const noexcept { return m_pool.blocks.upstream(); }

  /// Prints, for example, "4194304 B reserved, 1048576 B idle".
  friend std::ostream& operator<<(std::ostream& out, const Pool& pool) {
    return out << pool.reserved() << " B reserved, " << pool.idle() << " B idle";
  }

 private:
  /// The bytes to which a chunk of Pages() may grow.
  static constexpr std::size_t room = std::size_t{64} << 30;

  struct Held final : impl::CachedPool {
    Held(Upstream upstream, const PoolOptions& options)
        : blocks(std::move(upstream),
                 {options.min_chunk, options.max_chunk_growth, most_of(options)}, options.cached) {}
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
    expects(options.min_chunk > 0 && options.max_chunk_growth > 0, [&] {
      return ErrorInfo{"heddle::memory::Pool", "chunk sizes must be at least 1 B",
                       text("min_chunk = ", options.min_chunk,
                            ", max_chunk_growth = ", options.max_chunk_growth)};
    });
    expects(options.most != 0, [] {
      return ErrorInfo{"heddle::memory::Pool", "the limit must be at least 1 B", "most = 0"};
    });
    return options;
  }
  [[nodiscard]] impl::Cache* cache() noexcept { return impl::ThreadCaches::of(m_pool); }

  Held m_pool;
};

/// A pool without an upstream is one over host pages.
Pool()->Pool<Pages>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
requires Resource<UpstreamOf<Given>>
Pool(Given&&) -> Pool<UpstreamOf<Given>>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
requires Resource<UpstreamOf<Given>>
Pool(Given&&, const PoolOptions&) -> Pool<UpstreamOf<Given>>;

static_assert(OwningResource<Pool<Pages>>);

}  // namespace heddle::inline v0::memory
