// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Tracking: finds blocks that are used or given back in a wrong way.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// Blocks of its upstream between guards, which are bytes that nobody should write. A block that is
/// given back twice, with another size or alignment or without being one, with a guard that was
/// written, or not at all, is a fault: a contract_error that names the block by its Label, size and
/// address goes to a handler. The upstream sees none of it: each block goes back to it once, as it
/// was taken. For tests: it remembers every address that it ever gave.
template <Resource Up>
class Tracking {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks
  /// What is called for each fault, by the thread that makes it or finds it.
  using Handler = std::function<void(const contract_error&)>;

  /// Throws it: out of check() to its caller; but deallocate() and the destructor let nothing out,
  /// and end the program with the sentence.
  static void raise(const contract_error& fault) { throw contract_error(fault); }

  /// `guard`: bytes before and behind each block, 0 where the host cannot write the memory. The
  /// one before is a multiple of the block's alignment.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Tracking> &&
           std::constructible_from<Up, Given>) explicit Tracking(Given&& upstream,
                                                                 Handler handler = raise,
                                                                 std::size_t guard = 64)
      : m_upstream(std::forward<Given>(upstream)), m_handler(std::move(handler)), m_guard(guard) {}
  /// Moves the resource. No other thread may use either object during the move.
  Tracking(Tracking&&) = default;
  /// Every block that is still out is a leak; check() comes first. They stay where they are.
  ~Tracking() {
    check();
    check_returned();
  }

  /// Of the upstream. @throws what that throws, std::bad_alloc for what it remembers.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    Block made{bytes, alignment, std::string(Label::current()), true};
    const std::size_t guards = before(made) + m_guard;
    if (bytes > std::numeric_limits<std::size_t>::max() - guards)
      throw out_of_memory({where, text("no ", bytes, " B"), text(guards, " B more are guards")});
    auto* const begin = static_cast<std::byte*>(m_upstream.allocate(bytes + guards, alignment));
    std::byte* const block = begin + before(made);
    std::fill(begin, block, mark);
    std::fill_n(block + bytes, m_guard, mark);
    try {
      const std::lock_guard lock(m_mutex);
      m_blocks.insert_or_assign(address(block), std::move(made));
    } catch (...) {
      m_upstream.deallocate(begin, bytes + guards, alignment);
      throw;
    }
    return block;
  }
  /// To the upstream, unless it is no block that is out.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    std::vector<Complaint> faults;
    Block freed{};
    {
      const std::lock_guard lock(m_mutex);
      const auto found = m_blocks.find(address(block));
      if (found == m_blocks.end()) {
        faults.push_back({where, text("a block at ", block, " is given back that it never gave"),
                          text(bytes, " B", near(address(block)))});
      } else if (!found->second.out) {
        faults.push_back({where, text(name(*found), " is given back twice")});
      } else {
        if (bytes != found->second.bytes || alignment != found->second.alignment)
          faults.push_back(
              {where, text(name(*found), " is given back as another one"),
               text("as ", bytes, " B aligned to ", alignment, " B, it has ", found->second.bytes,
                    " B aligned to ", found->second.alignment, " B")});
        find_written_guards(*found, faults);
        found->second.out = false;
        freed = found->second;
      }
    }
    if (freed.bytes > 0)
      m_upstream.deallocate(static_cast<std::byte*>(block) - before(freed),
                            before(freed) + freed.bytes + m_guard, freed.alignment);
    handle(faults);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* pointer) const requires OwningResource<Up> {
    return m_upstream.owns(pointer);
  }

  /// Looks at the guards of all blocks that are out. @throws what the handler throws.
  void check() const {
    report([&](const auto& block, std::vector<Complaint>& faults) {
      find_written_guards(block, faults);
    });
  }
  /// Every block that is out is a fault. @throws what the handler throws.
  void check_returned() const {
    report([&](const auto& block, std::vector<Complaint>& faults) {
      faults.push_back({where, text(name(block), " is never given back")});
    });
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  static constexpr const char* where = "heddle::memory::Tracking";
  static constexpr std::byte mark{0xb5};

  struct Block {
    std::size_t bytes;
    std::size_t alignment;
    std::string label;
    bool out;
  };
  using Blocks = std::map<std::uintptr_t, Block>;

  [[nodiscard]] static std::uintptr_t address(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }
  // Bytes of the guard before it.
  [[nodiscard]] std::size_t before(const Block& block) const noexcept {
    return (m_guard + block.alignment - 1) / block.alignment * block.alignment;
  }
  [[nodiscard]] static std::string name(const typename Blocks::value_type& block) {
    return text(block.second.label.empty() ? "a block" : "block '" + block.second.label + "'",
                " of ", block.second.bytes, " B at ", reinterpret_cast<void*>(block.first));
  }
  // The block that an address lies in.
  [[nodiscard]] std::string near(std::uintptr_t pointer) const {
    const auto above = m_blocks.upper_bound(pointer);
    if (above == m_blocks.begin()) return {};
    const auto& found = *std::prev(above);
    if (!found.second.out || pointer - found.first >= found.second.bytes) return {};
    return text(", it is byte ", pointer - found.first, " of ", name(found));
  }
  void find_written_guards(const typename Blocks::value_type& block,
                           std::vector<Complaint>& faults) const {
    const auto* const begin = reinterpret_cast<const std::byte*>(block.first);
    const std::byte* const end = begin + block.second.bytes;
    const auto written = [](std::byte byte) { return byte != mark; };
    // Of several bytes the one that is next to the block.
    const auto low = std::make_reverse_iterator(begin);
    const auto low_end = std::make_reverse_iterator(begin - before(block.second));
    if (const auto byte = std::find_if(low, low_end, written); byte != low_end)
      faults.push_back({where, text(name(block), " was written before its begin"),
                        text("byte -", byte - low + 1)});
    if (const auto* const byte = std::find_if(end, end + m_guard, written); byte != end + m_guard)
      faults.push_back({where, text(name(block), " was written behind its end"),
                        text("byte ", byte - begin, " of ", block.second.bytes)});
  }
  template <class Find>
  void report(Find find) const {
    std::vector<Complaint> faults;
    {
      const std::lock_guard lock(m_mutex);
      for (const auto& block : m_blocks)
        if (block.second.out) find(block, faults);
    }
    handle(faults);
  }
  // Without the lock, for a handler that allocates.
  void handle(const std::vector<Complaint>& faults) const {
    for (const Complaint& fault : faults) m_handler(contract_error(fault));
  }

  Up m_upstream;
  Handler m_handler;
  std::size_t m_guard;
  mutable impl::Mutex m_mutex;
  Blocks m_blocks;  // those that are out, and of others the last at each address
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Tracking(Given&&) -> Tracking<UpstreamOf<Given>>;
/// Likewise.
template <class Given, class Handler>
explicit Tracking(Given&&, Handler) -> Tracking<UpstreamOf<Given>>;
/// Likewise.
template <class Given, class Handler>
explicit Tracking(Given&&, Handler, std::size_t) -> Tracking<UpstreamOf<Given>>;

static_assert(Resource<Tracking<Pages>>);

}  // namespace heddle::inline v0::memory
