// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MergingIn: the Instance of a call that reduces elements of one type.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <typeinfo>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/join_to.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/mpi_operation.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/internal/walk.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The InstanceIn that merges elements of T. heddle::compiled has those of the usual numbers and
/// reductions.
template <class Exec, class MemorySpace, class T, Reduction<T> R>
class MergingIn final : public InstanceIn<Exec, MemorySpace> {
  using Base = InstanceIn<Exec, MemorySpace>;

 public:
  /// Refers to `exec`, as an InstanceIn does.
  MergingIn(const Exec& exec, const R& reduction) : Base(exec), m_reduction(reduction) {}
  /// Owns `exec`.
  MergingIn(std::unique_ptr<const Exec> exec, const R& reduction)
      : Base(std::move(exec)), m_reduction(reduction) {}

  using Base::copy;
  [[nodiscard]] std::unique_ptr<const Instance> copy(bool beside) const override;
  void perform(const Task& task, bool loops_only) const override;
  [[nodiscard]] const char* reduction() const noexcept override;
  [[nodiscard]] bool commutes() const noexcept override;
  [[nodiscard]] MpiReduction by_mpi() const noexcept override;
  void identity(std::byte* element) const override;

 private:
  void join(const JoinTo<R, T>& each, std::size_t count, bool loops_only) const;

  R m_reduction;
};

/// Returns the Instance for a reduction of a View.
template <class View, class Exec, class R>
[[nodiscard]] MergingIn<Exec, memory_of<View>, typename View::non_const_value_type, R> instance(
    const Exec& exec, const R& reduction) {
  check_reach<Exec, View>();
  return {exec, reduction};
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
std::unique_ptr<const Instance> MergingIn<Exec, MemorySpace, T, R>::copy(bool beside) const {
  return std::unique_ptr<const Instance>(new MergingIn(this->copied(beside), m_reduction));
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
void MergingIn<Exec, MemorySpace, T, R>::perform(const Task& task, bool loops_only) const {
  if (task.kind() == Kind::move || task.kind() == Kind::cast)
    return Base::perform(task, loops_only);
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  if (into.bytes == 0) return;
  if constexpr (std::same_as<T, float> || std::same_as<T, double>)
    if (combines_encoded(task))
      return this->coded(into.bytes / sizeof(T), loops_only,
                         [&](const auto& run) { combine_encoded<T>(task, m_reduction, run); });
  const BoundUse& out = task.uses()[1 - merged_use(task)];
  join({m_reduction, reinterpret_cast<const T*>(into.data), reinterpret_cast<const T*>(from.data),
        reinterpret_cast<T*>(out.data)},
       into.bytes / sizeof(T), loops_only);
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
void MergingIn<Exec, MemorySpace, T, R>::join(const JoinTo<R, T>& each, std::size_t count,
                                              bool loops_only) const {
  const auto loop = [&each](std::size_t begin, std::size_t end) {
    HEDDLE_INDEPENDENT
    for (std::size_t i = begin; i < end; ++i) each(i);
  };
  if constexpr (Base::host_reaches)
    if (this->loops(count, loops_only)) return loop(0, count);
  constexpr const char* label = "heddle::collective::combine";
  if constexpr (kernel::runs_on_host<Exec>) {
    this->in_parts(label, count, loop);
  } else {
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(this->exec(), 0, count),
        each);
    this->exec().fence(label);
  }
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
const char* MergingIn<Exec, MemorySpace, T, R>::reduction() const noexcept {
  return typeid(R).name();
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
bool MergingIn<Exec, MemorySpace, T, R>::commutes() const noexcept {
  return heddle::commutes<R>;
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
MpiReduction MergingIn<Exec, MemorySpace, T, R>::by_mpi() const noexcept {
  return {mpi_number<T>(), mpi_operation<R, T>()};
}

template <class Exec, class MemorySpace, class T, Reduction<T> R>
void MergingIn<Exec, MemorySpace, T, R>::identity(std::byte* element) const {
  const T value = heddle::identity<T>(m_reduction);
  std::memcpy(element, &value, sizeof(T));
}

}  // namespace impl
}  // namespace heddle::inline v0

/// The usual numbers and reductions in host memory.
#define HEDDLE_MERGING(Extern, T, R)                                               \
  Extern template class heddle::impl::MergingIn<Kokkos::DefaultHostExecutionSpace, \
                                                Kokkos::HostSpace, T, heddle::R>;
#define HEDDLE_MERGINGS(Extern)             \
  HEDDLE_MERGING(Extern, float, Sum)        \
  HEDDLE_MERGING(Extern, float, Min)        \
  HEDDLE_MERGING(Extern, float, Max)        \
  HEDDLE_MERGING(Extern, double, Sum)       \
  HEDDLE_MERGING(Extern, double, Min)       \
  HEDDLE_MERGING(Extern, double, Max)       \
  HEDDLE_MERGING(Extern, std::int32_t, Sum) \
  HEDDLE_MERGING(Extern, std::int32_t, Min) \
  HEDDLE_MERGING(Extern, std::int32_t, Max) \
  HEDDLE_MERGING(Extern, std::int64_t, Sum) \
  HEDDLE_MERGING(Extern, std::int64_t, Min) \
  HEDDLE_MERGING(Extern, std::int64_t, Max)

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/internal/merging_in.ipp>
#else
HEDDLE_MERGINGS(extern)
#endif
