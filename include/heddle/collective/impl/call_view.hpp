// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallView: a View of a collective call, as its elements travel: in the order of their indices,
/// whatever the layout.

#include <cstddef>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/joiner.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/memory/space.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The use that a call makes of the elements of a View on this rank.
enum class ViewUse { none, reads, writes, updates };

/// Returns true if the elements of `view` lie one after another in the order of their indices, the
/// last index fastest: then they travel as they lie.
template <class View>
[[nodiscard]] bool in_index_order(const View& view) {
  if constexpr (View::rank <= 1 &&
                !std::is_same_v<typename View::array_layout, Kokkos::LayoutStride>) {
    return true;
  } else {
    bool ordered = true;
    std::size_t inside = 1;
    for (std::size_t axis = View::rank; axis-- > 0;) {
      const std::size_t extent = view.extent(axis);
      ordered = ordered && (extent == 1 || static_cast<std::size_t>(view.stride(axis)) == inside);
      inside *= extent;
    }
    return ordered || inside == 0;
  }
}

/// A View, Lent or Kept, whose elements travel in the order of their indices, the last index
/// fastest, on all ranks: no rank needs to know the layouts of the others. A View whose elements do
/// not lie so is packed before the call and unpacked after it, unless the caller says that all
/// ranks have the same layout. The packed copy lives as long as the call does.
template <class Held>
class CallView {
  using View = std::remove_cvref_t<Held>;
  using Space = typename View::memory_space;
  static constexpr bool on_host = memory::impl::on_host<Space>;
  using InSpace = Kokkos::View<std::byte*, Space>;
  using Mirror = decltype(own_mirror(std::declval<InSpace>()));

 public:
  CallView(const View& view)  // NOLINT(google-explicit-constructor)
      : m_view(view), m_data(begin_of(view)) {}

  /// Sets the use that the call makes of the View, before any other member is called. Allocates
  /// room for packed elements if the elements do not lie in the order of their indices.
  void prepare(ViewUse use) {
    m_use = use;
    if (use != ViewUse::none && !in_index_order(m_view)) make_room();
  }
  /// The same of what ranks of `comm` may read of each other where it lies: the elements of a
  /// SharedView without gaps are brought in order in their own memory, so that the call is in place
  /// on all ranks, whatever their layouts.
  void prepare(ViewUse use, const Communicator& comm) {
    prepare(use);
    if (!m_packed || !m_view.span_is_contiguous()) return;
    const SharedViews* const shared = comm.attached<SharedPlace>().views();
    m_stays = shared != nullptr && shared->hold(begin_of(m_view));
    if (m_stays) m_data = begin_of(m_view);
  }
  /// The same in a call on whole Views, which may have the same layout on all ranks.
  void prepare(const char* where, ViewUse use, const Communicator& comm,
               const CallOptions& options) {
    if (!options.same_layout) return prepare(use, comm);
    m_use = use;
    m_as_it_lies = true;
    expects(m_view.size() == 0 || m_view.span_is_contiguous(), [&] {
      return ErrorInfo{where, "same_layout needs a View without gaps", m_view.label(),
                       "leave CallOptions::same_layout out"};
    });
  }
  /// Packs the elements in any case if they share memory with those of `other`, the other View of
  /// the call. So nothing is read that is already overwritten. Both are prepared.
  template <class Other>
  void keep_apart_from(const CallView<Other>& other) {
    if (!m_packed && overlap(m_data, bytes(), other.data(), other.bytes())) make_room();
  }
  /// prepare() with room that is there already, and is used in any case.
  void prepare_in(std::byte* room, ViewUse use) {
    m_use = use;
    m_data = room;
    m_packed = true;
  }
  /// Says that data() holds a part of the result before the call, because the call is in place.
  void has_part() noexcept { m_has_part = true; }

  [[nodiscard]] const View& view() const noexcept { return m_view; }
  [[nodiscard]] std::size_t size() const { return m_view.size(); }
  [[nodiscard]] Bytes bytes() const { return size() * sizeof(typename View::value_type); }
  /// Returns true if the elements are packed, and unpacked.
  [[nodiscard]] bool packed() const noexcept { return m_packed; }
  /// Returns true if they are so in their own memory.
  [[nodiscard]] bool stays() const noexcept { return m_stays; }
  /// The elements in the order in which they travel.
  [[nodiscard]] std::byte* data() const noexcept { return m_data; }
  /// Returns the order of the elements, which is the same on all ranks.
  [[nodiscard]] std::string order() const {
    if (!m_as_it_lies) return "by index";
    std::string found = "by strides";
    for (std::size_t axis = 0; axis != View::rank; ++axis)
      found += text(axis == 0 ? " " : ", ", m_view.stride(axis), " of ", m_view.extent(axis));
    return found;
  }
  /// Returns the address of the element with `number` elements before it in index order.
  [[nodiscard]] std::byte* place_of(std::size_t number) const {
    if (!m_packed) return begin_of(m_view) + number * sizeof(typename View::value_type);
    std::ptrdiff_t offset = 0;
    for (std::size_t axis = View::rank; axis-- > 0;) {
      const std::size_t extent = axis == 0 ? number + 1 : m_view.extent(axis);
      offset += static_cast<std::ptrdiff_t>(number % extent) *
                static_cast<std::ptrdiff_t>(m_view.stride(axis));
      number /= extent;
    }
    return begin_of(m_view) +
           offset * static_cast<std::ptrdiff_t>(sizeof(typename View::value_type));
  }

  /// Before the call: queued in `exec`.
  template <class Exec>
  void pack(const Exec& exec) const {
    if (!m_packed || !reads()) return;
    std::byte* const room = m_stays ? m_room.data() : m_data;
    kernel::pack(exec, kernel::strided_block_of(m_view), begin_of(m_view), room);
    if (!m_stays) return;
    exec.fence("heddle::collective::packed");
    std::memcpy(m_data, room, bytes());
  }
  /// After the call: done when it returns.
  template <class Exec>
  void unpack(const Exec& exec) const {
    if (!m_packed || !(writes() || m_stays)) return;
    if (m_stays) std::memcpy(m_room.data(), m_data, bytes());
    const std::byte* const room = m_stays ? m_room.data() : m_data;
    kernel::unpack(exec, kernel::strided_block_of(m_view), room, begin_of(m_view));
    exec.fence("heddle::collective::unpacked");
  }

  /// pack() for the MPI library. MPIs that take a device's pointers do not all do so where they
  /// `compute`: then elements go by way of the host.
  template <class Exec>
  void fetch(const Exec& exec, bool computes) {
    pack(exec);
    if constexpr (!on_host) {
      const DevicePath path = device_path(DevicePath::automatic, on_host, gpu_aware<Space>());
      if (m_use == ViewUse::none || (!computes && handed_over<Space>(path, m_data))) return;
      if (m_mirror.size() != bytes()) m_mirror = own_mirror(in_space());
      m_mirrored = true;
      if (reads() || m_has_part) Kokkos::deep_copy(exec, m_mirror, in_space());
    }
  }
  /// Returns the address that MPI gets.
  [[nodiscard]] void* library_data() const {
    if constexpr (!on_host)
      if (m_mirrored) return m_mirror.data();
    return m_data;
  }
  /// unpack() for the MPI library.
  template <class Exec>
  void give(const Exec& exec) const {
    if constexpr (!on_host) {
      if (m_mirrored && writes()) {
        Kokkos::deep_copy(exec, in_space(), m_mirror);
        exec.fence("heddle::collective::staged");
      }
    }
    unpack(exec);
  }

 private:
  void make_room() {
    m_room = memory::message_buffer<Space>("heddle::collective::packed", bytes());
    m_data = m_room.data();
    m_packed = true;
  }
  [[nodiscard]] bool reads() const noexcept {
    return m_use == ViewUse::reads || m_use == ViewUse::updates;
  }
  [[nodiscard]] bool writes() const noexcept {
    return m_use == ViewUse::writes || m_use == ViewUse::updates;
  }
  [[nodiscard]] auto in_space() const {
    return Kokkos::View<std::byte*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(m_data,
                                                                                    bytes());
  }

  Held m_view;
  std::byte* m_data;
  ViewUse m_use = ViewUse::none;
  bool m_packed = false;
  bool m_stays = false;
  bool m_as_it_lies = false;
  bool m_has_part = false;
  bool m_mirrored = false;
  InSpace m_room{};
  std::conditional_t<on_host, char, Mirror> m_mirror{};
};

/// The orders of all Views of a call.
template <class Call>
[[nodiscard]] std::string orders_of_views(Call& call) {
  std::string found;
  std::apply(
      [&](const auto&... each) { ((found += (found.empty() ? "" : "; ") + each.order()), ...); },
      call.views());
  return found;
}

/// Packs all Views of a call, see CallView.
template <class Call>
void pack_views(Call& call) {
  std::apply([&](auto&... each) { (each.pack(call.exec), ...); }, call.views());
}
/// Unpacks all Views of a call, see CallView.
template <class Call>
void unpack_views(Call& call) {
  std::apply([&](auto&... each) { (each.unpack(call.exec), ...); }, call.views());
  call.ended();
}
/// Fetches all Views of a call for MPI, see CallView.
template <class Call>
void fetch_views(Call& call) {
  constexpr bool computes = !std::is_same_v<decltype(Call::reduction), NoReduction>;
  std::apply([&](auto&... each) { (each.fetch(call.exec, computes), ...); }, call.views());
}
/// Gives all Views of a call back from MPI, see CallView.
template <class Call>
void give_views(Call& call) {
  std::apply([&](auto&... each) { (each.give(call.exec), ...); }, call.views());
  call.ended();
}

}  // namespace impl
}  // namespace heddle::inline v0
