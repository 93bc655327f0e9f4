// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StoreWriter: writes the file of a Store object by object.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::tier {

/// Writes objects to a file one after another, so that they need not fit into memory together. The
/// file is a checkpoint: Checkpoint::load() reads it, too. It gets its name in finish(), so readers
/// never see a part of it.
///
///     tier::StoreWriter writer("weights.tier", "experts 1");
///     writer.add("expert 0", weights);
///     writer.finish();
class StoreWriter {
 public:
  /// Begins the file of a model. It is written as `file` with the ending `.part` until finish().
  /// @throws format_error if the file cannot be written, or if another writer writes it.
  explicit StoreWriter(std::string file, std::string_view model = {});
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;
  /// Removes the unfinished file.
  ~StoreWriter();

  /// Appends an object of elements of `type`.
  /// @throws contract_error if the name was used before, if the bytes are not whole elements, or
  ///         after finish(); format_error if the file cannot be written.
  void add(std::string_view name, Scalar type, std::span<const std::byte> content);
  /// Appends an object of numbers. Throws as the other overload does.
  template <class Range>
  void add(std::string_view name, const Range& numbers) {
    const std::span values(numbers);
    using Number = typename decltype(values)::value_type;
    static_assert(scalar_of<Number> != Scalar::byte,
                  "heddle::tier::StoreWriter: elements are "
                  "float, double, small floats or integers");
    add(name, scalar_of<Number>, std::as_bytes(values));
  }
  /// Flushes the file to the disk and gives it its name.
  /// @throws format_error if the file cannot be written; contract_error if it is called twice.
  void finish();

 private:
  void expect_open() const;
  void write(std::string_view bytes);
  [[noreturn]] void fail(const char* call) const;

  std::string m_name;
  std::optional<heddle::impl::LockedFile> m_file;  ///< until it is finished
  std::set<std::string, std::less<>> m_names;
  std::uint32_t m_fields = 0;
  Bytes m_bytes = 0;
};

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/store_writer.ipp>
#endif
