// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FunctionRef: a reference to any callable, for functions that are compiled once for all of them.

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace heddle::inline v0::impl {

template <class Signature>
class FunctionRef;

/// A reference to a callable, which must outlive it. It costs no allocation and one indirect call.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  /// Refers to `callable`.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_object_v<std::remove_reference_t<F>> &&
           std::is_invocable_r_v<Result, F&, Arguments...>) FunctionRef(F&& callable)
  noexcept  // NOLINT(google-explicit-constructor): it is a reference
      : m_object(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        m_call([](void* object, Arguments... arguments) -> Result {
          return static_cast<Result>((*static_cast<std::remove_reference_t<F>*>(object))(
              std::forward<Arguments>(arguments)...));
        }) {}

  /// Refers to a plain function.
  FunctionRef(Result (*function)(Arguments...)) noexcept  // NOLINT(google-explicit-constructor)
      : m_object(reinterpret_cast<void*>(function)),
        m_call([](void* object, Arguments... arguments) -> Result {
          return reinterpret_cast<Result (*)(Arguments...)>(object)(
              std::forward<Arguments>(arguments)...);
        }) {}

  /// Calls it.
  Result operator()(Arguments... arguments) const {
    return m_call(m_object, std::forward<Arguments>(arguments)...);
  }

 private:
  void* m_object;
  Result (*m_call)(void*, Arguments...);
};

}  // namespace heddle::inline v0::impl
