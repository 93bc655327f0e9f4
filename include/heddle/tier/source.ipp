// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of source.hpp.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/source.hpp>

namespace heddle::inline v0::tier {

namespace impl {

[[noreturn]] inline void source_failed(const std::string& name, const char* call, int error) {
  throw format_error({"heddle::tier::Source", text("cannot use '", name, "'"),
                      text(call, ": ", std::generic_category().message(error))});
}

[[noreturn]] inline void source_ends(const std::string& name, Bytes bytes) {
  throw format_error(
      {"heddle::tier::Source", text("'", name, "' ends too early, at byte ", bytes)});
}

// Opens a regular file. Returns its descriptor and its size.
[[nodiscard]] inline std::pair<int, Bytes> open_source(const std::string& name, Source::Mode mode) {
  const int flags = mode == Source::Mode::read ? O_RDONLY : O_RDWR;
  const int file = ::open(name.c_str(), flags | O_CLOEXEC);
  if (file < 0) source_failed(name, "open", errno);
  struct ::stat found {};
  const int failed = ::fstat(file, &found) == 0 ? 0 : errno;
  if (failed == 0 && S_ISREG(found.st_mode)) return {file, static_cast<Bytes>(found.st_size)};
  ::close(file);
  if (failed != 0) source_failed(name, "fstat", failed);
  throw format_error(
      {"heddle::tier::Source", text("cannot use '", name, "'"), "it is not a regular file"});
}

// Calls `call(done)` until `bytes` bytes are done. It returns as pread and pwrite do.
template <class Call>
void whole(const std::string& name, const char* what, Bytes offset, std::size_t bytes, Call call) {
  for (std::size_t done = 0; done < bytes;) {
    const ::ssize_t some = call(done);
    if (some == 0) source_ends(name, offset + done);
    if (some > 0)
      done += static_cast<std::size_t>(some);
    else if (errno != EINTR)
      source_failed(name, text(what, " at byte ", offset + done).c_str(), errno);
  }
}

}  // namespace impl

HEDDLE_INLINE FileSource::FileSource(std::string file, Source::Mode mode)
    : m_name(std::move(file)) {
  std::tie(m_file, m_bytes) = impl::open_source(m_name, mode);
}

HEDDLE_INLINE FileSource::~FileSource() { ::close(m_file); }

HEDDLE_INLINE void FileSource::read(Bytes offset, std::span<std::byte> to) {
  impl::whole(m_name, "pread", offset, to.size(), [&](std::size_t done) {
    return ::pread(m_file, to.data() + done, to.size() - done, static_cast<::off_t>(offset + done));
  });
}

HEDDLE_INLINE void FileSource::write(Bytes offset, std::span<const std::byte> from) {
  impl::whole(m_name, "pwrite", offset, from.size(), [&](std::size_t done) {
    return ::pwrite(m_file, from.data() + done, from.size() - done,
                    static_cast<::off_t>(offset + done));
  });
}

HEDDLE_INLINE void FileSource::sync() {
  if (::fsync(m_file) != 0 && errno != EINVAL) impl::source_failed(m_name, "fsync", errno);
}

HEDDLE_INLINE MappedSource::MappedSource(std::string file, Source::Mode mode)
    : m_name(std::move(file)) {
  std::tie(m_file, m_bytes) = impl::open_source(m_name, mode);
  if (m_bytes == 0) return;
  const int access = mode == Source::Mode::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const mapped = ::mmap(nullptr, m_bytes, access, MAP_SHARED, m_file, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::close(m_file);
    impl::source_failed(m_name, "mmap", error);
  }
  m_begin = static_cast<std::byte*>(mapped);
}

HEDDLE_INLINE MappedSource::~MappedSource() {
  if (m_begin != nullptr) ::munmap(m_begin, m_bytes);
  ::close(m_file);
}

HEDDLE_INLINE void MappedSource::expect_present(Bytes offset, std::size_t bytes) const {
  struct ::stat found {};
  if (::fstat(m_file, &found) != 0) impl::source_failed(m_name, "fstat", errno);
  const Bytes end = std::min(m_bytes, static_cast<Bytes>(found.st_size));
  if (offset > end || bytes > end - offset) impl::source_ends(m_name, end);
}

HEDDLE_INLINE void MappedSource::read(Bytes offset, std::span<std::byte> to) {
  expect_present(offset, to.size());
  if (!to.empty()) std::memcpy(to.data(), m_begin + offset, to.size());
}

HEDDLE_INLINE void MappedSource::write(Bytes offset, std::span<const std::byte> from) {
  expect_present(offset, from.size());
  if (!from.empty()) std::memcpy(m_begin + offset, from.data(), from.size());
}

HEDDLE_INLINE void MappedSource::sync() {
  if (m_begin != nullptr && ::msync(m_begin, m_bytes, MS_SYNC) != 0)
    impl::source_failed(m_name, "msync", errno);
}

HEDDLE_INLINE MemorySource::MemorySource(std::string file) : m_name(std::move(file)) {
  FileSource source(m_name);
  m_content.resize(source.bytes());
  source.read(0, m_content);
}

HEDDLE_INLINE void MemorySource::read(Bytes offset, std::span<std::byte> to) {
  if (offset > m_content.size() || to.size() > m_content.size() - offset)
    impl::source_ends(m_name, m_content.size());
  if (!to.empty()) std::memcpy(to.data(), m_content.data() + offset, to.size());
}

HEDDLE_INLINE void MemorySource::write(Bytes offset, std::span<const std::byte> from) {
  if (offset > m_content.size() || from.size() > m_content.size() - offset)
    impl::source_ends(m_name, m_content.size());
  if (!from.empty()) std::memcpy(m_content.data() + offset, from.data(), from.size());
}

}  // namespace heddle::inline v0::tier
