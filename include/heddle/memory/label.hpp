// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Label: what blocks are for, said by who asks for them, for resources that tell it on.

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace heddle::inline v0::memory {

namespace impl {

inline constinit thread_local std::string_view the_current_label;

}  // namespace impl

/// Blocks that this thread asks for in the scope of a Label are for what it says, those within an
/// inner one for what that says:
///
///     const memory::Label label("weights");
///
/// Stats, Tracking and Recorder read it.
class [[nodiscard]] Label {
 public:
  /// The characters of `name` outlive the label.
  explicit Label(std::string_view name) noexcept
      : m_outer(std::exchange(impl::the_current_label, name)) {}
  /// A temporary string does not.
  template <std::same_as<std::string> Temporary>
  explicit Label(Temporary&&) = delete;
  Label(const Label&) = delete;
  Label& operator=(const Label&) = delete;
  ~Label() { impl::the_current_label = m_outer; }

  /// That of the innermost label of this thread, empty where there is none.
  [[nodiscard]] static std::string_view current() noexcept { return impl::the_current_label; }

 private:
  std::string_view m_outer;
};

}  // namespace heddle::inline v0::memory
