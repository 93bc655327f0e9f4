// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of store.hpp.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/checkpoint_format.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/source.hpp>
#include <heddle/tier/store.hpp>

namespace heddle::inline v0::tier {

namespace impl {

inline constexpr const char* store_where = "heddle::tier::Store";

[[nodiscard]] inline std::unique_ptr<Source> source_of(const StoreOptions& options) {
  const Source::Mode mode = options.writable ? Source::Mode::write : Source::Mode::read;
  switch (options.medium) {
    case StoreOptions::Medium::mapped: return std::make_unique<MappedSource>(options.file, mode);
    case StoreOptions::Medium::memory: return std::make_unique<MemorySource>(options.file);
    case StoreOptions::Medium::file: break;
  }
  return std::make_unique<FileSource>(options.file, mode);
}

// Reads the heads of a store one after another. Its errors name the wrong byte.
class HeadReader {
 public:
  explicit HeadReader(Source& source) : m_source(source) {}

  void enter(std::string part) { m_part = std::move(part); }
  [[nodiscard]] Bytes offset() const { return m_offset; }
  [[nodiscard]] Bytes left() const { return m_source.bytes() - m_offset; }
  void skip(Bytes bytes) {
    if (bytes > left()) ends();
    m_offset += bytes;
  }
  [[nodiscard]] std::string take(Bytes bytes) {
    if (bytes > left()) ends();
    std::string taken(bytes, '\0');
    m_source.read(m_offset, std::as_writable_bytes(std::span(taken)));
    m_offset += bytes;
    return taken;
  }
  [[noreturn]] void ends() const {
    fail(m_offset, "ends too early",
         text("the file is cut short: it has ", m_source.bytes(), " bytes"));
  }
  [[noreturn]] void fail(Bytes at, const char* what, std::string why) const {
    throw format_error(
        {store_where,
         text("cannot open '", m_source.name(), "': ", m_part, ' ', what, " at byte ", at),
         std::move(why), "write the store again, or name another file"});
  }

 private:
  Source& m_source;
  Bytes m_offset = 0;
  std::string m_part = "the header";
};

template <class Number>
[[nodiscard]] Number number_at(const std::string& bytes, std::size_t offset) {
  Number value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

[[nodiscard]] inline Seconds link_now() {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace impl

// When the emulated link is free again.
struct Store::LinkUse {
  std::mutex mutex;
  Seconds free = 0;
};

HEDDLE_INLINE Store::Store(StoreOptions options)
    : Objects(impl::store_where),
      m_source(impl::source_of(options)),
      m_options(std::move(options)),
      m_link(std::make_unique<LinkUse>()) {
  open();
}

HEDDLE_INLINE Store::Store(std::unique_ptr<Source> source, StoreOptions options)
    : Objects(impl::store_where),
      m_source(std::move(source)),
      m_options(std::move(options)),
      m_link(std::make_unique<LinkUse>()) {
  open();
}

HEDDLE_INLINE Store::~Store() = default;

HEDDLE_INLINE void Store::open() {
  expects(m_source != nullptr, [] {
    return ErrorInfo{impl::store_where, "there is no source", "the pointer is null"};
  });
  const Link& link = m_options.shape;
  expects(link.latency >= 0 && std::isfinite(link.latency) && link.bandwidth > 0, [&] {
    return ErrorInfo{impl::store_where, "a shape needs a latency of at least 0 and a bandwidth",
                     text("latency ", link.latency, " s, bandwidth ", link.bandwidth, " B/s")};
  });
  namespace format = heddle::impl;
  impl::HeadReader in(*m_source);
  const std::string head = in.take(format::checkpoint_head_bytes);
  if (!head.starts_with(format::checkpoint_magic))
    in.fail(0, "is not that of a store", "it does not begin with the mark of a checkpoint");
  const auto sum = impl::number_at<std::uint32_t>(head, head.size() - 4);
  if (sum != format::checkpoint_sum(std::string_view(head).substr(0, head.size() - 4)))
    in.fail(0, "is damaged", "its bytes do not match their checksum");
  if (const auto version = impl::number_at<std::uint32_t>(head, 8);
      version != format::checkpoint_version)
    in.fail(8, "has another version",
            text(version, ", this library reads ", format::checkpoint_version));
  const auto fields = impl::number_at<std::uint32_t>(head, 12);
  const auto bytes = impl::number_at<std::uint64_t>(head, 16);
  if (bytes > m_source->bytes())
    in.fail(m_source->bytes(), "states more bytes than there are: the file ends",
            text("it is cut short: ", m_source->bytes(), " of ", bytes, " bytes"));
  if (bytes < m_source->bytes())
    in.fail(bytes, "states fewer bytes than there are: more data follow",
            text(m_source->bytes(), " instead of ", bytes, " bytes"));
  std::vector<Object> objects;
  std::set<std::string, std::less<>> names;
  Bytes model_at = 0;
  for (std::uint32_t f = 0; f < fields; ++f) {
    in.enter(text("object ", f));
    Place place{.head = in.offset()};
    std::string field = in.take(format::field_head_bytes);
    field += in.take(Bytes{impl::number_at<std::uint32_t>(field, 0)} + 4);
    const auto type = impl::number_at<std::uint32_t>(field, 4);
    const auto count = impl::number_at<std::uint64_t>(field, 8);
    place.sum = impl::number_at<std::uint32_t>(field, 16);
    const auto checked = std::string_view(field).substr(0, field.size() - 4);
    if (impl::number_at<std::uint32_t>(field, checked.size()) != format::checkpoint_sum(checked))
      in.fail(place.head, "is damaged", "the bytes of its head do not match their checksum");
    std::string name(checked.substr(format::field_head_bytes));
    in.enter(text("object '", name, "'"));
    if (type > static_cast<std::uint32_t>(Scalar::i8))
      in.fail(place.head + 4, "is of an unknown type", text(type));
    const Bytes size = size_of(static_cast<Scalar>(type));
    place.begin = in.offset();
    if (count > in.left() / size) in.ends();
    if (name == model_field) {
      m_model = in.take(count * size);
      model_at = place.begin;
      if (format::checkpoint_sum(m_model) != place.sum)
        in.fail(place.begin, "is damaged", "its bytes do not match their checksum");
      continue;
    }
    in.skip(count * size);
    if (!names.insert(name).second)
      in.fail(place.head, "appears twice", "names of objects must be unique");
    objects.push_back({std::move(name), count * size, static_cast<Scalar>(type)});
    m_places.push_back(place);
  }
  if (in.left() > 0) in.fail(in.offset(), "is followed by more data", text(in.left(), " bytes"));
  if (!m_options.model.empty() && m_options.model != m_model)
    throw format_error(
        {impl::store_where,
         text("'", m_source->name(), "' is of another model: '", m_model, "' at byte ", model_at),
         text("expected '", m_options.model, "'"),
         "name the file of this model, or leave out StoreOptions::model"});
  set_objects(std::move(objects));
}

HEDDLE_INLINE std::string Store::head_of(ObjectId id) const {
  const Object& of = objects()[+id];
  return heddle::impl::field_head(of.name, of.type, of.bytes / size_of(of.type), m_places[+id].sum);
}

HEDDLE_INLINE std::uint32_t Store::checksum() const {
  std::uint32_t sum = 0;
  for (std::size_t o = 0; o < objects().size(); ++o) {
    std::string head = head_of(ObjectId{o});
    head.resize(head.size() - 4);  // a head with its own checksum has the same sum as any other one
    sum = crc32c(std::as_bytes(std::span(head)), sum);
  }
  return sum;
}

HEDDLE_INLINE void Store::refuse(ObjectId id, const char* what, std::string why) const {
  const Place& place = m_places[+id];
  throw format_error({impl::store_where,
                      text("object '", objects()[+id].name, "' of '", m_source->name(), "' ", what,
                           ": bytes ", place.begin, " to ", place.begin + objects()[+id].bytes),
                      std::move(why), "check the disk, or write the store again"});
}

HEDDLE_INLINE void Store::read(ObjectId id, std::span<std::byte> to) {
  expect_size(id, to.size());
  const Seconds until = use_link(to.size());
  try {
    m_source->read(m_places[+id].begin, to);
  } catch (const std::exception& error) {
    refuse(id, "cannot be read", error.what());
  }
  if (m_options.verify && crc32c(to) != m_places[+id].sum)
    refuse(id, "is damaged", "they do not match their checksum");
  ++m_reads;
  m_bytes_read += to.size();
  wait(until);
}

HEDDLE_INLINE void Store::write(ObjectId id, std::span<const std::byte> from) {
  expect_size(id, from.size());
  expects(m_options.writable, [&] {
    return ErrorInfo{impl::store_where, text("object '", object(id).name, "' is read-only"),
                     text("'", m_source->name(), "' was opened to be read"),
                     "set StoreOptions::writable"};
  });
  const Seconds until = use_link(from.size());
  try {
    m_source->write(m_places[+id].begin, from);
    m_places[+id].sum = crc32c(from);
    const std::string head = head_of(id);
    m_source->write(m_places[+id].head, std::as_bytes(std::span(head)));
  } catch (const std::exception& error) {
    refuse(id, "cannot be written", error.what());
  }
  ++m_writes;
  m_bytes_written += from.size();
  wait(until);
}

HEDDLE_INLINE Store::Counters Store::counters() const {
  return {m_reads, m_writes, m_bytes_read, m_bytes_written};
}

// Occupies the link for so many bytes, and returns when they have arrived.
HEDDLE_INLINE Seconds Store::use_link(Bytes bytes) {
  if (m_options.shape == Link{}) return 0;
  const std::lock_guard lock(m_link->mutex);
  m_link->free = std::max(m_link->free, impl::link_now()) + m_options.shape.occupancy(bytes);
  return m_link->free + m_options.shape.latency;
}

// Waits until this time. The last part of the wait does not sleep, because a thread that sleeps
// wakes up late.
HEDDLE_INLINE void Store::wait(Seconds until) {
  if (until == 0) return;
  constexpr Seconds late = 2e-4;
  const Seconds sleep = until - impl::link_now() - late;
  if (sleep > 0) std::this_thread::sleep_for(std::chrono::duration<Seconds>(sleep));
  while (impl::link_now() < until) std::this_thread::yield();
}

}  // namespace heddle::inline v0::tier
