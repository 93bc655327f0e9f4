// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Tracking: finds blocks that are used or deallocated incorrectly.

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

/// A resource for tests that places each block of its upstream between guards, which are bytes that
/// nobody should write. It reports a fault if a block is deallocated twice or never, with a wrong
/// size or alignment, or at an address that was never allocated. It also reports a guard that was
/// overwritten. Each fault is a contract_error that names the block by its Label, size and address,
/// and that is passed to a handler. The upstream sees none of it, because each block is returned to
/// it exactly once, as it was allocated. The resource remembers every address that it ever
/// returned.
template <Resource Up>
class Tracking {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks
  /// A function that is called for each fault, on the thread that causes or finds it.
  using Handler = std::function<void(const contract_error&)>;

  /// Throws the fault. The exception leaves check(), but deallocate() and the destructor are
  /// noexcept. There it ends the program with the message.
  static void raise(const contract_error& fault) { throw contract_error(fault); }

  /// Constructs the adaptor over `upstream`. Each block has `guard` bytes before and after it. The
  /// guard before it is rounded up to a multiple of the block's alignment. Pass 0 if the host
  /// cannot write the memory.
  /// @throws contract_error if the handler is empty, or if no block could have such a guard.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Tracking> &&
           std::constructible_from<Up, Given>) explicit Tracking(Given&& upstream,
                                                                 Handler handler = raise,
                                                                 std::size_t guard = 64)
      : m_upstream(std::forward<Given>(upstream)), m_handler(std::move(handler)), m_guard(guard) {
    expects(m_handler != nullptr, [] {
      return ErrorInfo{where, "the handler is empty", "a fault would be lost",
                       "leave it out, so that faults are thrown"};
    });
    expects(guard <= std::numeric_limits<std::size_t>::max() / 4, [&] {
      return ErrorInfo{where, "no block has room for such guards", text("guard = ", guard)};
    });
  }
  /// Moves the resource. No other thread may use either object during the move.
  Tracking(Tracking&&) = default;
  /// Reports every live block as a leak, after check(). The blocks are not deallocated.
  ~Tracking() {
    check();
    check_returned();
  }

  /// Allocates a guarded block from the upstream. Throws the upstream's exceptions, and
  /// std::bad_alloc if there is no memory to remember the block.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    Block made{bytes, alignment, std::string(Label::current()), true};
    const std::size_t guards = before(made) + m_guard;
    if (bytes > std::numeric_limits<std::size_t>::max() - guards)
      throw out_of_memory(
          {where, text("cannot allocate ", bytes, " B"), text("and guards of ", guards, " B")});
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
  /// Deallocates a live block through the upstream, and reports a fault for any other block.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    std::vector<ErrorInfo> faults;
    Block freed{};
    {
      const std::lock_guard lock(m_mutex);
      const auto found = m_blocks.find(address(block));
      if (found == m_blocks.end()) {
        faults.push_back({where,
                          text("the block at ", block, " is deallocated but was never allocated"),
                          text(bytes, " B", near(address(block)))});
      } else if (!found->second.out) {
        faults.push_back({where, text(name(*found), " is deallocated twice")});
      } else {
        if (bytes != found->second.bytes || alignment != found->second.alignment)
          faults.push_back(
              {where, text(name(*found), " is deallocated with a wrong size or alignment"),
               text("as ", bytes, " B aligned to ", alignment, " B, allocated as ",
                    found->second.bytes, " B aligned to ", found->second.alignment, " B")});
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

  /// Checks the guards of all live blocks. Throws the handler's exceptions.
  void check() const {
    report([&](const auto& block, std::vector<ErrorInfo>& faults) {
      find_written_guards(block, faults);
    });
  }
  /// Reports every live block as a fault. Throws the handler's exceptions.
  void check_returned() const {
    report([&](const auto& block, std::vector<ErrorInfo>& faults) {
      faults.push_back({where, text(name(block), " is never deallocated")});
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
  // Returns the bytes of the guard before a block.
  [[nodiscard]] std::size_t before(const Block& block) const noexcept {
    return (m_guard + block.alignment - 1) / block.alignment * block.alignment;
  }
  [[nodiscard]] static std::string name(const typename Blocks::value_type& block) {
    return text(block.second.label.empty() ? "a block" : "block '" + block.second.label + "'",
                " of ", block.second.bytes, " B at ", reinterpret_cast<void*>(block.first));
  }
  // Returns words that name the live block in which the address lies, if there is one.
  [[nodiscard]] std::string near(std::uintptr_t pointer) const {
    const auto above = m_blocks.upper_bound(pointer);
    if (above == m_blocks.begin()) return {};
    const auto& found = *std::prev(above);
    if (!found.second.out || pointer - found.first >= found.second.bytes) return {};
    return text(", it is byte ", pointer - found.first, " of ", name(found));
  }
  void find_written_guards(const typename Blocks::value_type& block,
                           std::vector<ErrorInfo>& faults) const {
    const auto* const begin = reinterpret_cast<const std::byte*>(block.first);
    const std::byte* const end = begin + block.second.bytes;
    const auto written = [](std::byte byte) { return byte != mark; };
    // If several bytes are overwritten, report the one next to the block.
    const auto low = std::make_reverse_iterator(begin);
    const auto low_end = std::make_reverse_iterator(begin - before(block.second));
    if (const auto byte = std::find_if(low, low_end, written); byte != low_end)
      faults.push_back({where, text(name(block), " was written before its begin"),
                        text("byte -", byte - low + 1)});
    if (const auto* const byte = std::find_if(end, end + m_guard, written); byte != end + m_guard)
      faults.push_back({where, text(name(block), " was written past its end"),
                        text("byte ", byte - begin, " of ", block.second.bytes)});
  }
  template <class Find>
  void report(Find find) const {
    std::vector<ErrorInfo> faults;
    {
      const std::lock_guard lock(m_mutex);
      for (const auto& block : m_blocks)
        if (block.second.out) find(block, faults);
    }
    handle(faults);
  }
  // Called without the lock, so that a handler may allocate.
  void handle(const std::vector<ErrorInfo>& faults) const {
    for (const ErrorInfo& fault : faults) m_handler(contract_error(fault));
  }

  Up m_upstream;
  Handler m_handler;
  std::size_t m_guard;
  mutable impl::Mutex m_mutex;
  Blocks m_blocks;  // the live blocks, and the last dead block at each other address
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Tracking(Given&&) -> Tracking<UpstreamOf<Given>>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given, class Handler>
explicit Tracking(Given&&, Handler) -> Tracking<UpstreamOf<Given>>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given, class Handler>
explicit Tracking(Given&&, Handler, std::size_t) -> Tracking<UpstreamOf<Given>>;

static_assert(Resource<Tracking<Pages>>);

}  // namespace heddle::inline v0::memory
