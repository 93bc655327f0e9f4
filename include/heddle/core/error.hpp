// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The errors that Heddle throws, and the four clauses of their messages.
/// Catch `heddle::error` for all of them, or a derived class for one cause. `out_of_memory` is also
/// a `std::bad_alloc`; the others are also a `std::runtime_error`.

#if !defined(__cpp_exceptions) || !defined(__cpp_rtti)
#error "Heddle needs exceptions and RTTI: compile without -fno-exceptions and -fno-rtti"
#include <heddle_needs_exceptions_and_rtti>  // ends the compilation here
#endif

#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// The four clauses of an error's message. `why` and `fix` may be empty.
struct ErrorInfo {
  std::string where;     ///< the function or object
  std::string what;      ///< the problem
  std::string why = {};  ///< the numbers behind the problem
  std::string fix = {};  ///< what the caller can do
};

/// Returns "where: what (why); fix", without the empty clauses, in one line for a terminal. The
/// clauses may quote files, so control characters and bytes that are not UTF-8 become escapes such
/// as \\x1b.
[[nodiscard]] std::string to_string(const ErrorInfo& complaint);

/// The common base class of all errors that Heddle throws. It is not a standard exception itself,
/// but each class derived from it is. Derive your own errors from one of the classes below.
class error {
 public:
  virtual ~error();

  /// Returns the message in one line.
  [[nodiscard]] const char* what() const noexcept { return m_line.c_str(); }
  /// Returns the clauses of the message as they were given, without escapes.
  [[nodiscard]] const ErrorInfo& complaint() const noexcept { return m_complaint; }

 protected:
  /// Constructs the error from the clauses of its message.
  explicit error(ErrorInfo complaint);

 private:
  ErrorInfo m_complaint;
  std::string m_line;
};

namespace impl {

/// An error that is also a `Standard`. The class `error` is not a standard exception itself,
/// because `catch (const std::exception&)` does not catch a class that has two such base classes.
template <class Standard>
class Error : public error, public Standard {
 public:
  explicit Error(ErrorInfo complaint)
      : error(std::move(complaint)), Standard(made(error::what())) {}
  [[nodiscard]] const char* what() const noexcept final { return error::what(); }

 private:
  static Standard made(const char* line) {
    if constexpr (std::is_constructible_v<Standard, const char*>)
      return Standard(line);
    else
      return {};
  }
};

}  // namespace impl

/// The caller broke a function's contract: an argument or a call is not valid.
class contract_error : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// A peer or a device failed, stopped answering, or does not agree about the communication.
class communication_error : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// The request is well formed, but no schedule, mesh or plan can fulfil it.
class infeasible : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// A file or text cannot be read or written, or its content does not have the expected format.
class format_error : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// A memory resource could not allocate the requested memory.
class out_of_memory : public impl::Error<std::bad_alloc> {
  using Error::Error;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/error.ipp>
#endif
