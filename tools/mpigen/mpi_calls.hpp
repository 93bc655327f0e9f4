// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The data transformation of MPIrigen: MPI calls are taken out of a source into a list, and put
/// back. The score compares two lists.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

/// An MPI call of a source.
struct MpiCall {
  std::size_t line = 1;    ///< in the source with all calls, from 1
  std::size_t column = 0;  ///< from 1, in bytes; 0: the call is a statement with lines of its own
  std::string text;        ///< the call, or the whole lines without the last line feed

  friend bool operator==(const MpiCall&, const MpiCall&) = default;
};

/// A source without its MPI calls, and the calls in their order.
struct Stripped {
  std::string source;
  std::vector<MpiCall> calls;
};

/// Removes the calls of MPI functions from C or C++. Calls in comments, in strings and in
/// preprocessor directives stay, as do declarations and calls of PMPI functions. A call that is a
/// statement on lines of its own takes these lines with it.
[[nodiscard]] Stripped strip(std::string_view source);

/// Returns the source with the calls back in their places. insert(strip(s)) equals s.
/// @throws contract_error if a place is beyond the source or within another call.
[[nodiscard]] std::string insert(const Stripped& stripped);

/// Returns one line "line, call" for each call, or "line:column, call".
[[nodiscard]] std::string to_list(const std::vector<MpiCall>& calls);

/// Reads such lines, in any order; `where` is the name of the list in errors.
/// @throws format_error for a line of another form.
[[nodiscard]] std::vector<MpiCall> read_list(std::string_view list, const std::string& where);

/// Returns the name of the function of a call.
[[nodiscard]] std::string function_of(const MpiCall& call);

/// Returns the arguments of a call without blanks and comments.
[[nodiscard]] std::vector<std::string> arguments_of(const MpiCall& call);

/// How well a list of calls agrees with the true one.
struct CallScore {
  std::size_t truth = 0;      ///< calls of the true list
  std::size_t predicted = 0;  ///< calls of the other one
  std::size_t located = 0;    ///< pairs whose lines differ by no more than the tolerance
  std::size_t named = 0;      ///< such pairs of the same function
  std::size_t arguments = 0;  ///< of all arguments of these: the longer list of each pair
  std::size_t equal = 0;      ///< arguments that are equal

  /// The harmonic mean of the shares of both lists that `pairs` pairs are.
  [[nodiscard]] double f1(std::size_t pairs) const {
    return 2.0 * static_cast<double>(pairs) / static_cast<double>(truth + predicted);
  }
  /// The score of the locations.
  [[nodiscard]] double location() const { return f1(located); }
  /// The score of the locations together with the functions.
  [[nodiscard]] double function() const { return f1(named); }
  /// The share of equal arguments; NaN if there are none.
  [[nodiscard]] double argument() const {
    return static_cast<double>(equal) / static_cast<double>(arguments);
  }
};

/// Compares two lists. A call is in at most one pair. Both counts of pairs are the largest possible
/// ones; pairs of a function are formed in the order of the lines.
/// @throws contract_error if both lists are empty.
[[nodiscard]] CallScore score(std::vector<MpiCall> truth, std::vector<MpiCall> predicted,
                              std::size_t tolerance);

}  // namespace tool
