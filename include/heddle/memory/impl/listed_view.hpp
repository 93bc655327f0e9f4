// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListedView: an entry in the list of all Views that lie in memory of resources. Internal.

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/mutex.hpp>

namespace heddle::inline v0::memory::impl {

/// Whether Views are listed, so that a resource which ends before its Views names them: in debug
/// builds, and where HEDDLE_CHECK_VIEWS is defined. Sources of one program may differ; what only
/// some of them list is named.
#if !defined(NDEBUG) || defined(HEDDLE_CHECK_VIEWS)
constexpr bool lists_views = true;
#else
constexpr bool lists_views = false;
#endif

/// A base of whatever counts the copies of a View; listed from enter() to leave().
class ListedView {
 public:
  ListedView(const ListedView&) = delete;
  ListedView& operator=(const ListedView&) = delete;

  /// A resource is about to end, or takes all of its blocks back. @throws contract_error naming the
  /// Views that lie in its memory; which ends the program where a destructor calls this.
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
        return Complaint{
            where, text(count, count == 1 ? " View outlives" : " Views outlive", " its memory"),
            count > most_names ? names + ", ..." : names,
            "let the resource outlive its Views, or share it with them by memory::Shared"};
      });
    }
  }

 protected:
  ListedView() = default;
  ~ListedView() = default;

  /// If Views are listed. The other functions may be called until leave().
  void enter() {
    if constexpr (lists_views) {
      const std::scoped_lock lock(the_lock);
      m_next = std::exchange(the_first, this);
      if (m_next != nullptr) m_next->m_at = &m_next;
      m_at = &the_first;
    }
  }
  /// If it has entered.
  void leave() {
    if (m_at == nullptr) return;
    const std::scoped_lock lock(the_lock);
    *m_at = m_next;
    if (m_next != nullptr) m_next->m_at = m_at;
  }

  /// Where the elements are.
  [[nodiscard]] virtual const void* listed_data() const = 0;
  /// As in "'u' of 800 B".
  [[nodiscard]] virtual std::string listed_name() const = 0;

 private:
  static constexpr std::size_t most_names = 8;

  inline static Mutex the_lock;
  inline static constinit ListedView* the_first = nullptr;

  ListedView* m_next = nullptr;
  ListedView** m_at = nullptr;  ///< what points to this; none if it is not listed
};

}  // namespace heddle::inline v0::memory::impl
