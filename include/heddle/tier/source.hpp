// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Source: the bytes of a Store, which are a file, a mapped file or host memory. Derive from it for
/// other places, such as the memory of a device.

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::tier {

/// A fixed number of bytes that are read and written by offset. Several threads may call it at
/// once; the caller orders accesses to the same bytes.
class Source {
 public:
  /// How a file is opened.
  enum class Mode : unsigned char {
    read,   ///< it exists and is read only
    write,  ///< it exists, is read, and its bytes may be replaced
  };

  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// Returns the name of the source for error messages, such as the path of the file.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Returns the size of the source.
  [[nodiscard]] virtual Bytes bytes() const noexcept = 0;
  /// Copies the bytes from `offset` on to `to`. @throws format_error if they cannot be read.
  virtual void read(Bytes offset, std::span<std::byte> to) = 0;
  /// Replaces the bytes from `offset` on. @throws format_error if they cannot be written.
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;
  /// Waits until all written bytes are on the disk. @throws format_error if the system fails.
  virtual void sync() {}
};

/// A source that reads and writes a file with one system call for each access.
class FileSource final : public Source {
 public:
  /// Opens a file. @throws format_error with the system's reason, also if it is not a regular file.
  explicit FileSource(std::string file, Source::Mode mode = Source::Mode::read);
  ~FileSource() override;

  [[nodiscard]] const std::string& name() const noexcept override { return m_name; }
  [[nodiscard]] Bytes bytes() const noexcept override { return m_bytes; }
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  void sync() override;

 private:
  std::string m_name;
  int m_file = -1;
  Bytes m_bytes = 0;
};

/// A source that maps a file into memory, so that the system caches its pages. If the file is made
/// shorter by others while it is open, read() throws format_error. The system ends the program if
/// the disk fails; use FileSource if this matters.
class MappedSource final : public Source {
 public:
  /// Maps a file. @throws format_error with the system's reason, also if it is not a regular file.
  explicit MappedSource(std::string file, Source::Mode mode = Source::Mode::read);
  ~MappedSource() override;

  [[nodiscard]] const std::string& name() const noexcept override { return m_name; }
  [[nodiscard]] Bytes bytes() const noexcept override { return m_bytes; }
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  void sync() override;

 private:
  void expect_present(Bytes offset, std::size_t bytes) const;

  std::string m_name;
  int m_file = -1;
  Bytes m_bytes = 0;
  std::byte* m_begin = nullptr;
};

/// A source in host memory. Its changes are not written to a file.
class MemorySource final : public Source {
 public:
  /// Constructs a source of these bytes.
  MemorySource(std::string name, std::vector<std::byte> content)
      : m_name(std::move(name)), m_content(std::move(content)) {}
  /// Reads a whole file into memory. @throws format_error if it cannot be read.
  explicit MemorySource(std::string file);

  [[nodiscard]] const std::string& name() const noexcept override { return m_name; }
  [[nodiscard]] Bytes bytes() const noexcept override { return m_content.size(); }
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;

 private:
  std::string m_name;
  std::vector<std::byte> m_content;
};

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/source.ipp>
#endif
