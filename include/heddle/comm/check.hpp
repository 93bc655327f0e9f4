// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check(): turns return codes of MPI into exceptions. Heddle's communicators use the error handler
/// MPI_ERRORS_RETURN, so every call of MPI must be checked.

#include <string>
#include <string_view>

#include <mpi.h>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns MPI's own text for an error code.
[[nodiscard]] std::string mpi_error_text(int code);

}  // namespace impl

namespace impl {
/// Throws what check() throws.
[[noreturn]] void throw_mpi_error(int code, std::string_view where);
}  // namespace impl

/// Throws if `code` is not MPI_SUCCESS. @throws communication_error that contains `where` and MPI's
/// text.
inline void check(int code, std::string_view where) {
  if (code != MPI_SUCCESS) [[unlikely]]
    impl::throw_mpi_error(code, where);
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/check.ipp>
#endif
