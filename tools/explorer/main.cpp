// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The code of the explorer's page, in the terminal: prints its answers, and checks its numbers.
// links: heddle::json
// together: 4

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>

#include <heddle/core/file.hpp>

#include "../common/command_line.hpp"
#include "answer.hpp"
#include "check.hpp"

int main(int argc, char** argv) {
  tool::CommandLine program("explorer", "Answers as the page of the schedule explorer does.");
  std::string request, file;
  tool::CommandLine& answer = program.add_command(
      "answer", "Prints the answer to a request.", [&](const tool::CommandLine&) {
        const std::string content = file.empty() ? "" : heddle::read_file(file);
        // Requests about a drawing follow a drawing: "do=draw&schedule=1f1b do=svg".
        tool::Explorer explorer;
        for (std::size_t at = 0, end = 0; at <= request.size(); at = end + 1) {
          end = std::min(request.find(' ', at), request.size());
          bool threw = false;
          std::cout << answer_or_error(explorer, request.substr(at, end - at), content, threw)
                    << '\n';
        }
      });
  answer.add_argument("REQUEST", &request, "key=value pairs joined by &; several with spaces");
  answer.add_input("FILE", &file, "a schedule file, the slices of a trace, or the files of a plan",
                   false);
  int step = 1;
  tool::CommandLine& check = program.add_command(
      "check", "Compares its numbers with the library's, for the whole catalogue.",
      [&](const tool::CommandLine&) { tool::check_numbers(step); });
  check.add_option("step", &step, "every how many numbers of ranks and microbatches, 1: all");
  return program.run(argc, argv);
}
