// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// with: tools/mpigen/mpi_calls.cpp

// Sources and lists of calls in mpigen.

#include "../../tools/mpigen/mpi_calls.hpp"
#include "support.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source = fuzz::text_of(data, size);
  const tool::Stripped stripped = tool::strip(source);
  fuzz::check(tool::insert(stripped) == source, "insert() does not undo strip()");
  fuzz::check(tool::read_list(tool::to_list(stripped.calls), "input") == stripped.calls,
              "a list of calls reads differently once written");
  fuzz::accepts([&] {
    const std::vector<tool::MpiCall> calls = tool::read_list(source, "input");
    if (!calls.empty()) static_cast<void>(tool::score(calls, calls, 1));
    for (const tool::MpiCall& call : calls) {
      static_cast<void>(tool::function_of(call));
      static_cast<void>(tool::arguments_of(call));
    }
  });
  return 0;
}
