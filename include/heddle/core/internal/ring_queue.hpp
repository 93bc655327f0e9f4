// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RingQueue: a queue in one block of memory.

#include <cstddef>
#include <utility>
#include <vector>

namespace heddle::inline v0::impl {

/// A queue that keeps its memory, so that it allocates nothing while its size stays below the
/// largest one so far. The type has a default constructor.
template <class T>
class RingQueue {
 public:
  /// Returns the number of values.
  [[nodiscard]] std::size_t size() const noexcept { return m_size; }
  /// Returns true if there is no value.
  [[nodiscard]] bool empty() const noexcept { return m_size == 0; }

  /// Returns value `i` from the front.
  [[nodiscard]] T& operator[](std::size_t i) { return m_values[(m_first + i) & mask()]; }
  /// Returns the value at the front.
  [[nodiscard]] T& front() { return (*this)[0]; }

  /// Appends a value.
  void push_back(T value) {
    if (m_size == m_values.size()) grow();
    (*this)[m_size] = std::move(value);
    ++m_size;
  }

  /// Removes all values.
  void clear() {
    while (!empty()) pop_front();
  }

  /// Removes the value at the front.
  void pop_front() {
    front() = T();
    m_first = (m_first + 1) & mask();
    --m_size;
  }

 private:
  [[nodiscard]] std::size_t mask() const noexcept { return m_values.size() - 1; }

  void grow() {
    std::vector<T> larger(m_values.empty() ? 8 : 2 * m_values.size());
    for (std::size_t i = 0; i < m_size; ++i) larger[i] = std::move((*this)[i]);
    m_values = std::move(larger);
    m_first = 0;
  }

  std::vector<T> m_values;  ///< their number is 0 or a power of 2
  std::size_t m_first = 0;
  std::size_t m_size = 0;
};

}  // namespace heddle::inline v0::impl
