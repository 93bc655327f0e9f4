// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Loop: the items of a kernel on Athread, and the calls of its functor. The loops whose policies
/// need unstable names of Kokkos are in athread_kokkos.hpp.

#include <cstdint>
#include <functional>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/device/core_group.hpp>
#include <heddle/device/impl/athread_shares.hpp>

namespace heddle::inline v0::impl {

/// By std::invoke, because a functor may take the index as a narrower type than the policy's: the
/// compiler does not warn of what the standard library converts.
template <class Tag, class Functor, class... Arguments>
void call(const Functor& functor, Arguments&&... arguments) {
  if constexpr (std::is_void_v<Tag>)
    std::invoke(functor, arguments...);
  else
    std::invoke(functor, Tag{}, arguments...);
}

/// The functor of the user in the one of a pattern. A parallel_for has no other; that of a
/// reduction or scan, which holds its reducer too, is in athread_kokkos.hpp.
template <class Functor>
struct KernelFunctor {
  [[nodiscard]] static const Functor& of(const Functor& functor) { return functor; }
};
template <class Functor>
[[nodiscard]] decltype(auto) functor_of(const Functor& functor) {
  return KernelFunctor<Functor>::of(functor);
}

/// The loop of a kernel: `items()` are shared out, and a core runs its share with the arguments
/// that the pattern adds to the functor's: none, the sum of a reduction, the sum and phase of a
/// scan. `Update` is the sum's type, void in a parallel_for.
template <class Policy, class Functor, class Update>
class Loop;

template <class... Properties, class Functor, class Update>
class Loop<Kokkos::RangePolicy<Properties...>, Functor, Update> {
  using Policy = Kokkos::RangePolicy<Properties...>;
  using Index = typename Policy::member_type;

 public:
  Loop(const Functor& functor, const Policy& policy)
      : m_functor(functor), m_begin(policy.begin()), m_end(policy.end()) {}

  [[nodiscard]] const Functor& functor() const { return m_functor; }
  [[nodiscard]] std::uint64_t items() const {  // a difference in Index may be too large for it
    return m_begin < m_end ? static_cast<std::uint64_t>(m_end) - static_cast<std::uint64_t>(m_begin)
                           : 0;
  }
  template <class... Arguments>
  void run(Core&, CoreShare share, Arguments&&... arguments) const {
    const Index last = at(share.last);
    for (Index i = at(share.first); i < last; ++i)
      call<typename Policy::work_tag>(functor_of(m_functor), i, arguments...);
  }

 private:
  [[nodiscard]] Index at(std::uint64_t item) const {
    return static_cast<Index>(static_cast<std::uint64_t>(m_begin) + item);
  }

  Functor m_functor;
  Index m_begin, m_end;
};

}  // namespace heddle::inline v0::impl
