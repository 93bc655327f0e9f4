// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of check.hpp.

#include <cstddef>
#include <string>
#include <string_view>

#include <heddle/comm/check.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

namespace impl {

HEDDLE_FULL_INLINE std::string mpi_error_text(int code) {
  char sentence[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, sentence, &length) != MPI_SUCCESS) return text("MPI error ", code);
  return std::string(sentence, static_cast<std::size_t>(length));
}

}  // namespace impl

HEDDLE_FULL_INLINE void impl::throw_mpi_error(int code, std::string_view where) {
  throw communication_error(
      {std::string(where), "MPI reports an error", impl::mpi_error_text(code)});
}

}  // namespace heddle::inline v0
