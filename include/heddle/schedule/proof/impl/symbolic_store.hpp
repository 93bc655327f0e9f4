// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SymbolicStore: the parts of all buffers of a Schedule, with terms instead of bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The content of every part while a list runs on symbols. Widths are samples where a buffer has
/// granules, bytes where it has a size, and otherwise 1 for each part.
class SymbolicStore {
 public:
  /// Persistent parts have their initial values, and all others none.
  explicit SymbolicStore(const Schedule& schedule);

  /// Returns the terms.
  [[nodiscard]] Terms& terms() noexcept { return m_terms; }
  /// Returns the width of a part.
  [[nodiscard]] std::uint64_t width(BufferId buffer, std::uint32_t part) const;
  /// Returns the width of all parts of a use.
  [[nodiscard]] std::uint64_t width(const Use& use) const;
  /// Returns the content of a part.
  [[nodiscard]] TermId& at(BufferId buffer, std::uint32_t part) {
    return m_content[m_first[+buffer] + part];
  }
  /// Returns the content of a use as one term. It is 0 if a part has no value.
  [[nodiscard]] TermId read(const Use& use);
  /// Gives the parts of a use the ranges of `term`, one after another.
  void write(const Use& use, TermId term);

  /// Runs a move, a combine, a cast or a group. Returns the fault, or an empty string.
  [[nodiscard]] std::string transfer(ActionId id);

 private:
  [[nodiscard]] std::string copy(std::span<const Use> uses);
  [[nodiscard]] std::string combine(std::span<const Use> uses);
  [[nodiscard]] std::string cast(std::span<const Use> uses);
  [[nodiscard]] std::string sum_all(std::span<const Use> uses);
  /// Returns the place of a use, for messages.
  [[nodiscard]] std::string describe(const Use& use) const;

  const Schedule& m_schedule;
  Terms m_terms;
  std::vector<std::size_t> m_first;  ///< by buffer: its first part
  std::vector<TermId> m_content;     ///< by part
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/impl/symbolic_store.ipp>
#endif
