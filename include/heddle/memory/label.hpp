// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Label: names the purpose of the blocks that a thread allocates, for resources that report it.

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace heddle::inline v0::memory {

namespace impl {

inline constinit thread_local std::string_view the_current_label;

}  // namespace impl

/// A scope that names the purpose of all blocks that this thread allocates in it. An inner Label
/// replaces the outer one until its own scope ends:
///
///     const memory::Label label("weights");
///
/// Stats, Tracking and Recorder read it.
class [[nodiscard]] Label {
 public:
  /// Begins the scope of `name`, whose characters must outlive the label.
  explicit Label(std::string_view name) noexcept
      : m_outer(std::exchange(impl::the_current_label, name)) {}
  /// A temporary string would not outlive the label.
  template <std::same_as<std::string> Temporary>
  explicit Label(Temporary&&) = delete;
  Label(const Label&) = delete;
  Label& operator=(const Label&) = delete;
  ~Label() { impl::the_current_label = m_outer; }

  /// Returns the innermost label of this thread, or an empty string if there is none.
  [[nodiscard]] static std::string_view current() noexcept { return impl::the_current_label; }

 private:
  std::string_view m_outer;
};

}  // namespace heddle::inline v0::memory
