// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamOrdered: blocks that may be deallocated while work still uses them.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// Events that tell when work of an instance is complete. `record(exec)` marks the end of the work
/// launched so far, `done(mark)` tests whether it is complete, and `wait(mark)` waits for it. Equal
/// instances do their work in order.
template <class E, class Exec>
concept Events = std::equality_comparable<Exec> && std::copy_constructible<Exec> &&
    requires(const Exec& exec, const typename E::Mark& mark) {
  { E::record(exec) } -> std::same_as<typename E::Mark>;
  { E::done(mark) } -> std::same_as<bool>;
  E::wait(mark);
};

/// A resource that adds the order of instances of `Exec` to its upstream. When an instance has
/// deallocated a block, the same instance can allocate it again at once, because its later work
/// runs after the work that used the block. Other instances and the upstream get the block when the
/// earlier work is complete.
///
/// Marks are recorded and tested only when an instance finds no block of the requested size and
/// alignment among its own. Then the blocks of all other instances are marked, and its own blocks
/// too if they have at least as many bytes as it requests. The host waits only if the upstream has
/// no memory left otherwise.
///
/// The plain allocate() and deallocate() are those of the upstream, for blocks that no work uses. A
/// block must be deallocated by the function that matches its allocation. The destructor waits for
/// all instances.
template <Resource Up, class Exec, class E>
requires Events<E, Exec>
class StreamOrdered {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs the adaptor over `upstream`. It owns an rvalue and refers to an lvalue; see
  /// UpstreamOf.
  template <class Given>
  requires std::same_as<UpstreamOf<Given>, Upstream>
  explicit StreamOrdered(Given&& upstream)
      : m_upstream(UpstreamOf<Given>(std::forward<Given>(upstream))) {}
  StreamOrdered(const StreamOrdered&) = delete;
  StreamOrdered& operator=(const StreamOrdered&) = delete;
  ~StreamOrdered() { wait(); }

  /// Allocates directly from the upstream.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_upstream.allocate(bytes, alignment);
  }
  /// Deallocates directly through the upstream. No work may still use the block.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_upstream.deallocate(block, bytes, alignment);
  }

  /// Allocates a block for work that `exec` launches from now on. @throws out_of_memory if the
  /// upstream has no more memory, even after all work is complete.
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    const std::scoped_lock lock(m_lock);
    const Shape shape{bytes, alignment};
    if (const auto own = find(exec); own != m_instances.end())
      if (const auto found = own->free.find(shape);
          found != own->free.end() && !found->second.empty()) {
        void* const block = found->second.back();
        found->second.pop_back();
        if (found->second.empty()) own->free.erase(found);
        return block;
      }
    mark(exec, bytes);
    collect([](const typename E::Mark& mark) { return E::done(mark); });
    try {
      return m_upstream.allocate(bytes, alignment);
    } catch (const std::bad_alloc&) {
      if (m_marked.empty() && m_instances.empty()) throw;
    }
    collect_all();
    return m_upstream.allocate(bytes, alignment);
  }

  /// Deallocates a block that `exec` allocated. Work that `exec` has already launched may still use
  /// it, but work that it launches later must not.
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    if (block == nullptr) return;
    const std::scoped_lock lock(m_lock);
    try {
      auto own = find(exec);
      if (own == m_instances.end()) own = m_instances.insert(own, {exec, {}});
      own->free[{bytes, alignment}].push_back(block);
    } catch (const std::bad_alloc&) {  // no memory to record the block
      E::wait(E::record(exec));
      m_upstream.deallocate(block, bytes, alignment);
    }
  }

  /// Waits for the work of all instances that have deallocated blocks, and returns the blocks to
  /// the upstream.
  void wait() {
    const std::scoped_lock lock(m_lock);
    collect_all();
  }

  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Upstream> {
    return m_upstream.owns(address);
  }

 private:
  struct Shape {
    std::size_t bytes, alignment;
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  using Blocks = std::map<Shape, std::vector<void*>>;
  /// The blocks that an instance has deallocated.
  struct Instance {
    Exec exec;
    Blocks free;
  };
  /// The blocks that are free when the work before a mark is complete.
  struct Marked {
    typename E::Mark mark;
    Blocks blocks;
  };

  [[nodiscard]] auto find(const Exec& exec) {
    return std::find_if(m_instances.begin(), m_instances.end(),
                        [&](const Instance& instance) { return instance.exec == exec; });
  }
  /// Marks the blocks that instances have deallocated. Those of `exec`, which may reuse them, are
  /// marked only if they have at least `bytes` bytes.
  void mark(const Exec& exec, std::size_t bytes) {
    m_marked.reserve(m_marked.size() + m_instances.size());  // so that no block can be lost
    for (auto instance = m_instances.begin(); instance != m_instances.end();) {
      if (instance->exec == exec && bytes_of(instance->free) < bytes) {
        ++instance;
        continue;
      }
      m_marked.push_back({E::record(instance->exec), std::move(instance->free)});
      instance = m_instances.erase(instance);
    }
  }
  [[nodiscard]] static std::size_t bytes_of(const Blocks& blocks) {
    std::size_t bytes = 0;
    for (const auto& [shape, all] : blocks) bytes += shape.bytes * all.size();
    return bytes;
  }
  /// Returns to the upstream the blocks of all marks for which `over(mark)` is true.
  template <class Over>
  void collect(Over&& over) {
    for (std::size_t m = 0; m < m_marked.size();) {
      if (!over(m_marked[m].mark)) {
        ++m;
        continue;
      }
      give_back(m_marked[m].blocks);
      m_marked.erase(m_marked.begin() + static_cast<std::ptrdiff_t>(m));
    }
  }
  /// Waits for all work, and returns all blocks to the upstream.
  void collect_all() {
    collect([](const typename E::Mark& mark) {
      E::wait(mark);
      return true;
    });
    for (; !m_instances.empty(); m_instances.pop_back()) {
      E::wait(E::record(m_instances.back().exec));
      give_back(m_instances.back().free);
    }
  }
  void give_back(const Blocks& blocks) noexcept {
    for (const auto& [shape, all] : blocks)
      for (void* const block : all) m_upstream.deallocate(block, shape.bytes, shape.alignment);
  }

  Upstream m_upstream;
  impl::Mutex m_lock;
  std::vector<Instance> m_instances;
  std::vector<Marked> m_marked;
};

}  // namespace heddle::inline v0::memory
