// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SpaceSource: a source of bytes in a Kokkos memory space, such as the memory of a GPU, for a
/// tier::Store whose objects do not fit in host memory, or are to be near a device.

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/source.hpp>

namespace heddle::inline v0 {

/// A source in the memory space `Memory`. Copies run in one instance of `Exec`, one at a time, and
/// are complete when a call returns. Its changes are not written to a file:
///
///     tier::Store store(std::make_unique<SpaceSource<Exec>>("weights.tier"), {.model = "gpt"});
///     tier::Cache experts(store, {.capacity = 8_MiB});  // in host memory, from the device
template <class Exec, class Memory = typename Exec::memory_space>
class SpaceSource final : public tier::Source {
  static_assert(Kokkos::is_execution_space_v<Exec> && Kokkos::is_memory_space_v<Memory>,
                "heddle::SpaceSource: name an execution space and a memory space");

 public:
  /// Copies a whole file to the memory, 16 MiB at a time.
  /// @throws format_error if the file cannot be read. Also the error of Kokkos if the memory does
  ///         not suffice.
  explicit SpaceSource(std::string file, Exec exec = Exec())
      : m_name(std::move(file)), m_exec(std::move(exec)) {
    tier::FileSource source(m_name);
    m_content = View(Kokkos::view_alloc("heddle::SpaceSource", Kokkos::WithoutInitializing),
                     source.bytes());
    std::vector<std::byte> piece(std::min<std::size_t>(source.bytes(), std::size_t{16} << 20));
    for (std::size_t at = 0; at < m_content.size(); at += piece.size()) {
      const auto some = std::span(piece).first(std::min(piece.size(), m_content.size() - at));
      source.read(at, some);
      write(at, some);
    }
  }

  /// Returns the path of the file.
  [[nodiscard]] const std::string& name() const noexcept override { return m_name; }
  /// Returns the bytes of its content.
  [[nodiscard]] Bytes bytes() const noexcept override { return m_content.size(); }
  /// Copies the bytes from `offset` on to `to`.
  /// @throws format_error if the content ends before.
  void read(Bytes offset, std::span<std::byte> to) override {
    expect_inside(offset, to.size());
    const std::scoped_lock lock(m_mutex);
    Kokkos::deep_copy(m_exec, Host<std::byte>(to.data(), to.size()),
                      Near<const std::byte>(m_content.data() + offset, to.size()));
    m_exec.fence("heddle::SpaceSource::read");
  }
  /// Replaces the bytes from `offset` on.
  /// @throws format_error if the content ends before.
  void write(Bytes offset, std::span<const std::byte> from) override {
    expect_inside(offset, from.size());
    const std::scoped_lock lock(m_mutex);
    Kokkos::deep_copy(m_exec, Near<std::byte>(m_content.data() + offset, from.size()),
                      Host<const std::byte>(from.data(), from.size()));
    m_exec.fence("heddle::SpaceSource::write");
  }

 private:
  using View = Kokkos::View<std::byte*, Memory>;
  template <class T>
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  template <class T>
  using Near = Kokkos::View<T*, Memory, Kokkos::MemoryUnmanaged>;

  void expect_inside(Bytes offset, std::size_t bytes) const {
    if (offset <= m_content.size() && bytes <= m_content.size() - offset) return;
    throw format_error({"heddle::SpaceSource", text("'", m_name, "' ends too early"),
                        text("bytes [", offset, ", ", offset + bytes, ") of ", m_content.size()),
                        "write the file again"});
  }

  std::string m_name;
  Exec m_exec;
  View m_content;
  std::mutex m_mutex;
};

}  // namespace heddle::inline v0
