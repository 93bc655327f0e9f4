// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// together: 3
// package: core

/// @file
/// The program `mpigen`: prints schedules as programs of MPI alone, takes MPI calls out of sources,
/// puts them back, and scores lists of them.

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>

#include "../common/columns.hpp"
#include "../common/command_line.hpp"
#include "../common/streams.hpp"
#include "emit.hpp"
#include "mpi_calls.hpp"

namespace tool {

namespace {

std::string read(const std::string& file) { return heddle::read_file(file); }

void add_strip(CommandLine& program) {
  const auto files = std::make_shared<std::vector<std::string>>(3);
  CommandLine& command = program.add_command(
      "strip", "Takes the MPI calls out of a C or C++ source.", [files](const CommandLine&) {
        const Stripped stripped = strip(read((*files)[0]));
        write_output((*files)[1], stripped.source);
        write_output((*files)[2], to_list(stripped.calls));
      });
  command.add_input("SOURCE", &(*files)[0], "the source");
  command.add_output("STRIPPED", (*files)[1], "a file for the source without calls");
  command.add_output("LIST", (*files)[2],
                     "a file for the calls: 'LINE, CALL', or 'LINE:COLUMN, CALL' for a call within "
                     "a line, as they stand in SOURCE");
}

void add_insert(CommandLine& program) {
  const auto files = std::make_shared<std::vector<std::string>>(3);
  CommandLine& command = program.add_command(
      "insert", "Puts MPI calls into a source: undoes strip.", [files](const CommandLine&) {
        write_output((*files)[2],
                     insert({read((*files)[0]), read_list(read((*files)[1]), (*files)[1])}));
      });
  command.add_input("STRIPPED", &(*files)[0], "the source without calls");
  command.add_input("LIST", &(*files)[1], "the calls");
  command.add_output("SOURCE", (*files)[2], "a file for the source with calls");
}

/// "-" if there is nothing of which `value` is a share.
std::string share(double value) {
  if (std::isnan(value)) return "-";
  const std::string digits = heddle::text(static_cast<long>(value * 10000 + 0.5));
  const std::string padded = std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  return padded.substr(0, padded.size() - 4) + "." + padded.substr(padded.size() - 4);
}

void add_score(CommandLine& program) {
  const auto files = std::make_shared<std::vector<std::string>>(2);
  CommandLine& command = program.add_command(
      "score", "Compares a list of MPI calls with the true one.", [files](const CommandLine&) {
        const auto truth = read_list(read((*files)[0]), (*files)[0]);
        const auto predicted = read_list(read((*files)[1]), (*files)[1]);
        std::vector<std::vector<std::string>> rows = {
            {"tolerance", "location", "function", "arguments", "located", "named", "equal"}};
        for (std::size_t tolerance = 0; tolerance <= 2; ++tolerance) {
          const CallScore result = score(truth, predicted, tolerance);
          rows.push_back({heddle::text(tolerance), share(result.location()),
                          share(result.function()), share(result.argument()),
                          heddle::text(result.located), heddle::text(result.named),
                          heddle::text(result.equal, '/', result.arguments)});
        }
        print_columns(rows);
      });
  command.add_input("TRUTH", &(*files)[0], "the true list");
  command.add_input("PREDICTED", &(*files)[1], "the other list");
  command.set_note([] {
    return std::string(
        "Two calls are a pair if their lines differ by no more than the tolerance. Location is "
        "the\n"
        "F1 score of the pairs, function that of pairs with the same function, and arguments is "
        "the\n"
        "share of equal arguments in these, or - if they have none.");
  });
}

}  // namespace

}  // namespace tool

int main(int argc, char** argv) {
  tool::CommandLine program(
      "mpigen", "Writes programs of MPI alone, and compares the MPI calls of programs.");
  tool::add_emit(program);
  tool::add_strip(program);
  tool::add_insert(program);
  tool::add_score(program);
  return program.run(argc, argv);
}
