// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// stage_space(): the StageSpace of any memory space. Programs that compute on a device compile it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/collective/cast.hpp>
#include <heddle/collective/combine.hpp>
#include <heddle/collective/internal/joiner.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>

namespace heddle::inline v0::impl {

/// Calls `visit` with a null pointer to the type of elements that can be added.
template <class Visit>
void with_number(Scalar type, Visit&& visit) {
  switch (type) {
    case Scalar::f32: return visit(static_cast<float*>(nullptr));
    case Scalar::f64: return visit(static_cast<double*>(nullptr));
    case Scalar::i32: return visit(static_cast<std::int32_t*>(nullptr));
    case Scalar::i64: return visit(static_cast<std::int64_t*>(nullptr));
    default: break;
  }
  throw contract_error({"heddle::Stages", "the elements cannot be added", text("type ", type)});
}

/// The StageSpace of `MemorySpace`.
template <class MemorySpace>
class SpaceOfStages final : public StageSpace {
  using Exec = typename MemorySpace::execution_space;
  template <class T, class Memory = MemorySpace>
  using Elements = Kokkos::View<T*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

 public:
  std::shared_ptr<std::byte> allocate(const char* label, Bytes bytes) const override {
    return owned(Kokkos::View<std::byte*, MemorySpace>(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string(label)), bytes));
  }
  std::shared_ptr<std::byte> allocate_message(const char* label, Bytes bytes) const override {
    return owned(memory::message_buffer<MemorySpace>(label, bytes));
  }
  void clear(std::byte* data, Bytes bytes) const override {
    Kokkos::deep_copy(Elements<std::byte>(data, bytes), std::byte{});
  }
  void copy(const std::byte* from, std::byte* into, Bytes bytes) const override {
    const Exec exec{};
    Kokkos::deep_copy(exec, Elements<std::byte>(into, bytes),
                      Elements<const std::byte>(from, bytes));
    exec.fence("heddle::pipeline::copy");
  }
  void copy_to_host(const std::byte* from, std::byte* host, Bytes bytes) const override {
    Kokkos::deep_copy(Elements<std::byte, Kokkos::HostSpace>(host, bytes),
                      Elements<const std::byte>(from, bytes));
  }
  void copy_from_host(const std::byte* host, std::byte* into, Bytes bytes) const override {
    Kokkos::deep_copy(Elements<std::byte>(into, bytes),
                      Elements<const std::byte, Kokkos::HostSpace>(host, bytes));
  }
  void add(Scalar type, const std::byte* from, std::byte* sum, Bytes bytes) const override {
    const Exec exec{};
    with_number(type, [&]<class T>(T*) {
      T* const into = reinterpret_cast<T*>(sum);
      Kokkos::parallel_for(
          "heddle::pipeline::sum_gradients",
          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, bytes / sizeof(T)),
          JoinTo<Sum, T>{{}, into, reinterpret_cast<const T*>(from), into});
    });
    exec.fence("heddle::pipeline::sum_gradients");
  }
  void combine(const Task& task) const override { combine_in<MemorySpace>(task); }
  void cast(const Task& task) const override { cast_in<MemorySpace>(task); }
  void sum_over_ranks(Scalar type, std::byte* data, Bytes bytes, const Communicator& comm,
                      FunctionRef<void()> poll) const override {
    with_number(type, [&]<class T>(T*) {
      all_reduce(Exec{}, Elements<T>(reinterpret_cast<T*>(data), bytes / sizeof(T)), Sum{}, comm,
                 poll);
    });
  }

 private:
  static std::shared_ptr<std::byte> owned(const Kokkos::View<std::byte*, MemorySpace>& view) {
    return {view.data(), [view](std::byte*) {}};
  }
};

template <class MemorySpace>
const StageSpace& stage_space() {
  static const SpaceOfStages<MemorySpace> space;
  return space;
}

}  // namespace heddle::inline v0::impl
