// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The WebAssembly module of the explorer's page: one function that takes a request and returns an
/// answer, and the arrays of the drawing. exceptions.cpp has what `throw` and `catch` need.

#include <cstddef>
#include <string>
#include <string_view>

#include "../answer.hpp"

#define EXPORT(name) extern "C" __attribute__((export_name(#name), used))

namespace {

std::string input;   // the request, and behind it the file
std::string output;  // the answer
tool::Explorer explorer;
bool threw = false;

}  // namespace

/// Reserves room for `size` characters of a request and its file, and returns its address.
EXPORT(input) char* reserve(std::size_t size) {
  input.assign(size, '\0');
  return input.data();
}
/// Answers the first `request` characters of the input, with the rest as file. Returns the size of
/// the answer, which is at output(). failed() says whether it is an error.
EXPORT(answer) std::size_t answer(std::size_t request) {
  const std::string_view all(input);
  output = tool::answer_or_error(explorer, all.substr(0, request), all.substr(request), threw);
  return output.size();
}
EXPORT(failed) bool failed() { return threw; }
EXPORT(output) const char* output_text() { return output.data(); }
EXPORT(drawn) const tool::Drawn* drawn() { return explorer.drawn().data(); }
EXPORT(times) const double* times() { return explorer.times().data(); }
EXPORT(live) const double* live() { return explorer.live().data(); }
EXPORT(live_size) std::size_t live_size() { return explorer.live().size(); }
