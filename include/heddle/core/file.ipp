// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of file.hpp.

#include <array>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/internal/temporary_file.hpp>
#include <heddle/core/linkage.hpp>

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
  const auto target = impl::link_target(path, error);
  if (error) refuse(error.message());
  impl::TemporaryFile file("heddle::write_file", "'" + target.string() + "'", target);
  file.write(content);
  file.publish();
}

}  // namespace heddle::inline v0
