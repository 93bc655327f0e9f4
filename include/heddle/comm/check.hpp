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
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

/// Returns MPI's own text for an error code.
[[nodiscard]] inline std::string mpi_error_text(int code) {
  char sentence[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, sentence, &length) != MPI_SUCCESS) return text("MPI error ", code);
  return std::string(sentence, static_cast<std::size_t>(length));
}

/// Throws if `code` is not MPI_SUCCESS. @throws communication_error that contains `where` and MPI's
/// text.
inline void check(int code, std::string_view where) {
  if (code != MPI_SUCCESS) [[unlikely]]
    throw communication_error({std::string(where), "MPI reports an error", mpi_error_text(code)});
}

}  // namespace heddle::inline v0
