// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of locked_file.hpp.

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/internal/temporary_file.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE LockedFile::LockedFile(const char* where, const std::string& what,
                                     const std::string& path, std::string_view content) {
  const auto fail = [&] {
    throw format_error({where, "cannot open " + what, std::generic_category().message(errno),
                        "name a file in a folder that exists"});
  };
  std::error_code error;
  m_path = link_target(path, error).string();
  errno = error.value();
  if (error) fail();
  for (;;) {
    m_file = ::open(m_path.c_str(), O_RDWR | O_CLOEXEC);
    if (m_file < 0 && errno == ENOENT) {
      // The new file is whole and locked before it has its name.
      TemporaryFile fresh(where, what, m_path);
      fresh.write(content);
      if (!content.empty()) fresh.sync();
      m_file = fresh.publish_new();
      if (m_file < 0) continue;  // another process was faster
      if (!content.empty()) fresh.sync_folder();
    }
    if (m_file < 0 && errno == EINTR) continue;
    if (m_file < 0) fail();
    // A new file has its lock already, unless another process locked the temporary file before.
    // File systems without locks return another error.
    if (::flock(m_file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(m_file);
      throw format_error({where, what + " is in use",
                          "another process, or another part of this one, "
                          "has it open",
                          "wait for its end, or name another file"});
    }
    // Its owner may have removed or replaced the file between open() and flock().
    if (is_named()) return;
    ::close(m_file);
  }
}

HEDDLE_INLINE LockedFile::~LockedFile() { ::close(m_file); }

HEDDLE_INLINE void LockedFile::remove() noexcept {
  if (is_named()) ::unlink(m_path.c_str());
}

HEDDLE_INLINE bool LockedFile::is_named() const noexcept {
  struct ::stat mine {
  }, named{};
  return ::fstat(m_file, &mine) == 0 && ::stat(m_path.c_str(), &named) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

}  // namespace heddle::inline v0::impl
