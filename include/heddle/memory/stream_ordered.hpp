// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamOrdered: blocks that are given back while work that uses them is still under way.

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

/// How it is found out that work of an instance is over: `record(exec)` marks the end of what was
/// launched so far, `done(mark)` asks, `wait(mark)` waits. Equal instances do their work in order.
template <class E, class Exec>
concept Events = std::equality_comparable<Exec> && std::copy_constructible<Exec> &&
    requires(const Exec& exec, const typename E::Mark& mark) {
  { E::record(exec) } -> std::same_as<typename E::Mark>;
  { E::done(mark) } -> std::same_as<bool>;
  E::wait(mark);
};

/// Adds the order of instances of `Exec` to an upstream. A block that an instance gives back is
/// there for the same instance at once, for what it launches next comes after what used the block.
/// Others, and the upstream, have it when the work that was launched before is over; nobody asks
/// for that, and no mark is made, before some instance finds no block of its own, of the same size
/// and alignment; what it has itself goes the same way where that is as many bytes as it asks for.
/// The host waits only where upstream has no more memory otherwise.
///
/// The plain allocate() and deallocate() are those of upstream, for blocks that no work uses. What
/// is taken by one of the pairs goes back by the same. At the end it waits for all instances.
template <Resource Up, class Exec, class E>
requires Events<E, Exec>
class StreamOrdered {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Over `upstream`, which it owns, or refers to if that has a name; see UpstreamOf.
  template <class Given>
  requires std::same_as<UpstreamOf<Given>, Upstream>
  explicit StreamOrdered(Given&& upstream)
      : m_upstream(UpstreamOf<Given>(std::forward<Given>(upstream))) {}
  StreamOrdered(const StreamOrdered&) = delete;
  StreamOrdered& operator=(const StreamOrdered&) = delete;
  ~StreamOrdered() { wait(); }

  /// Of upstream.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_upstream.allocate(bytes, alignment);
  }
  /// To upstream: no work uses the block any more.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_upstream.deallocate(block, bytes, alignment);
  }

  /// For what `exec` launches from now on. @throws out_of_memory where upstream has no more, even
  /// after all work.
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

  /// What `exec` was given: work that it has launched may still use it, work that it launches from
  /// now on does not.
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    if (block == nullptr) return;
    const std::scoped_lock lock(m_lock);
    try {
      auto own = find(exec);
      if (own == m_instances.end()) own = m_instances.insert(own, {exec, {}});
      own->free[{bytes, alignment}].push_back(block);
    } catch (const std::bad_alloc&) {  // there is no memory to keep account of it
      E::wait(E::record(exec));
      m_upstream.deallocate(block, bytes, alignment);
    }
  }

  /// Waits for the work of all instances that have given something back, and gives it to upstream.
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
  /// What an instance has given back.
  struct Instance {
    Exec exec;
    Blocks free;
  };
  /// What is free when the work before a mark is over.
  struct Marked {
    typename E::Mark mark;
    Blocks blocks;
  };

  [[nodiscard]] auto find(const Exec& exec) {
    return std::find_if(m_instances.begin(), m_instances.end(),
                        [&](const Instance& instance) { return instance.exec == exec; });
  }
  /// Of all instances what they have given back; of `exec`, which may need it, only where it is
  /// `bytes` and more.
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
  /// To upstream what `over(mark)` says is free.
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
  /// Likewise all, when the work is over.
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
