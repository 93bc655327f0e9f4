// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Schedule files of torch: read_lowered(), with each of three graphs and in both dialects.

#include <vector>

#include <heddle/schedule/order/torch_csv.hpp>
#include <heddle/schedule/order/weave.hpp>

#include "support.hpp"

using namespace heddle;

namespace {

StageGraph graph_of(unsigned choice) {
  if (choice == 0) return {};
  StageGraph diamond{
      4, {{Stage{0}, Stage{1}}, {Stage{0}, Stage{2}}, {Stage{1}, Stage{3}}, {Stage{2}, Stage{3}}}};
  diamond.replicas = choice == 2;
  return diamond;
}

/// Returns true if a list has an update, which weave() does not add then.
bool updates(const Orders& orders) {
  for (const auto& list : orders.ranks)
    for (const Order& order : list)
      if (order.kind == Kind::update) return true;
  return false;
}

void read(std::string_view csv, const schedule::CsvOptions& options) {
  const schedule::LoweredOrders lowered = schedule::read_lowered(csv, options);
  const Orders& orders = lowered.orders;
  fuzz::check(updates(orders) || weave(orders).size() >= orders.ranks.size(),
              "the schedule lacks the updates of a rank");
  for (const auto contents : {schedule::CsvContents::compute, schedule::CsvContents::transfers})
    fuzz::check(
        schedule::read_orders(schedule::to_csv(orders, contents), {.graph = options.graph}).ranks ==
            orders.ranks,
        "the orders read differently after to_csv()");
  fuzz::check(
      schedule::read_lowered(schedule::to_csv(lowered), {.graph = options.graph}) == lowered,
      "the steps read differently after to_csv()");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (unsigned choice = 0; choice < 3; ++choice)
    for (const bool old : {false, true}) {
      const schedule::CsvOptions options{.graph = graph_of(choice), .old_dialect = old};
      fuzz::accepts([&] { read(fuzz::text_of(data, size), options); });
    }
  return 0;
}
