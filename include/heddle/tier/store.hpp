// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Store: the named objects of a model in a slower memory tier, such as weights in a file.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/source.hpp>

namespace heddle::inline v0::tier {

/// The options of a Store.
struct StoreOptions {
  /// The place where a Store keeps the bytes of its file while it is open.
  enum class Medium : std::uint8_t {
    file,    ///< in the file: one system call for each access
    mapped,  ///< in the file, mapped into memory
    memory,  ///< in host memory: the file is read once, and changes are not written to it
  };

  std::string file = {};         ///< the path of the file; a StoreWriter or a Checkpoint wrote it
  std::string model = {};        ///< if set, the file must be of this model
  Medium medium = Medium::file;  ///< where the bytes are
  bool writable = false;         ///< whether objects may be written
  bool verify = true;            ///< whether read() compares the checksum of the object
  Link shape = {};               ///< emulates a slower tier: accesses wait as on this link
};

/// The fields of a checkpoint as Objects, which are read one by one. The constructor reads the
/// names only, so a Store may be larger than memory.
///
///     tier::Store store({.file = "weights.tier", .model = "experts 1"});
///
/// With a shape, the Store behaves like a tier behind this Link: accesses occupy the link one after
/// another, in the order of the calls, for bytes / bandwidth seconds, and end `latency` seconds
/// later.
class Store final : public Objects {
 public:
  /// The accesses to a Store.
  struct Counters {
    std::uint64_t reads = 0;   ///< objects that were read
    std::uint64_t writes = 0;  ///< objects that were written
    Bytes bytes_read = 0;      ///< their bytes
    Bytes bytes_written = 0;   ///< their bytes
  };

  /// The name of the field that names the model. It is not an object.
  static constexpr const char* model_field = "heddle.model";

  /// Opens a file. @throws format_error if the file cannot be read, is no checkpoint, is cut short,
  /// is damaged, or is of another model. The error names the byte. @throws contract_error if the
  /// shape has a negative latency or no bandwidth.
  explicit Store(StoreOptions options);
  /// Opens another source. The file and the medium of the options do not matter.
  /// Throws as the other constructor does.
  Store(std::unique_ptr<Source> source, StoreOptions options);
  ~Store() override;

  /// Returns the name of the model that the file states, or an empty text.
  [[nodiscard]] const std::string& model() const noexcept { return m_model; }
  /// Returns a checksum of the names, the types and the contents of all objects.
  [[nodiscard]] std::uint32_t checksum() const;
  [[nodiscard]] bool writable() const noexcept override { return m_options.writable; }
  /// Reads an object. @throws format_error also if its checksum is wrong; see Objects::read().
  void read(ObjectId id, std::span<std::byte> to) override;
  /// Writes an object and its checksum. If the program is killed meanwhile, the next read of this
  /// object fails, and the other objects are intact. See Objects::write().
  void write(ObjectId id, std::span<const std::byte> from) override;
  /// Waits until all written objects are on the disk. @throws format_error if the system fails.
  void sync() { m_source->sync(); }
  /// Returns how often the store was read and written so far, and how many bytes.
  [[nodiscard]] Counters counters() const;

 private:
  /// The place of an object.
  struct Place {
    Bytes head = 0;         ///< the offset of the head of its field
    Bytes begin = 0;        ///< the offset of its elements
    std::uint32_t sum = 0;  ///< the checksum of its elements
  };

  void open();
  [[nodiscard]] Seconds use_link(Bytes bytes);
  static void wait(Seconds until);
  [[nodiscard]] std::string head_of(ObjectId id) const;
  [[noreturn]] void refuse(ObjectId id, const char* what, std::string why) const;

  std::unique_ptr<Source> m_source;
  StoreOptions m_options;
  std::string m_model;
  std::vector<Place> m_places;
  struct LinkUse;
  std::unique_ptr<LinkUse> m_link;
  std::atomic<std::uint64_t> m_reads{0}, m_writes{0}, m_bytes_read{0}, m_bytes_written{0};
};

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/store.ipp>
#endif
