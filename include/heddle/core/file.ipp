// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of file.hpp.

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

namespace impl {

// Closes a file when it goes.
struct OpenFile {
  int file;

  explicit OpenFile(int opened) : file(opened) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(file); }
};

// A temporary file beside its target. The destructor removes it unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path target) : m_target(std::move(target)) {
    // O_EXCL finds a free name even if others write here. The name is short even if the target's is
    // long.
    for (int number = 0; m_file < 0; ++number) {
      m_path = m_target.parent_path() / text(".heddle-", ::getpid(), "-", number, ".tmp");
      m_file = ::open(m_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (m_file < 0 && errno != EEXIST && errno != EINTR) fail("open");
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (m_file >= 0) ::close(m_file);
    if (!m_path.empty()) ::unlink(m_path.c_str());
  }

  void write(std::string_view content) {
    while (!content.empty()) {
      const ::ssize_t done = ::write(m_file, content.data(), content.size());
      if (done >= 0)
        content.remove_prefix(static_cast<std::size_t>(done));
      else if (errno != EINTR)
        fail("write");
    }
  }

  // Gives the file the target's name when its bytes are on the disk.
  void publish() {
    // Some file systems have nothing to synchronise and return EINVAL.
    if (::fsync(m_file) != 0 && errno != EINVAL) fail("fsync");
    if (::close(std::exchange(m_file, -1)) != 0) fail("close");
    if (std::rename(m_path.c_str(), m_target.c_str()) != 0) fail("rename");
    m_path.clear();
    // Synchronising the folder puts the name on the disk. If the folder cannot be opened or
    // synchronised, the file is still whole.
    const std::filesystem::path folder = m_target.parent_path();
    const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return;
    ::fsync(opened);
    ::close(opened);
  }

 private:
  [[noreturn]] void fail(const char* call) const {
    const std::string cause = std::generic_category().message(errno);
    throw format_error({"heddle::write_file", "cannot write '" + m_target.string() + "'",
                        text(call, ": ", cause)});
  }

  std::filesystem::path m_target;
  std::filesystem::path m_path;
  int m_file = -1;
};

}  // namespace impl

HEDDLE_INLINE std::string read_file(const std::string& path) {
  const auto refuse = [&] {
    throw format_error({"heddle::read_file", "cannot read '" + path + "'",
                        std::generic_category().message(errno), "check its name and permissions"});
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse();
  const impl::OpenFile closed{file};
  std::string content;
  std::array<char, 1 << 16> piece;
  for (;;) {
    const ::ssize_t done = ::read(file, piece.data(), piece.size());
    if (done == 0) return content;
    if (done > 0)
      content.append(piece.data(), static_cast<std::size_t>(done));
    else if (errno != EINTR)
      refuse();
  }
}

HEDDLE_INLINE void write_file(const std::string& to, std::string_view content) {
  const std::filesystem::path path(to);
  const auto refuse = [&](std::string why) {
    throw format_error({"heddle::write_file", "cannot write '" + path.string() + "'",
                        std::move(why), "name a regular file in a folder that exists"});
  };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (path.empty() || path.filename().empty()) refuse("the path names no file");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    refuse("it exists and is not a regular file");
  const auto target = std::filesystem::weakly_canonical(path, error);
  if (error) refuse(error.message());
  impl::TemporaryFile file(target);
  file.write(content);
  file.publish();
}

}  // namespace heddle::inline v0
