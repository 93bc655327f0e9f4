// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The WebAssembly module of the explorer's page: one function that takes a request and returns an
/// answer, and the arrays of the drawing.
///
/// Debian's C++ library for WebAssembly has no exceptions. The module is compiled with
/// -fignore-exceptions: a throw calls __cxa_throw() below, and no handler runs. It passes the error
/// as JSON to the page, which throws a JavaScript error and so ends the call. Destructors do not
/// run then, so the page discards the instance of the module.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>

#include <heddle/core/error.hpp>
#include <heddle/schedule/order/blocked_order.hpp>
#include <heddle/schedule/order/torch_csv.hpp>

#include "../answer.hpp"

#define EXPORT(name) extern "C" __attribute__((export_name(#name), used))

namespace {

std::string input;   // the request, and behind it the file
std::string output;  // the answer
tool::Explorer explorer;

/// Throws a JavaScript error with a text in JSON.
extern "C" [[noreturn]] __attribute__((import_module("page"), import_name("raise"))) void
raise_json(const char* json, std::size_t size);

/// Returns the thrown object as one of the library's errors, or null.
const heddle::error* error_of(void* object, const std::type_info& type) {
  using namespace heddle;
  if (type == typeid(schedule::wrong_cell)) return static_cast<schedule::wrong_cell*>(object);
  if (type == typeid(blocked_order)) return static_cast<blocked_order*>(object);
  if (type == typeid(contract_error)) return static_cast<contract_error*>(object);
  if (type == typeid(infeasible)) return static_cast<infeasible*>(object);
  if (type == typeid(format_error)) return static_cast<format_error*>(object);
  return nullptr;
}

}  // namespace

/// Reserves room for `size` characters of a request and its file, and returns its address.
EXPORT(input) char* reserve(std::size_t size) {
  input.assign(size, '\0');
  return input.data();
}
/// Answers the first `request` characters of the input, with the rest as file. Returns the size of
/// the answer, which is at output().
EXPORT(answer) std::size_t answer(std::size_t request) {
  const std::string_view all(input);
  output = explorer.answer(all.substr(0, request), all.substr(request));
  return output.size();
}
EXPORT(output) const char* output_text() { return output.data(); }
EXPORT(drawn) const tool::Drawn* drawn() { return explorer.drawn().data(); }
EXPORT(times) const double* times() { return explorer.times().data(); }
EXPORT(live) const double* live() { return explorer.live().data(); }
EXPORT(live_size) std::size_t live_size() { return explorer.live().size(); }

/// Room for the exception that is being thrown. There is only one.
extern "C" void* __cxa_allocate_exception(std::size_t) noexcept {
  alignas(std::max_align_t) static std::byte room[1024];
  return room;
}
extern "C" void __cxa_free_exception(void*) noexcept {}
extern "C" [[noreturn]] void __cxa_throw(void* object, std::type_info* type, void (*)(void*)) {
  std::string json;
  const heddle::error* const error = error_of(object, *type);
  if (error == nullptr) {
    json = tool::error_json("the explorer failed with an exception of its standard library");
  } else if (const auto* cell = dynamic_cast<const heddle::schedule::wrong_cell*>(error)) {
    json = tool::error_json(cell->what(), cell->line(), cell->cell(), cell->grid());
  } else if (const auto* order = dynamic_cast<const heddle::blocked_order*>(error)) {
    json = tool::error_json(order->what(), +order->fault().rank + 1, 0, order->grid());
  } else {
    json = tool::error_json(error->what());
  }
  raise_json(json.data(), json.size());
}
