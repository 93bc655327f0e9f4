// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The errors that Heddle throws, and the four clauses each of them says.
/// Catch `heddle::error` for all of them, or the derived class for one cause.

#include <new>
#include <stdexcept>
#include <string>
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

/// Base of every error that Heddle throws.
class error : public std::runtime_error {
 public:
  /// Its `what()` is the complaint in one line.
  explicit error(Complaint complaint)
      : std::runtime_error(to_string(complaint)), m_complaint(std::move(complaint)) {}

  /// The clauses, apart.
  [[nodiscard]] const Complaint& complaint() const noexcept { return m_complaint; }

 private:
  Complaint m_complaint;
};

/// The caller passed something that the function's contract excludes.
class contract_error : public error {
  using error::error;
};

/// A peer failed, stopped answering or disagrees about what is being said.
class communication_error : public error {
  using error::error;
};

/// The request is well formed, but nothing fulfils it: no such schedule, mesh or plan exists.
class infeasible : public error {
  using error::error;
};

/// A file or text is not in the form that its reader expects, or cannot be read at all.
class format_error : public error {
  using error::error;
};

/// A memory resource could not supply what was asked of it. Also a `std::bad_alloc`.
class out_of_memory : public error, public std::bad_alloc {
 public:
  using error::error;
  /// The complaint in one line, whichever base it is asked through.
  [[nodiscard]] const char* what() const noexcept override { return error::what(); }
};

}  // namespace heddle::inline v0
