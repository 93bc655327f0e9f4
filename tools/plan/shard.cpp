// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/json.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/planner/hap.hpp>
#include <heddle/plan/program.hpp>
#include <heddle/plan/sharded_program.hpp>

#include "../common/columns.hpp"
#include "commands.hpp"

namespace tool {

using namespace heddle;

namespace {

/// What the command is told.
struct ShardSettings {
  std::string program = {}, machine = {};
  double flops = plan::HapOptions{}.flops;
  double state = plan::HapOptions{}.state_per_parameter;
};

void shard(const ShardSettings& s) {
  const plan::TensorProgram program = json::read_program(s.program);
  const Machine machine = json::read_machine(s.machine);
  const plan::HapResult found =
      hap(program, machine, {.flops = s.flops, .state_per_parameter = s.state});
  std::vector<std::vector<std::string>> rows = {{"instruction", "tensor", "form", "time"}};
  for (std::size_t i = 0; i < found.program.instructions.size(); ++i) {
    const plan::ShardInstruction& now = found.program.instructions[i];
    rows.push_back(
        {text(now.kind), now.tensor, text(now.to), text(found.price.instructions[i], " s")});
  }
  print_columns(rows);
  rows = {{"", "dimension", "indices of each rank"}};
  for (std::size_t d = 0; d < program.dimensions.size(); ++d) {
    std::string blocks;
    for (const std::int64_t block : found.program.blocks[d]) blocks += text(block, ' ');
    if (!blocks.empty()) rows.push_back({"", program.dimensions[d].name, blocks});
  }
  std::cout << '\n';
  print_columns(rows);
  std::cout << "\ntime " << found.price.time() << " s, computation " << found.price.computation
            << " s, communication " << found.price.communication << " s, at most "
            << found.price.peak << " bytes a rank\n";
  for (std::size_t r = 0; r < found.memory_prices.size(); ++r)
    if (found.memory_prices[r] < 0)
      std::cout << "a gigabyte more on rank " << r << " would save up to "
                << -found.memory_prices[r] * 1e9 << " s\n";
}

}  // namespace

void add_shard(CommandLine& program) {
  const auto s = std::make_shared<ShardSettings>();
  CommandLine& command =
      program.add_command("shard", "Divides the tensors of a program among the ranks, by HAP.",
                          [s](const CommandLine&) { shard(*s); });
  command.add_argument("PROGRAM", &s->program, "the tensor program");
  command.add_argument("MACHINE", &s->machine, "the machine");
  command.add_option("flops", &s->flops,
                     "floating point operations per second of a device of speed 1");
  command.add_option("state", &s->state, "bytes that a rank keeps for each byte of its parameters");
}

}  // namespace tool
