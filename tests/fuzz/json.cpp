// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::json heddle::systems_core

// JSON files of profiles, machines, plans and programs. Every input is given to all four readers.

#include <heddle/json.hpp>
#include <heddle/systems/hap/program_file.hpp>

#include "support.hpp"

using namespace heddle;

namespace {

template <class Parse, class Text>
void read(std::string_view content, Parse&& parse, Text&& text) {
  fuzz::accepts([&] {
    const auto value = parse(content, "input");
    fuzz::check(parse(text(value), "input") == value, "the file reads differently once written");
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  read(content, json::parse_profile, json::profile_text);
  read(content, json::parse_machine, json::machine_text);
  read(content, json::parse_plan, json::plan_text);
  read(content, systems::parse_program, systems::program_text);
  return 0;
}
