// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of mapped.hpp.

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
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
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/fork_guard.hpp>
#include <heddle/memory/impl/region.hpp>
#include <heddle/memory/source/mapped.hpp>

namespace heddle::inline v0::memory {
namespace impl {

/// An open file. A new file is removed unless it is marked as kept.
struct MappedFile {
  const std::string& path;
  int number;
  bool is_new;
  bool kept = false;

  /// Opens the file, and creates it if it is missing. The target of a symbolic link must exist.
  explicit MappedFile(const std::string& of)
      : path(of),
        number(::open(of.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
        is_new(number >= 0) {
    if (number < 0 && errno == EEXIST) number = ::open(of.c_str(), O_RDWR | O_CLOEXEC);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (is_new && !kept) ::unlink(path.c_str());
    if (number >= 0) ::close(number);
  }
};

}  // namespace impl

HEDDLE_FULL_INLINE Mapped::Mapped(const std::string& file, std::size_t bytes)
    : m_region(map(file, bytes)) {}

HEDDLE_FULL_INLINE void Mapped::unmap() noexcept {
  if (m_region.begin() != nullptr) ::munmap(m_region.begin(), m_region.bytes());
}

HEDDLE_FULL_INLINE void* Mapped::allocate(std::size_t bytes, std::size_t alignment) {
  expects(m_forks == impl::ForkGuard::forks(), [] {
    return ErrorInfo{where, "the file was mapped by the parent of this process",
                     "both would allocate the same bytes of it", "map another file after fork()"};
  });
  return m_region.allocate(bytes, alignment);
}

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const Mapped& mapped) {
  return out << mapped.m_region;
}

HEDDLE_FULL_INLINE impl::Region Mapped::map(const std::string& path, std::size_t bytes) {
  const auto refuse = [&](std::string why) {
    throw format_error({where, text("cannot map '", path, "'"), std::move(why)});
  };
  const auto fail = [&](const char* call, int error) {
    refuse(text(call, ": ", std::generic_category().message(error)));
  };
  expects(bytes > 0 && bytes <= std::numeric_limits<::off_t>::max(), [&] {
    return ErrorInfo{where, text("cannot map a file of ", bytes, " B"),
                     "its size must be above 0 and fit in off_t"};
  });
  impl::MappedFile file(path);
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

}  // namespace heddle::inline v0::memory
