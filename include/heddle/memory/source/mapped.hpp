// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mapped: memory that is mapped from a file.

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <ostream>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
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
  Mapped(const std::filesystem::path& file, std::size_t bytes) : m_region(map(file, bytes)) {}
  /// Moves the resource. No other thread may use either object during the move.
  Mapped(Mapped&&) = default;
  /// Unmaps the file, which stays with its contents. No View may still use it; see ~Pool().
  ~Mapped() {
    impl::ListedView::expect_none_in(*this, where);
    if (m_region.begin() != nullptr) ::munmap(m_region.begin(), m_region.bytes());
  }

  /// Allocates a block in the file. @throws out_of_memory if no free range is large enough;
  /// contract_error in a child of fork(), because the parent would allocate the same bytes.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    expects(m_forks == impl::ForkGuard::forks(), [] {
      return ErrorInfo{where, "the file was mapped by the parent of this process",
                       "both would allocate the same bytes of it", "map another file after fork()"};
    });
    return m_region.allocate(bytes, alignment);
  }
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
  friend std::ostream& operator<<(std::ostream& out, const Mapped& mapped) {
    return out << mapped.m_region;
  }

 private:
  static constexpr const char* where = "heddle::memory::Mapped";

  /// An open file. A new file is removed unless it is marked as kept.
  struct File {
    const std::filesystem::path& path;
    int number;
    bool is_new;
    bool kept = false;

    /// Opens the file, and creates it if it is missing. The target of a symbolic link must exist.
    explicit File(const std::filesystem::path& of)
        : path(of),
          number(::open(of.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
          is_new(number >= 0) {
      if (number < 0 && errno == EEXIST) number = ::open(of.c_str(), O_RDWR | O_CLOEXEC);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
      if (is_new && !kept) ::unlink(path.c_str());
      if (number >= 0) ::close(number);
    }
  };

  [[nodiscard]] static impl::Region map(const std::filesystem::path& path, std::size_t bytes) {
    const auto refuse = [&](std::string why) {
      throw format_error({where, text("cannot map '", path.string(), "'"), std::move(why)});
    };
    const auto fail = [&](const char* call, int error) {
      refuse(text(call, ": ", std::generic_category().message(error)));
    };
    expects(bytes > 0 && bytes <= std::numeric_limits<::off_t>::max(), [&] {
      return ErrorInfo{where, text("cannot map a file of ", bytes, " B"),
                       "its size must be above 0 and fit in off_t"};
    });
    File file(path);
    if (file.number < 0) fail("open", errno);
    struct ::stat found {};
    if (::fstat(file.number, &found) != 0) fail("fstat", errno);
    if (!S_ISREG(found.st_mode)) refuse("it is not a regular file");
    const auto size = static_cast<::off_t>(bytes);
    if (found.st_size != 0 && found.st_size != size)
      refuse(text("it has ", found.st_size, " B, not ", bytes, " B"));
    // Reserve disk space, because the program would be killed when it writes a page that has none.
    void* mapped = MAP_FAILED;
    try {
      if (const int error = ::posix_fallocate(file.number, 0, size); error != 0) {
        if (found.st_size == 0) static_cast<void>(::ftruncate(file.number, 0));
        fail("posix_fallocate", error);
      }
      mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
      if (mapped == MAP_FAILED) fail("mmap", errno);
      impl::Region region(where, mapped, bytes);
      file.kept = true;
      return region;
    } catch (...) {
      if (mapped != MAP_FAILED) ::munmap(mapped, bytes);
      throw;  // another process may have opened the file, so it keeps its size
    }
  }

  impl::Region m_region;
  // Fork count of the process that mapped the file.
  std::uint32_t m_forks = impl::ForkGuard::forks();
};

static_assert(OwningResource<Mapped>);

}  // namespace heddle::inline v0::memory
