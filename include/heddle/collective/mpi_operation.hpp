// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MPI datatypes and operations for element types and reductions, built-in or user-defined.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/kernel/internal/walk.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns MPI's datatype for numbers of type T, or MPI_DATATYPE_NULL if MPI has none.
template <class T>
[[nodiscard]] MPI_Datatype mpi_number() {
  if constexpr (std::same_as<T, float>) return MPI_FLOAT;
  if constexpr (std::same_as<T, double>) return MPI_DOUBLE;
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    constexpr bool with_sign = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1: return with_sign ? MPI_INT8_T : MPI_UINT8_T;
      case 2: return with_sign ? MPI_INT16_T : MPI_UINT16_T;
      case 4: return with_sign ? MPI_INT32_T : MPI_UINT32_T;
      case 8: return with_sign ? MPI_INT64_T : MPI_UINT64_T;
    }
  }
  return MPI_DATATYPE_NULL;
}

/// True if `R` is an instance of the Kokkos reducer template `Reducer`.
template <class R, template <class, class> class Reducer>
inline constexpr bool is_kokkos = false;
template <template <class, class> class Reducer, class T, class Space>
inline constexpr bool is_kokkos<Reducer<T, Space>, Reducer> = true;

/// Returns MPI's built-in operation for a reduction of numbers, or MPI_OP_NULL if MPI has none.
/// Bitwise and logical operations are for integers only.
template <class R, class T>
[[nodiscard]] MPI_Op mpi_operation() {
  if (mpi_number<T>() == MPI_DATATYPE_NULL) return MPI_OP_NULL;
  if constexpr (std::same_as<R, Sum> || is_kokkos<R, Kokkos::Sum>) return MPI_SUM;
  if constexpr (std::same_as<R, Product> || is_kokkos<R, Kokkos::Prod>) return MPI_PROD;
  if constexpr (std::same_as<R, Min> || is_kokkos<R, Kokkos::Min>) return MPI_MIN;
  if constexpr (std::same_as<R, Max> || is_kokkos<R, Kokkos::Max>) return MPI_MAX;
  if constexpr (std::integral<T>) {
    if constexpr (std::same_as<R, BitAnd> || is_kokkos<R, Kokkos::BAnd>) return MPI_BAND;
    if constexpr (std::same_as<R, BitOr> || is_kokkos<R, Kokkos::BOr>) return MPI_BOR;
    if constexpr (std::same_as<R, BitXor>) return MPI_BXOR;
    if constexpr (std::same_as<R, LogicalAnd> || is_kokkos<R, Kokkos::LAnd>) return MPI_LAND;
    if constexpr (std::same_as<R, LogicalOr> || is_kokkos<R, Kokkos::LOr>) return MPI_LOR;
  }
  return MPI_OP_NULL;
}

}  // namespace impl

/// A reduction without state as a user-defined MPI operation, on a user-defined MPI datatype for
/// elements of T. It is for code that calls MPI itself, and for comparisons. The object owns both
/// handles. MPI must not be finalized before it is destroyed.
template <class T, Reduction<T> R>
requires std::is_empty_v<R> && std::default_initializable<R>
class MpiOperation {
 public:
  /// Creates both handles, and tells MPI whether the operation is commutative.
  MpiOperation() {
    check(MPI_Type_contiguous(sizeof(T), MPI_BYTE, &m_type), "heddle::MpiOperation");
    check(MPI_Type_commit(&m_type), "heddle::MpiOperation");
    check(MPI_Op_create(&merge, commutes<R> ? 1 : 0, &m_operation), "heddle::MpiOperation");
  }
  MpiOperation(const MpiOperation&) = delete;
  MpiOperation& operator=(const MpiOperation&) = delete;
  ~MpiOperation() {
    MPI_Op_free(&m_operation);
    MPI_Type_free(&m_type);
  }

  /// Returns the datatype of the elements.
  [[nodiscard]] MPI_Datatype type() const noexcept { return m_type; }
  /// Returns the operation.
  [[nodiscard]] MPI_Op operation() const noexcept { return m_operation; }

 private:
  static void merge(void* from, void* into, int* count, MPI_Datatype*) {
    const T* const source = static_cast<const T*>(from);
    T* const target = static_cast<T*>(into);
    HEDDLE_INDEPENDENT
    for (int i = 0; i < *count; ++i) {
      if constexpr (commutes<R>) {
        R{}.join(target[i], source[i]);
      } else {  // MPI's order: from, into
        T merged = source[i];
        R{}.join(merged, target[i]);
        target[i] = merged;
      }
    }
  }

  MPI_Datatype m_type = MPI_DATATYPE_NULL;
  MPI_Op m_operation = MPI_OP_NULL;
};

}  // namespace heddle::inline v0
