// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of store_writer.hpp.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/checkpoint_format.hpp>
#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/internal/temporary_file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/store.hpp>
#include <heddle/tier/store_writer.hpp>

namespace heddle::inline v0::tier {

HEDDLE_INLINE StoreWriter::StoreWriter(std::string file, std::string_view model)
    : m_name(std::move(file)) {
  m_file.emplace("heddle::tier::StoreWriter", text("'", m_name, ".part'"), m_name + ".part");
  try {
    // A writer that was killed leaves its part.
    if (::ftruncate(m_file->descriptor(), 0) != 0) fail("truncate");
    write(std::string(heddle::impl::checkpoint_head_bytes, '\0'));
    if (!model.empty()) add(Store::model_field, Scalar::i8, std::as_bytes(std::span(model)));
  } catch (...) {
    m_file->remove();
    throw;
  }
}

HEDDLE_INLINE StoreWriter::~StoreWriter() {
  if (m_file) m_file->remove();
}

HEDDLE_INLINE void StoreWriter::add(std::string_view name, Scalar type,
                                    std::span<const std::byte> content) {
  expect_open();
  expects(!m_names.contains(name) && content.size() % size_of(type) == 0, [&] {
    return ErrorInfo{"heddle::tier::StoreWriter", text("cannot add object '", name, "'"),
                     m_names.contains(name) ? std::string("the store has one of this name")
                                            : text(content.size(), " bytes are not whole ", type),
                     "give each object a name of its own and whole elements"};
  });
  write(heddle::impl::field_head(name, type, content.size() / size_of(type), crc32c(content)));
  write({reinterpret_cast<const char*>(content.data()), content.size()});
  m_names.emplace(name);
  ++m_fields;
}

HEDDLE_INLINE void StoreWriter::finish() {
  expect_open();
  const int file = m_file->descriptor();
  if (::lseek(file, 0, SEEK_SET) != 0) fail("lseek");
  write(heddle::impl::checkpoint_head(m_fields, m_bytes));
  if (::fsync(file) != 0 && errno != EINVAL) fail("fsync");
  if (std::rename(m_file->path().c_str(), m_name.c_str()) != 0) fail("rename");
  m_file.reset();
}

HEDDLE_INLINE void StoreWriter::expect_open() const {
  expects(m_file.has_value(), [&] {
    return ErrorInfo{"heddle::tier::StoreWriter",
                     text("'", m_name, "' is finished"),
                     {},
                     "add all objects before finish(), and call it once"};
  });
}

HEDDLE_INLINE void StoreWriter::write(std::string_view bytes) {
  m_bytes += bytes.size();
  if (!heddle::impl::write_all(m_file->descriptor(), bytes)) fail("write");
}

HEDDLE_INLINE void StoreWriter::fail(const char* call) const {
  const std::string cause = std::generic_category().message(errno);
  throw format_error({"heddle::tier::StoreWriter", text("cannot write '", m_name, "'"),
                      text(call, ": ", cause), "check the folder and the space on the disk"});
}

}  // namespace heddle::inline v0::tier
