// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "../common/progress.hpp"
#include "best.hpp"
#include "commands.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Proves that the list of `orders` computes the serial step.
void prove(const Orders& orders) {
  ProgressLine line("proving");
  const Schedule woven = weave(orders);
  const schedule::SerialStep step = schedule::serial_step(orders);
  if (const std::string why = schedule::why_not_equivalent(woven, step); !why.empty())
    throw infeasible(
        {"heddle::schedule::prove", text("'", woven.name(), "' is not the serial step"), why});
  // The updates with gradients of earlier microbatches that a pass does not see.
  std::uint32_t stale = 0;
  for (std::size_t stage = 0; stage < step.versions.size(); ++stage)
    for (std::size_t item = 0; item < step.versions[stage].size(); ++item) {
      std::uint32_t earlier = 0;
      for (const auto& list : orders.ranks)
        earlier += static_cast<std::uint32_t>(std::ranges::count_if(list, [&](const Order& each) {
          return each.kind == Kind::update && +each.stage == stage && +each.item < item;
        }));
      stale = std::max(stale, earlier - std::min(earlier, step.versions[stage][item]));
    }
  line.print_above([&] {
    std::cout << text(woven.name(), ": ", woven.size(), " actions compute the serial step of ",
                      step.graph.stages, " stages and ", step.microbatches, " microbatches");
    if (!step.versions.empty())
      std::cout << text(", with weights that lack up to ", stale, " updates");
    std::cout << '\n';
  });
}

}  // namespace

void add_prove(CommandLine& program) {
  const auto settings = std::make_shared<Settings>();
  settings->names.resize(1);
  CommandLine& command = program.add_command(
      "prove", "Proves that a schedule computes the serial step, or names the first difference.",
      [settings](const CommandLine& line) {
        check_values(line, *settings);
        const std::string& name = settings->names[0];
        if (name.ends_with(".csv") || name == "/dev/stdin")
          prove(read_orders(line, name, read_file(name), *settings).orders);
        else
          prove(orders_of(named_schedules(line, *settings)[0], *settings));
      });
  command.add_input("NAME", &settings->names[0],
                    "a schedule, see schedule list, or FILE.csv of torch.distributed.pipelining");
  add_shape(command, *settings);
  add_prices(command, *settings);
  add_dialect(command, *settings);
}

}  // namespace tool
