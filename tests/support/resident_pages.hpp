// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ResidentPages: what a pool has of the system, as the system says it.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <sys/mman.h>
#include <system_error>
#include <vector>

#include <heddle/memory/source/pages.hpp>

namespace heddle::test {

/// Pages of which the system is asked how many it has given. As a Pool's own, unless said
/// otherwise.
class ResidentPages : public memory::Pages {
 public:
  explicit ResidentPages(memory::HugePages huge_pages = memory::HugePages::yes,
                         std::size_t addresses = std::size_t{64} << 30)
      : Pages(huge_pages, addresses) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const block = Pages::allocate(bytes, alignment);
    m_blocks[block] = bytes;
    return block;
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_blocks.erase(block);
    Pages::deallocate(block, bytes, alignment);
  }
  [[nodiscard]] bool extend(void* block, std::size_t bytes, std::size_t more) noexcept {
    if (!Pages::extend(block, bytes, more)) return false;
    m_blocks[block] = bytes + more;
    return true;
  }
  void shrink(void* block, std::size_t bytes, std::size_t less) noexcept {
    m_blocks[block] = bytes - less;
    Pages::shrink(block, bytes, less);
  }

  /// Bytes of pages that all blocks have (mincore()).
  [[nodiscard]] std::size_t resident() const {
    std::size_t pages = 0;
    for (const auto& [block, bytes] : m_blocks) {
      std::vector<unsigned char> is((bytes + page() - 1) / page());
      if (::mincore(block, bytes, is.data()) != 0)
        throw std::system_error(errno, std::generic_category(), "mincore()");
      pages += static_cast<std::size_t>(
          std::ranges::count_if(is, [](unsigned char p) { return p % 2 == 1; }));
    }
    return pages * page();
  }

 private:
  std::map<void*, std::size_t> m_blocks;
};

}  // namespace heddle::test
