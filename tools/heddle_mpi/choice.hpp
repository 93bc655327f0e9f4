// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Which table says whether to pack: the user's, or the one for the MPI library that this is built
/// with. For the interposer.

#include <cstdlib>
#include <fstream>
#include <string_view>

#include <heddle/comm/shipped_gains.hpp>
#include <heddle/core/error.hpp>
#include <heddle/layout/pack_table.hpp>

namespace heddle_mpi {

/// That of HEDDLE_MPI_TABLE, or the shipped one. @throws format_error where that file is no table.
[[nodiscard]] inline heddle::PackTable table_of_choice() {
  const char* const name = std::getenv("HEDDLE_MPI_TABLE");
  if (name == nullptr) return heddle::shipped_gains();
  if (std::string_view(name) == "always") return {{1}, {1}, {2.0}};
  if (std::string_view(name) == "never") return {{1}, {1}, {0.5}};
  std::ifstream file(name);
  if (!file) throw heddle::format_error({"HEDDLE_MPI_TABLE", "the file cannot be read", name});
  return heddle::read_pack_table(file);
}

}  // namespace heddle_mpi
