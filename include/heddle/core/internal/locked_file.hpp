// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LockedFile: a file with one owner. PathLock: one owner for files that are replaced by rename.

#include <string>
#include <string_view>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

/// An open file that no other LockedFile has open, in this process or in another one, until it is
/// destroyed. The locked file is the one that the path names: if another process creates, renames
/// or removes a file of that path meanwhile, the constructor begins anew. A file system without
/// locks has many owners.
class LockedFile {
 public:
  /// Opens the file at `path` for reading and writing. If there is none, it creates one, which has
  /// `content` from the beginning. `what` names the file in errors of `where`.
  /// @throws format_error if the file has an owner, or if it cannot be opened or created.
  LockedFile(const char* where, const std::string& what, const std::string& path,
             std::string_view content = {});
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile();

  /// Returns the descriptor of the open file.
  [[nodiscard]] int descriptor() const noexcept { return m_file; }
  /// Returns the path behind all symbolic links.
  [[nodiscard]] const std::string& path() const noexcept { return m_path; }
  /// Removes the file from its folder if the path still names it. The lock stays.
  void remove() noexcept;

 private:
  [[nodiscard]] bool is_named() const noexcept;

  std::string m_path;
  int m_file = -1;
};

/// Owns `path` by a locked file `path`.lock, which the destructor removes. Use it for files that
/// are replaced by a rename, because a lock on such a file ends when the file is replaced.
class PathLock {
 public:
  /// @throws format_error as LockedFile does.
  PathLock(const char* where, const std::string& what, const std::string& path)
      : m_file(where, what, path + ".lock") {}
  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;
  ~PathLock() { m_file.remove(); }

 private:
  LockedFile m_file;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_CORE
#include <heddle/core/internal/locked_file.ipp>
#endif
