// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stats: measures the live bytes, the peak and the purpose of allocations.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iomanip>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// The number and bytes of blocks, in the sizes that callers requested.
struct Usage {
  std::size_t bytes = 0;         ///< the bytes of the live blocks
  std::size_t blocks = 0;        ///< the number of live blocks
  std::size_t peak = 0;          ///< the maximum of `bytes` so far
  std::size_t total_bytes = 0;   ///< the bytes of all blocks ever allocated
  std::size_t total_blocks = 0;  ///< the number of all blocks ever allocated

  friend bool operator==(const Usage&, const Usage&) = default;
};

/// A resource that counts the blocks of its upstream, in all and for each Label. Labels are stored
/// on the program's heap. Blocks without a label need no memory for the count.
template <Resource Up>
class Stats {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs the adaptor over `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Stats> &&
           std::constructible_from<Up, Given>) explicit Stats(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}

  /// Allocates from the upstream. Throws the upstream's exceptions, and std::bad_alloc if there is
  /// no memory to count the block for its label.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return counted(
        bytes, [&] { return m_upstream.allocate(bytes, alignment); },
        [&](void* block) { m_upstream.deallocate(block, bytes, alignment); });
  }
  /// Deallocates a block through the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    given(block, bytes);
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// Allocates from the upstream, in the order of `exec`. Throws as allocate() without `exec`.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    return counted(
        bytes, [&] { return m_upstream.allocate(exec, bytes, alignment); },
        [&](void* block) { m_upstream.deallocate(exec, block, bytes, alignment); });
  }
  /// Deallocates a block in the order of `exec`. The block stops counting at once, even if work
  /// still uses it.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    if (block == nullptr) return;
    given(block, bytes);
    m_upstream.deallocate(exec, block, bytes, alignment);
  }
  /// Extends a block through the upstream. The bytes are added under the label that the block was
  /// allocated with.
  [[nodiscard]] bool extend(void* block, std::size_t bytes,
                            std::size_t more) noexcept requires ExtendableResource<Up> {
    if (!m_upstream.extend(block, bytes, more)) return false;
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_labelled.find(block); found != m_labelled.end())
      grow(*found->second, more);
    grow(m_usage, more);
    return true;
  }
  /// Shrinks a block through the upstream, and subtracts the bytes under the block's label.
  void shrink(void* block, std::size_t bytes,
              std::size_t less) noexcept requires ExtendableResource<Up> {
    m_upstream.shrink(block, bytes, less);
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_labelled.find(block); found != m_labelled.end())
      found->second->bytes -= less;
    m_usage.bytes -= less;
  }
  /// Moves pages through the upstream. The counts do not change, because the block keeps its size.
  [[nodiscard]] bool remap(void* from, void* to,
                           std::size_t bytes) noexcept requires PagedResource<Up> {
    return m_upstream.remap(from, to, bytes);
  }
  /// Releases pages through the upstream. The counts do not change.
  [[nodiscard]] bool discard(void* part, std::size_t bytes) noexcept requires PagedResource<Up> {
    return m_upstream.discard(part, bytes);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }

  /// Returns the usage of all blocks.
  [[nodiscard]] Usage usage() const {
    const std::lock_guard lock(m_mutex);
    return m_usage;
  }
  /// Returns the usage of the blocks with a label.
  [[nodiscard]] Usage usage(std::string_view label) const {
    const std::lock_guard lock(m_mutex);
    const auto found = m_labels.find(label);
    return found == m_labels.end() ? Usage{} : found->second;
  }
  /// Returns how often the upstream threw.
  [[nodiscard]] std::size_t failures() const {
    const std::lock_guard lock(m_mutex);
    return m_failures;
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

  /// Prints a table with one line for all blocks, then one line for each label in descending order
  /// of the peak.
  friend std::ostream& operator<<(std::ostream& out, const Stats& stats) {
    const std::lock_guard lock(stats.m_mutex);
    std::vector<std::pair<std::string, Usage>> rows(stats.m_labels.begin(), stats.m_labels.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.peak > b.second.peak; });
    rows.insert(rows.begin(), {"all", stats.m_usage});
    std::size_t width = std::string_view("label").size();
    for (const auto& [label, usage] : rows) width = std::max(width, label.size());
    const auto name = [&](std::string_view label) {
      out << label << std::string(width - label.size(), ' ');
    };
    name("label");
    for (const char* const column : {"peak B", "bytes", "blocks", "total B", "total"})
      out << std::setw(15) << column;
    out << '\n';
    for (const auto& [label, usage] : rows) {
      name(label);
      for (const std::size_t number :
           {usage.peak, usage.bytes, usage.blocks, usage.total_bytes, usage.total_blocks})
        out << std::setw(15) << number;
      out << '\n';
    }
    return out << stats.m_failures << " failures\n";
  }

 private:
  /// Returns the result of `take` after counting it. If it cannot be counted, deallocates it with
  /// `give`.
  template <class Take, class Give>
  [[nodiscard]] void* counted(std::size_t bytes, Take&& take, Give&& give) {
    void* block = nullptr;
    try {
      block = take();
    } catch (...) {
      const std::lock_guard lock(m_mutex);
      ++m_failures;
      throw;
    }
    if (block == nullptr) return block;
    try {
      const std::lock_guard lock(m_mutex);
      if (const std::string_view label = Label::current(); !label.empty()) {
        auto found = m_labels.find(label);
        if (found == m_labels.end()) found = m_labels.emplace(label, Usage{}).first;
        m_labelled.emplace(block, &found->second);
        count(found->second, bytes);
      }
      count(m_usage, bytes);
    } catch (...) {
      give(block);
      throw;
    }
    return block;
  }
  void given(void* block, std::size_t bytes) noexcept {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_labelled.find(block); found != m_labelled.end()) {
      discount(*found->second, bytes);
      m_labelled.erase(found);
    }
    discount(m_usage, bytes);
  }

  static void count(Usage& usage, std::size_t bytes) noexcept {
    grow(usage, bytes);
    usage.blocks += 1;
    usage.total_blocks += 1;
  }
  static void grow(Usage& usage, std::size_t bytes) noexcept {
    usage.bytes += bytes;
    usage.peak = std::max(usage.peak, usage.bytes);
    usage.total_bytes += bytes;
  }
  static void discount(Usage& usage, std::size_t bytes) noexcept {
    usage.bytes -= bytes;
    usage.blocks -= 1;
  }

  Up m_upstream;
  mutable impl::Mutex m_mutex;
  Usage m_usage;
  std::size_t m_failures = 0;
  std::map<std::string, Usage, std::less<>> m_labels;
  std::unordered_map<void*, Usage*> m_labelled;
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Stats(Given&&) -> Stats<UpstreamOf<Given>>;

static_assert(ExtendableResource<Stats<Pages>>);

}  // namespace heddle::inline v0::memory
