// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mapped: memory that is mapped from a file.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/memory/impl/fork_guard.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/impl/region.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// A resource whose memory is a file of fixed size. The system writes to the disk what does not fit
/// into memory, and other processes that map the file see the changes. The file does not record
/// which blocks are live. When it is opened, all of it is free and keeps its contents. Blocks are
/// placed as in a Segment. They are not is_ipc_safe, because Linux since 6.5 does not let a network
/// card write to a file on a disk directly.
class Mapped {
 public:
  /// Maps all `bytes` bytes of a file. A missing or empty file is filled with zeros, and disk space
  /// is reserved for all of it.
  /// @throws format_error naming the file and the system's reason, also if the file has another
  ///         size; contract_error if `bytes` is 0 or more than a file can have. After an error, a
  ///         new file is removed. An existing file is unchanged, but an empty one may have been
  ///         filled with zeros.
  Mapped(const std::string& file, std::size_t bytes);
  /// Moves the resource. No other thread may use either object during the move.
  Mapped(Mapped&&) = default;
  /// Unmaps the file, which stays with its contents. No View may still use it; see ~Pool().
  ~Mapped() {
    impl::ListedView::expect_none_in(*this, where);  // if this program checks Views
    unmap();
  }

  /// Allocates a block in the file. @throws out_of_memory if no free range is large enough;
  /// contract_error in a child of fork(), because the parent would allocate the same bytes.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment);
  /// Deallocates a block.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    m_region.deallocate(block, bytes);
  }
  /// Returns whether the address lies in the file.
  [[nodiscard]] bool owns(const void* address) const noexcept { return m_region.owns(address); }

  /// Returns the first byte of the file. A block's offset in the file is relative to it.
  [[nodiscard]] std::byte* begin() const noexcept { return m_region.begin(); }
  /// Returns the bytes of the file.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_region.bytes(); }
  /// Returns the live bytes.
  [[nodiscard]] std::size_t used() const { return m_region.used(); }

  /// Prints, for example, "5 B of 100 B used, the largest free piece 95 B".
  friend std::ostream& operator<<(std::ostream& out, const Mapped& mapped);

 private:
  static constexpr const char* where = "heddle::memory::Mapped";

  void unmap() noexcept;

  [[nodiscard]] static impl::Region map(const std::string& path, std::size_t bytes);

  impl::Region m_region;
  // Fork count of the process that mapped the file.
  std::uint32_t m_forks = impl::ForkGuard::forks();
};

static_assert(OwningResource<Mapped>);

}  // namespace heddle::inline v0::memory

#if HEDDLE_DEFINES_MEMORY
#include <heddle/memory/source/mapped.ipp>
#endif
