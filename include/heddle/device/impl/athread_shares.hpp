// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How the Kokkos patterns of Athread divide work and main memory among the cores, and what they
/// call a kernel.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <heddle/device/core_group.hpp>

namespace heddle::inline v0::impl {

/// "heddle::kernel::impl::AdamStep<...>": a functor's type, which names its kernel in errors.
/// Kokkos hands a kernel's label to tools, but not to the execution space.
template <class Functor>
[[nodiscard]] constexpr auto name_of_type() {
  const std::string_view signature = __PRETTY_FUNCTION__;  // "... [with Functor = THE TYPE]"
  const std::size_t first = signature.find_first_not_of(' ', signature.find('=') + 1);
  return signature.substr(first, signature.size() - 1 - first);
}
template <class Functor>
inline constexpr std::string_view kernel_name = name_of_type<Functor>();

/// The items [first, last) of a core: blocks in the order of the cores, of which the earlier ones
/// have one item more where 64 does not divide the count.
struct CoreShare {
  std::uint64_t first, last;
};
[[nodiscard]] constexpr CoreShare share_of_core(std::uint64_t items, int core) {
  const auto index = static_cast<std::uint64_t>(core);
  const std::uint64_t each = items / CoreGrid::cores, more = items % CoreGrid::cores;
  const std::uint64_t first = index * each + std::min(index, more);
  return {first, first + each + (index < more ? 1 : 0)};
}
[[nodiscard]] constexpr int working_cores(std::uint64_t items) {
  return static_cast<int>(std::min<std::uint64_t>(items, CoreGrid::cores));
}

/// Main memory, a block for every core, in lines of their own; copies share it.
class PerCore {
 public:
  explicit PerCore(std::size_t bytes)
      : m_lines((bytes + sizeof(Line) - 1) / sizeof(Line)),
        m_memory(new Line[m_lines * CoreGrid::cores]) {}
  [[nodiscard]] void* of(int core) const {
    return m_memory.get() + m_lines * static_cast<std::size_t>(core);
  }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::size_t m_lines;
  std::shared_ptr<Line[]> m_memory;
};

}  // namespace heddle::inline v0::impl
