// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TemporaryFile: a file that gets its name when it is whole. For write_file() and LockedFile.

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::impl {

/// Writes all bytes to an open file. Returns false if the system returns an error, in errno.
[[nodiscard]] inline bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ::ssize_t done = ::write(file, content.data(), content.size());
    if (done >= 0)
      content.remove_prefix(static_cast<std::size_t>(done));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

/// Returns the file that a new file at `path` replaces, behind all symbolic links. It need not
/// exist.
[[nodiscard]] inline std::filesystem::path link_target(std::filesystem::path path,
                                                       std::error_code& error) {
  constexpr int most = 40;  // as Linux
  for (int links = 0; links < most && std::filesystem::is_symlink(path, error); ++links)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return std::filesystem::weakly_canonical(path, error);
}

/// Gives the file `from` the name `to` if no file has it. Returns false with EEXIST in errno if one
/// has it, and with another error if the system or the file system has no such call.
[[nodiscard]] inline bool rename_new(const char* from, const char* to) {
#ifdef SYS_renameat2
  constexpr unsigned no_replace = 1;  // RENAME_NOREPLACE, which not all C libraries have
  return ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace) == 0;
#else
  (void)from;
  (void)to;
  errno = ENOSYS;
  return false;
#endif
}

/// A temporary file beside its target, which this process locks if it can. The destructor removes
/// it unless it was published.
class TemporaryFile {
 public:
  /// `what` names the target in errors of `where`.
  TemporaryFile(const char* where, std::string what, std::filesystem::path target)
      : m_where(where), m_what(std::move(what)), m_target(std::move(target)) {
    // O_EXCL finds a free name even if others write here. The name is short even if the target's is
    // long.
    for (int number = 0; m_file < 0; ++number) {
      m_path = m_target.parent_path() / text(".heddle-", ::getpid(), "-", number, ".tmp");
      m_file = ::open(m_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (m_file < 0 && errno != EEXIST && errno != EINTR) fail("open");
    }
    ::flock(m_file, LOCK_EX | LOCK_NB);  // not all file systems have locks
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (m_file >= 0) ::close(m_file);
    if (!m_path.empty()) ::unlink(m_path.c_str());
  }

  void write(std::string_view content) {
    if (!write_all(m_file, content)) fail("write");
  }

  /// Flushes the bytes to the disk.
  void sync() {
    // Some file systems have nothing to synchronise and return EINVAL.
    if (::fsync(m_file) != 0 && errno != EINVAL) fail("fsync");
  }

  /// Gives the file the target's name when its bytes are on the disk, and replaces a file of it.
  void publish() {
    sync();
    if (::close(std::exchange(m_file, -1)) != 0) fail("close");
    if (std::rename(m_path.c_str(), m_target.c_str()) != 0) fail("rename");
    m_path.clear();
    sync_folder();
  }

  /// Gives the file the target's name if no file has it. Returns the open file, or -1 if there is a
  /// file of that name.
  [[nodiscard]] int publish_new() {
    if (::link(m_path.c_str(), m_target.c_str()) == 0) {
      ::unlink(m_path.c_str());
    } else {
      if (errno == EEXIST) return -1;
      const bool lacks_links =
          errno == EPERM || errno == ENOTSUP || errno == ENOSYS || errno == EMLINK;
      if (!lacks_links) fail("link");
      if (!rename_new(m_path.c_str(), m_target.c_str())) {
        if (errno == EEXIST) return -1;
        fail("the file system lacks hard links, and renameat2",
             "name a file on a file system with hard links");
      }
    }
    m_path.clear();
    return std::exchange(m_file, -1);
  }

  /// Puts the name on the disk. If the folder cannot be opened or synchronised, the file is still
  /// whole.
  void sync_folder() const {
    const std::filesystem::path folder = m_target.parent_path();
    const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return;
    ::fsync(opened);
    ::close(opened);
  }

 private:
  [[noreturn]] void fail(const char* call, const char* fix = "") const {
    const int cause = errno;
    throw format_error({m_where, "cannot write " + m_what,
                        text(call, ": ", std::generic_category().message(cause)),
                        cause == ENOENT ? "name a file in a folder that exists" : fix});
  }

  const char* m_where;
  std::string m_what;
  std::filesystem::path m_target;
  std::filesystem::path m_path;
  int m_file = -1;
};

}  // namespace heddle::inline v0::impl
