// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The errors that Heddle throws, and the four clauses each of them says.
/// Catch `heddle::error` for all of them, or the derived class for one cause. Each is a
/// `std::runtime_error` too, but `out_of_memory`, which is a `std::bad_alloc`.

#if !defined(__cpp_exceptions) || !defined(__cpp_rtti)
#error "Heddle needs exceptions and RTTI: compile without -fno-exceptions and -fno-rtti"
#include <heddle_needs_exceptions_and_rtti>  // ends the compilation here
#endif

#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace heddle::inline v0 {

/// What an error says. `where` names the function or object, `what` the problem, `why` the numbers
/// behind it, `fix` what to do. `why` and `fix` may be empty.
struct Complaint {
  std::string where;     ///< the function or object
  std::string what;      ///< the problem
  std::string why = {};  ///< the numbers behind it
  std::string fix = {};  ///< what to do
};

/// "where: what (why); fix", without the empty clauses.
[[nodiscard]] inline std::string to_string(const Complaint& complaint) {
  std::string line = complaint.where + ": " + complaint.what;
  if (!complaint.why.empty()) line += " (" + complaint.why + ")";
  if (!complaint.fix.empty()) line += "; " + complaint.fix;
  return line;
}

/// What every error that Heddle throws is, besides one of the standard library's exceptions. Errors
/// of your own derive from one of those below.
class error {
 public:
  virtual ~error() = default;

  /// The complaint in one line.
  [[nodiscard]] const char* what() const noexcept { return m_line.c_str(); }
  /// The clauses, apart.
  [[nodiscard]] const Complaint& complaint() const noexcept { return m_complaint; }

 protected:
  /// Of what it says.
  explicit error(Complaint complaint)
      : m_complaint(std::move(complaint)), m_line(to_string(m_complaint)) {}

 private:
  Complaint m_complaint;
  std::string m_line;
};

namespace impl {

/// An error that is a `Standard` too. `error` itself is none: what derives from two exceptions of
/// the standard library, `catch (const std::exception&)` lets pass.
template <class Standard>
class Error : public error, public Standard {
 public:
  explicit Error(Complaint complaint)
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

/// The caller passed something that the function's contract excludes.
class contract_error : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// A peer or a device failed, stopped answering or disagrees about what is being said.
class communication_error : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// The request is well formed, but nothing fulfils it: no such schedule, mesh or plan exists.
class infeasible : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// A file or text is not in the form that its reader expects, or cannot be read at all.
class format_error : public impl::Error<std::runtime_error> {
  using Error::Error;
};

/// A memory resource could not supply what was asked of it.
class out_of_memory : public impl::Error<std::bad_alloc> {
  using Error::Error;
};

}  // namespace heddle::inline v0
