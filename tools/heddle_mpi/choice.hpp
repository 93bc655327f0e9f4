// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Which tables say whether to pack: the user's, or those for the MPI library that this is built
/// with. For the interposer.

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/pack_table.hpp>

namespace heddle_mpi {

/// What packing gains, by the call: messages of those that block mostly go one at a time, those of
/// the others both ways at once.
struct Gains {
  heddle::PackTable blocking;     ///< MPI_Send and MPI_Recv
  heddle::PackTable nonblocking;  ///< MPI_Isend and MPI_Irecv
};

/// Those of the file `name`; for `always` and `never` no file is read, and null is the shipped
/// table for all, which is the mean of both. @throws format_error where the file is no table, nor
/// two.
[[nodiscard]] inline Gains gains_of(const char* name) {
  const auto for_all = [](const heddle::PackTable& table) { return Gains{table, table}; };
  if (name == nullptr) return for_all(heddle::default_pack_gains());
  if (std::string_view(name) == "always") return for_all({{1}, {1}, {2.0}});
  if (std::string_view(name) == "never") return for_all({{1}, {1}, {0.5}});
  std::ifstream file(name);
  if (!file) throw heddle::format_error({"HEDDLE_MPI_TABLE", "the file cannot be read", name});
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t second = text.find("\nheddle-pack-table");
  std::istringstream first_table(text.substr(0, second));
  const heddle::PackTable blocking = heddle::PackTable::read(first_table);
  if (second == text.npos) return for_all(blocking);
  std::istringstream second_table(text.substr(second + 1));
  return {blocking, heddle::PackTable::read(second_table)};
}

}  // namespace heddle_mpi
