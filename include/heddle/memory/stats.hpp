// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stats: how much memory is in use, was at most, and what for.

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

/// Blocks and their bytes, as they were asked for.
struct Usage {
  std::size_t bytes = 0;         ///< of the blocks that are out
  std::size_t blocks = 0;        ///< how many are out
  std::size_t peak = 0;          ///< the most that `bytes` was
  std::size_t total_bytes = 0;   ///< of all blocks ever
  std::size_t total_blocks = 0;  ///< how many there were

  friend bool operator==(const Usage&, const Usage&) = default;
};

/// Blocks of its upstream, counted; also apart for each Label. Labels are remembered on the
/// program's heap, blocks without one cost no memory.
template <Resource Up>
class Stats {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Of the blocks of `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Stats> &&
           std::constructible_from<Up, Given>) explicit Stats(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}

  /// Of the upstream. @throws what that throws, or std::bad_alloc for a label.
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
  /// Likewise in the order of `exec`; what has come back is not out, whether or not work uses it.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    return counted(
        bytes, [&] { return m_upstream.allocate(exec, bytes, alignment); },
        [&](void* block) { m_upstream.deallocate(exec, block, bytes, alignment); });
  }
  /// Likewise.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    if (block == nullptr) return;
    given(block, bytes);
    m_upstream.deallocate(exec, block, bytes, alignment);
  }
  /// By the upstream; the block has so many bytes more, under the label that it was taken for.
  [[nodiscard]] bool extend(void* block, std::size_t bytes,
                            std::size_t more) noexcept requires ExtendableResource<Up> {
    if (!m_upstream.extend(block, bytes, more)) return false;
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_labelled.find(block); found != m_labelled.end())
      grow(*found->second, more);
    grow(m_usage, more);
    return true;
  }
  /// Likewise, less.
  void shrink(void* block, std::size_t bytes,
              std::size_t less) noexcept requires ExtendableResource<Up> {
    m_upstream.shrink(block, bytes, less);
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_labelled.find(block); found != m_labelled.end())
      found->second->bytes -= less;
    m_usage.bytes -= less;
  }
  /// By the upstream; uncounted, as the block has so many bytes still.
  [[nodiscard]] bool remap(void* from, void* to,
                           std::size_t bytes) noexcept requires PagedResource<Up> {
    return m_upstream.remap(from, to, bytes);
  }
  /// Likewise.
  [[nodiscard]] bool discard(void* part, std::size_t bytes) noexcept requires PagedResource<Up> {
    return m_upstream.discard(part, bytes);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }

  /// Of all blocks.
  [[nodiscard]] Usage usage() const {
    const std::lock_guard lock(m_mutex);
    return m_usage;
  }
  /// Of those of a label.
  [[nodiscard]] Usage usage(std::string_view label) const {
    const std::lock_guard lock(m_mutex);
    const auto found = m_labels.find(label);
    return found == m_labels.end() ? Usage{} : found->second;
  }
  /// How often the upstream threw.
  [[nodiscard]] std::size_t failures() const {
    const std::lock_guard lock(m_mutex);
    return m_failures;
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

  /// A line for all blocks, then one for each label, by the peak.
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
  /// What `take` returns, counted, or else by `give` back again.
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
