// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs that the writers of json/ take: a broken entry is rejected by name, and is never written
// to a file that cannot be read.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/json.hpp>
#include <heddle/systems/hap/program.hpp>

#include "support/broken_entries.hpp"
#include "support/plan_files.hpp"

namespace test_json_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;
using test::FilesOf;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most = std::numeric_limits<int>::max();
constexpr std::int64_t most64 = std::numeric_limits<std::int64_t>::max();
constexpr auto no_scalar = static_cast<Scalar>(99);

/// A table of values that writers reject.
template <class T>
class Table {
 public:
  void add(const char* name, const std::function<void(T&)>& change,
           std::vector<std::string> words) {
    T value = FilesOf<T>::example();
    change(value);
    m_entries.push_back({name, [=] { (void)FilesOf<T>::text(value); }, std::move(words)});
  }
  void check() const { check_broken(m_entries); }

 private:
  std::vector<BrokenEntry> m_entries;
};

}  // namespace

TEST_CASE("a plan with a broken entry is not written") {
  Table<Plan> table;
  table.add("microbatches", [](Plan& p) { p.microbatches = 0; }, {"microbatches = 0"});
  table.add("schedule", [](Plan& p) { p.schedule.clear(); }, {"names a schedule"});
  table.add("stages", [](Plan& p) { p.stages.clear(); }, {"stages: 0"});
  table.add("layers", [](Plan& p) { p.stages[1].layers = {2, 1}; }, {"stage 1", "2"});
  table.add("negative layers", [](Plan& p) { p.stages[0].layers = {-1, 1}; }, {"stage 0", "-1"});
  table.add("ranks", [](Plan& p) { p.stages[0].ranks[1] = Rank{7}; }, {"rank 7"});
  table.add("large rank", [](Plan& p) { p.stages[0].ranks[1] = Rank{1u << 25}; }, {"33554432"});
  table.add("largest rank", [](Plan& p) { p.stages[0].ranks[1] = Rank{0xffffffffu}; },
            {"4294967295"});
  table.add("first large rank", [](Plan& p) { p.stages[0].ranks[1] = Rank{(1u << 24) + 1}; },
            {"16777217"});
  table.add("samples", [](Plan& p) { p.stages[0].samples[2] = -2; }, {"samples -2"});
  table.add("many samples", [](Plan& p) { p.stages[0].samples[2] = most64; }, {"samples 92"});
  table.add("tensor", [](Plan& p) { p.stages[1].tensor = 0; }, {"stage 1", "tensor 0"});
  table.add("sequence", [](Plan& p) { p.stages[1].sequence = most; }, {"stage 1", "2147483647"});
  table.add("casts", [](Plan& p) { p.casts.pop_back(); }, {"1 casts for 2 cuts"});
  table.add("type", [](Plan& p) { p.casts[0]->type = no_scalar; }, {"99"});
  table.add("shard_node", [](Plan& p) { p.shard_node = -1; }, {"shard_node = -1"});
  table.add("attention", [](Plan& p) { p.attention = static_cast<SequenceMethod>(77); },
            {"attention = 77"});
  table.add("usp", [](Plan& p) { p.attention = SequenceMethod::usp; }, {"attention = usp"});
  table.add("buckets", [](Plan& p) { p.buckets = 0; }, {"buckets = 0"});
  table.add("step", [](Plan& p) { p.prediction = PlanPrediction{.step = nan}; }, {"nan s"});
  table.add("negative step", [](Plan& p) { p.prediction = PlanPrediction{.step = -1}; }, {"-1 s"});
  table.add("memory", [](Plan& p) { p.prediction = PlanPrediction{.step = 1, .memory = {4}}; },
            {"bytes of 1 ranks"});
  table.add("name", [](Plan& p) { p.schedule = "\xff"; }, {"UTF-8"});
  table.add("sharding", [](Plan& p) { p.sharding = "\xc3("; }, {"UTF-8"});
  table.check();
}

TEST_CASE("a profile with a broken entry is not written") {
  Table<plan::Profile> table;
  table.add("layers", [](plan::Profile& p) { p.layers.clear(); }, {"0"});
  table.add("no measurement", [](plan::Profile& p) { p.layers[1].measured.clear(); }, {"layer 1"});
  table.add("reference", [](plan::Profile& p) { p.reference = "none"; }, {"'none'"});
  table.add("device",
            [](plan::Profile& p) {
              p.reference.clear();
              p.layers[1].measured[0].device.clear();
            },
            {"layer 1", "device ''"});
  table.add("tensor", [](plan::Profile& p) { p.layers[1].measured[0].tensor = 0; }, {"tensor 0"});
  table.add("samples", [](plan::Profile& p) { p.layers[1].measured[0].samples = -4; },
            {"samples -4"});
  table.add("many samples", [](plan::Profile& p) { p.layers[1].measured[0].samples = most64; },
            {"write_profile", "layers[1].measured[0].samples", "9223372036854775807"});
  table.add("forward", [](plan::Profile& p) { p.layers[1].measured[0].times.forward = 0; },
            {"layer 1", "forward 0 s"});
  table.add("update", [](plan::Profile& p) { p.layers[0].measured[1].times.update = nan; },
            {"layer 0", "update nan s"});
  table.add("backward",
            [](plan::Profile& p) { p.layers[2].measured[0].times.backward_input = infinity; },
            {"layer 2", "backward_input inf s"});
  table.add("twice",
            [](plan::Profile& p) { p.layers[1].measured.push_back(p.layers[1].measured[0]); },
            {"layer 1", "twice"});
  table.add("name", [](plan::Profile& p) { p.layers[0].name = "\xff"; }, {"UTF-8"});
  table.check();
}

TEST_CASE("a tensor program with a broken entry is not written") {
  using systems::TensorProgram;
  Table<TensorProgram> table;
  table.add("size", [](TensorProgram& p) { p.dimensions[1].size = 0; }, {"'i'", "0"});
  table.add("large size", [](TensorProgram& p) { p.dimensions[3].size = most64; },
            {"write_program", "dimensions[3].size", "9223372036854775807"});
  table.add("unnamed", [](TensorProgram& p) { p.dimensions[3].name.clear(); }, {"''"});
  table.add("dims", [](TensorProgram& p) { p.tensors[0].dims[0] = "z"; }, {"'z'"});
  table.add("role",
            [](TensorProgram& p) { p.tensors[4].role = static_cast<systems::TensorRole>(9); },
            {"role = 9"});
  table.add("type", [](TensorProgram& p) { p.tensors[1].type = no_scalar; }, {"type = 99"});
  table.add("byte", [](TensorProgram& p) { p.tensors[1].type = Scalar::byte; },
            {"tensors[1].type", "byte"});
  table.add("updates", [](TensorProgram& p) { p.tensors[10].updates = "x"; }, {"'x'"});
  table.add("kind",
            [](TensorProgram& p) { p.operations[0].kind = static_cast<systems::OperationKind>(9); },
            {"kind = 9"});
  table.add("inputs", [](TensorProgram& p) { p.operations[0].inputs.clear(); }, {"'y'"});
  table.add("output", [](TensorProgram& p) { p.operations[0].output = "q"; }, {"'q'"});
  table.add("function", [](TensorProgram& p) { p.operations[2].function.clear(); }, {"sum", "max"});
  table.add("factor", [](TensorProgram& p) { p.operations[1].factor = nan; }, {"'scaled'", "nan"});
  table.add("name", [](TensorProgram& p) { p.name = "\xff"; }, {"UTF-8"});
  table.check();
}

TEST_CASE("a machine that a file cannot hold is not written") {
  Table<Machine> table;
  table.add("ports", [](Machine& m) { m.set_ports(0, 1, {.out = 1, .in = 1, .count = 1 << 17}); },
            {"write_machine", "ports[1].count", "131072"});
  table.add("moved", [](Machine& m) { const Machine other = std::move(m); }, {"at least one rank"});
  table.check();
}

}  // namespace test_json_broken_entries
