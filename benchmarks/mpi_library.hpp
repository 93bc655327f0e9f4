// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What benchmarks share whose bars name the MPI library that they are measured against.

#include <array>
#include <iostream>
#include <string>
#include <string_view>

#include <mpi.h>

namespace bench {

/// Which MPI this is built with, as bars name it.
inline std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  const std::string words(version.data(), static_cast<std::size_t>(length));
  if (words.find("Open MPI") != std::string::npos) return "openmpi";
  return words.find("MPICH") != std::string::npos ? "mpich" : "other";
}

/// `skip CASE_LIBRARY REASON` for the libraries that this is not built with.
inline void skip_other_libraries(std::string_view name) {
  for (const std::string other : {"openmpi", "mpich"})
    if (other != mpi_library())
      std::cout << "skip " << name << '_' << other << " this program is built with "
                << mpi_library() << std::endl;
}

}  // namespace bench
