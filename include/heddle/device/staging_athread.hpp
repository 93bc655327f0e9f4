// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// `staging` on Athread: DMA between main memory and the local memory of a core.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <heddle/device/athread.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/staging.hpp>

namespace heddle::inline v0 {

/// The version of `staging` for Athread. DMA transfers multiples of 4 bytes at addresses that are
/// multiples of 4. The rest of a copy uses direct loads and stores, element by element, which are
/// counted. This also holds for a whole copy if an address or the distance of rows is not a
/// multiple of 4. An object uses 4 bytes of local memory beside the scratch. Objects must be
/// destroyed in the reverse order of construction. In code for a device, where no core of Athread
/// is, the functions are empty, so that a kernel for several spaces can be compiled for it.
template <>
class staging<Athread> {
 public:
  /// The team handle of a core, whose team has one thread.
  using Member = typename Kokkos::TeamPolicy<Athread>::member_type;

  static constexpr Scratch scratch = Scratch::local;  ///< the core's local memory

  /// Allocates a reply word in local memory.
  KOKKOS_FUNCTION explicit staging(const Member&) {
    KOKKOS_IF_ON_HOST(
        (m_core = current_core(); m_mark = m_core->mark(); m_reply = &m_core->reply();))
  }
  /// Releases the reply word. If a copy is still in flight, because the kernel breaks a rule of the
  /// core group or an exception is active, the word is kept, because a destructor must not throw.
  KOKKOS_FUNCTION ~staging() {
    KOKKOS_IF_ON_HOST((if (m_reply->count >= m_begun) m_core->release(m_mark);))
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// Copies `count` elements from global memory to local memory.
  template <class T>
  KOKKOS_FUNCTION void get(T* local, const T* global, std::size_t count) {
    get(local, global, Rows{1, count, count});
  }
  /// Copies rows to local memory: local[i * columns + j] is element j of row i.
  template <class T>
  KOKKOS_FUNCTION void get([[maybe_unused]] T* local, [[maybe_unused]] const T* global,
                           [[maybe_unused]] const Rows& rows) {
    KOKKOS_IF_ON_HOST((begin_get(local, global, rows);))
  }

  /// Copies `count` elements to global memory.
  template <class T>
  KOKKOS_FUNCTION void put(T* global, const T* local, std::size_t count) {
    put(global, local, Rows{1, count, count});
  }
  /// Copies rows to global memory.
  template <class T>
  KOKKOS_FUNCTION void put([[maybe_unused]] T* global, [[maybe_unused]] const T* local,
                           [[maybe_unused]] const Rows& rows) {
    KOKKOS_IF_ON_HOST((begin_put(global, local, rows);))
  }

  /// Returns when every copy of this object is complete.
  KOKKOS_FUNCTION void wait() { KOKKOS_IF_ON_HOST((m_core->wait(*m_reply, m_begun);)) }

 private:
  struct Request {
    bool direct;
    std::size_t elements;
    std::size_t pieces, piece, gap;  // gap and piece in bytes
    [[nodiscard]] std::size_t bytes() const { return pieces * piece; }
  };

  template <class T>
  void begin_get(T* local, const T* global, const Rows& rows) {
    each_request(local, global, rows, [this](T* to, const T* from, const Request& request) {
      if (request.direct) {
        m_core->count_direct_loads(request.elements);
        std::memcpy(to, from, request.elements * sizeof(T));
      } else {
        m_core->get_strided(to, from, request.bytes(), request.piece, request.gap, *m_reply);
        ++m_begun;
      }
    });
  }

  template <class T>
  void begin_put(T* global, const T* local, const Rows& rows) {
    each_request(local, global, rows, [this](const T* from, T* to, const Request& request) {
      if (request.direct) {
        m_core->count_direct_stores(request.elements);
        std::memcpy(to, from, request.elements * sizeof(T));
      } else {
        m_core->put_strided(to, from, request.bytes(), request.piece, request.gap, *m_reply);
        ++m_begun;
      }
    });
  }

  /// Calls body(local, global, request) for each DMA request of a copy.
  template <class Local, class Global, class Body>
  static void each_request(Local* local, Global* global, const Rows& rows, const Body& body) {
    static_assert(std::is_trivially_copyable_v<Local>,
                  "heddle::staging: only trivially copyable elements can be staged");
    constexpr std::size_t size = sizeof(Local), unit = 4;
    const bool adjacent = rows.count == 1 || rows.stride == rows.columns;
    const Rows lines = adjacent ? Rows{1, rows.count * rows.columns, 0} : rows;
    const std::size_t piece = lines.columns * size;
    const std::size_t gap = adjacent ? 0 : (lines.stride - lines.columns) * size;
    if (lines.count == 0 || piece == 0) return;
    const std::size_t odd =
        reinterpret_cast<std::uintptr_t>(local) | reinterpret_cast<std::uintptr_t>(global);
    if ((odd | piece | gap) % unit == 0) {
      body(local, global, Request{false, lines.count * lines.columns, lines.count, piece, gap});
      return;
    }
    for (std::size_t row = 0; row < lines.count; ++row) {
      Local* const from = local + row * lines.columns;
      Global* const to = global + row * lines.stride;
      const bool aligned =
          ((reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) %
           unit) == 0;
      // Whole elements in whole units.
      const std::size_t moved = aligned ? piece / unit * unit / size : 0;
      const std::size_t whole = moved * size % unit == 0 ? moved : 0;
      if (whole > 0) body(from, to, Request{false, whole, 1, whole * size, 0});
      if (whole < lines.columns)
        body(from + whole, to + whole, Request{true, lines.columns - whole, 0, 0, 0});
    }
  }

  Core* m_core = nullptr;
  [[maybe_unused]] std::size_t m_mark = 0;  ///< used on the host only
  Reply* m_reply = nullptr;
  std::uint32_t m_begun = 0;
};

}  // namespace heddle::inline v0
