// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// The program `schedule`: lists, draws, checks and compares pipeline schedules.

#include <exception>
#include <iostream>
#include <span>
#include <string_view>

#include "commands.hpp"
#include "torch.hpp"

namespace {

constexpr std::string_view usage =
    "usage: schedule list\n"
    "       schedule show NAME [OPTIONS]        a schedule of the list, drawn\n"
    "       schedule check FILE.csv [OPTIONS]   the same for a file of "
    "torch.distributed.pipelining\n"
    "       schedule compare NAME... [OPTIONS]  several beside each other\n"
    "       schedule gallery FOLDER             gallery.md and its pictures\n"
    "schedule show --help says what the options are\n";

int run(std::string_view command, std::span<char*> arguments) {
  if (command == "list") return tool::list();
  if (command == "show") return tool::show(arguments);
  if (command == "check") return tool::check(arguments);
  if (command == "compare") return tool::compare(arguments);
  if (command == "gallery") return tool::gallery(arguments);
  if (command == "--help") {
    std::cout << usage << tool::not_for_torch();
    return 0;
  }
  std::cerr << usage;
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::span arguments(argv, static_cast<std::size_t>(argc));
    return run(argc > 1 ? argv[1] : "", arguments.subspan(argc > 1 ? 2 : 1));
  } catch (const std::exception& error) {
    std::cerr << "schedule: " << error.what() << '\n';
    return 1;
  }
}
