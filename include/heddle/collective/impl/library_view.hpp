// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LibraryView: a View as the MPI library takes it.

#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/views.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/memory/space.hpp>

namespace heddle::inline v0 {
namespace impl {

/// A View, Lent or Kept, as MPI can be given it: as it lies, or a copy on the host.
template <class Held>
class LibraryView {
  using View = std::remove_cvref_t<Held>;
  using Space = typename View::memory_space;
  static constexpr bool on_host = memory::impl::on_host<Space>;
  using Mirror = decltype(Kokkos::create_mirror_view(std::declval<View>()));

 public:
  LibraryView(const View& view) : m_view(view) {}  // NOLINT(google-explicit-constructor)

  /// Before the call; `reads` what the View holds. MPIs that take a device's pointers do not all do
  /// so where they `compute`.
  template <class Exec>
  void fetch(const Exec& exec, bool reads, bool computes) {
    if constexpr (!on_host) {
      const DevicePath path = device_path(DevicePath::automatic, on_host, gpu_aware<Space>());
      if (!computes && handed_over<Space>(path, begin_of(m_view))) return;
      if (!m_copied) m_mirror = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, m_view);
      m_copied = true;
      if (reads) Kokkos::deep_copy(exec, m_mirror, m_view);
    }
  }
  /// What MPI is given.
  [[nodiscard]] void* data() const {
    if constexpr (!on_host)
      if (m_copied) return begin_of(m_mirror);
    return begin_of(m_view);
  }
  /// After the call.
  template <class Exec>
  void give(const Exec& exec) const {
    if constexpr (!on_host) {
      if (!m_copied) return;
      Kokkos::deep_copy(exec, m_view, m_mirror);
      exec.fence("heddle::collective::staged");
    }
  }
  [[nodiscard]] const View& view() const noexcept { return m_view; }

 private:
  Held m_view;
  std::conditional_t<on_host, char, Mirror> m_mirror{};
  bool m_copied = false;
};

}  // namespace impl
}  // namespace heddle::inline v0
