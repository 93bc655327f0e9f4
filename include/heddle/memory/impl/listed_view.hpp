// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListedView: an entry in the list of all Views whose memory comes from a resource. Internal.

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/mutex.hpp>

namespace heddle::inline v0::memory::impl {

/// True if Views are listed, so that a resource that is destroyed before its Views can name
/// them. They are in debug builds, and if HEDDLE_CHECK_VIEWS is defined. If only some source files
/// of a program list their Views, only those Views are named.
#if !defined(NDEBUG) || defined(HEDDLE_CHECK_VIEWS)
constexpr bool lists_views = true;
#else
constexpr bool lists_views = false;
#endif

/// A base class of the allocation record of a View. It is listed from enter() to leave().
class ListedView {
 public:
  ListedView(const ListedView&) = delete;
  ListedView& operator=(const ListedView&) = delete;

  /// Checks that no listed View lies in the memory of `owner`, which is about to be destroyed or
  /// reset. @throws contract_error that names the Views. In a destructor, which is noexcept, this
  /// ends the program.
  template <class Owner>
  static void expect_none_in(const Owner& owner, const char* where) {
    if constexpr (lists_views) {
      std::string names;
      std::size_t count = 0;
      {
        const std::scoped_lock lock(the_lock);
        for (const ListedView* view = the_first; view != nullptr; view = view->m_next)
          if (owner.owns(view->listed_data()) && count++ < most_names)
            names += (names.empty() ? "" : ", ") + view->listed_name();
      }
      expects(count == 0, [&] {
        return ErrorInfo{
            where, text(count, count == 1 ? " View outlives" : " Views outlive", " its memory"),
            count > most_names ? names + ", ..." : names,
            "let the resource outlive its Views, or share it with them by memory::Shared"};
      });
    }
  }

 protected:
  ListedView() = default;
  ~ListedView() = default;

  /// Enters the list, if Views are listed. The virtual functions may be called until leave().
  void enter() {
    if constexpr (lists_views) {
      const std::scoped_lock lock(the_lock);
      m_next = std::exchange(the_first, this);
      if (m_next != nullptr) m_next->m_at = &m_next;
      m_at = &the_first;
    }
  }
  /// Leaves the list, if this is in it.
  void leave() {
    if (m_at == nullptr) return;
    const std::scoped_lock lock(the_lock);
    *m_at = m_next;
    if (m_next != nullptr) m_next->m_at = m_at;
  }

  /// Returns the address of the elements.
  [[nodiscard]] virtual const void* listed_data() const = 0;
  /// Returns, for example, "'u' of 800 B".
  [[nodiscard]] virtual std::string listed_name() const = 0;

 private:
  static constexpr std::size_t most_names = 8;

  inline static Mutex the_lock;
  inline static constinit ListedView* the_first = nullptr;

  ListedView* m_next = nullptr;
  ListedView** m_at = nullptr;  ///< the pointer to this; null if not listed
};

}  // namespace heddle::inline v0::memory::impl
