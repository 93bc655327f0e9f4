// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that files of profiles, machines and plans give equal values, that other programs can read
// them, and that files written by hand may leave out what has a default.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/json.hpp>
#include <heddle/machine.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/program_file.hpp>

#include "support/json.hpp"
#include "support/plan_files.hpp"

namespace test_round_trips {

namespace hd = heddle;
using hd::test::FilesOf;

namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A folder that is removed.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "heddle_round_trips";
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace

TEMPLATE_TEST_CASE("a file gives an equal value", "", hd::plan::Profile, hd::Machine, hd::Plan,
                   hd::systems::TensorProgram) {
  using Files = FilesOf<TestType>;
  const TestType value = Files::example();
  const Folder folder;
  const std::string path = (folder.path / "file.json").string();
  std::ofstream(path) << "an older file";
  Files::write(path, value);
  CHECK(Files::read(path) == value);
  const std::string content = content_of(path);
  CHECK(content == Files::text(value));
  CHECK(content.back() == '\n');
  // Nothing else is left in the folder.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  // Another reader agrees on the head.
  const hd::test::Json json = hd::test::JsonReader(content).read();
  CHECK(json["format"].string() == std::string("heddle-") + Files::member);
  CHECK(json["version"].number() == 1);
  CHECK(json["checksum"].string().size() == std::string("crc32c:01234567").size());
  CHECK(json.has(Files::member));
  // What is read is written in the same way, and the form of the text does not matter.
  CHECK(Files::text(Files::parse(content)) == content);
  std::string spread;
  bool quoted = false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] == '"' && (i == 0 || content[i - 1] != '\\')) quoted = !quoted;
    spread += content[i];
    if (!quoted && (content[i] == ',' || content[i] == '{')) spread += "\n\t ";
  }
  CHECK(Files::parse(spread) == value);
  CHECK(Files::parse(hd::test::without_checksum(content)) == value);
}

TEST_CASE("all ways to make a machine give equal machines again") {
  const std::vector<hd::Link> links{{0, 1e12}, {1e-6, 1e9}, {2e-6, 2e9}, {0, 1e12}};
  const std::vector<hd::Machine> machines = {
      hd::Machine::uniform(1, {}, {}),
      hd::Machine::uniform(5, {"gpu"}, {1e-6, 1e10}),
      hd::Machine::from_links({{"a"}, {"b", 2}}, links),
      hd::network({{links[0], links[1]}, {links[2], links[3]}}, {"node"}),
      hd::Machine::hierarchical(std::vector<hd::Device>(5, {"gpu"}),
                                {{.name = "node", .ranks = 2}, {.name = "all", .ranks = 8}}),
      hd::Machine::hierarchical(
          std::vector<hd::Device>(5, {"gpu"}),
          {{.name = "node", .ports = {1e9, 1e9, 2}}, {.name = "all", .ranks = 5}}, {{1, 4}, {}}),
      hd::join({hd::Machine::uniform(2, {}, {}), hd::Machine::uniform(2, {}, {})}, {1, 1}),
  };
  for (const hd::Machine& machine : machines) {
    const hd::Machine again = hd::json::parse_machine(hd::json::machine_text(machine), "m");
    CHECK(again == machine);
    CHECK(again.shared().size() == machine.shared().size());
  }
}

TEST_CASE("a file of a plan has its prediction, and files without one are still read") {
  hd::Plan plan = hd::test::example_plan();
  const std::string older = hd::json::plan_text(plan);
  CHECK(older.find("prediction") == std::string::npos);
  CHECK_FALSE(hd::json::parse_plan(older, "p.json").prediction);
  plan.prediction = hd::PlanPrediction{1.0 / 3, {1, 0xffff'ffff'ffff'ffff, 3, 4, 5, 6, 7, 8, 0}};
  const std::string content = hd::json::plan_text(plan);
  const hd::Plan again = hd::json::parse_plan(content, "p.json");
  CHECK(again == plan);
  CHECK(again.prediction == plan.prediction);
  // The memory may be unknown. What is written is read in the same way.
  plan.prediction->memory.clear();
  CHECK(hd::json::parse_plan(hd::json::plan_text(plan), "p.json").prediction == plan.prediction);
  CHECK(hd::json::plan_text(again) == content);
  plan.schedule = "\xff";
  CHECK_THROWS_AS(hd::json::plan_text(plan), hd::contract_error);
}

TEST_CASE("files by hand may leave out what has a default") {
  const hd::Machine machine = hd::json::parse_machine(
      R"({"format": "heddle-machine", "version": 1, "machine": {
           "devices": [{"name": "a100", "count": 3, "memories": [{"capacity": 40e9}]}, {}],
           "levels": [{"name": "node", "sizes": [3, 1], "link": {"bandwidth": 2e11}},
                      {"ranks": 4, "ports": {"out": "unlimited"}}]}})",
      "m.json");
  REQUIRE(machine.ranks() == 4);
  CHECK(machine.device(hd::Rank{2}).memories.at(0).capacity == 40'000'000'000);
  CHECK(machine.device(hd::Rank{3}) == hd::Device{});
  CHECK(machine.link(hd::Rank{0}, hd::Rank{2}) == hd::Link{0, 2e11});
  CHECK(machine.link(hd::Rank{2}, hd::Rank{3}) == hd::Link{});
  CHECK_FALSE(machine.shares());
  const hd::Plan plan = hd::json::parse_plan(
      R"({"format": "heddle-plan", "version": 1,
          "plan": {"stages": [{"layers": [0, 2], "ranks": [1], "samples": [4]}]}})",
      "p.json");
  CHECK(plan == hd::Plan{.stages = {{.layers = {0, 2}, .ranks = {1}, .samples = {4}}}});
  const hd::systems::TensorProgram program = hd::systems::parse_program(
      R"({"format": "heddle-program", "version": 1, "program": {
           "dimensions": [{"name": "b", "size": 8}], "tensors": [
             {"name": "x", "dims": ["b"], "role": "input"},
             {"name": "y", "dims": [], "role": "output"}],
           "operations": [{"kind": "reduce", "function": "sum", "inputs": ["x"],
                           "output": "y"}]}})",
      "p.json");
  CHECK(program == hd::systems::TensorProgram{
                       .dimensions = {{"b", 8}},
                       .tensors = {{"x", {"b"}, hd::systems::TensorRole::input},
                                   {"y", {}, hd::systems::TensorRole::output}},
                       .operations = {{hd::systems::OperationKind::reduce, {"x"}, "y", "sum"}}});
  const hd::plan::Profile profile = hd::json::parse_profile(
      R"({"format": "heddle-profile", "version": 1, "profile": {"layers": [{"measured": [
           {"device": "a100", "forward": 1, "backward_input": 1e0, "backward_weight": 0}]}]}})",
      "p.json");
  CHECK(profile == hd::plan::Profile{.layers = {{.measured = {{"a100", 1, 1, {1, 1, 0, 0}}}}}});
}

}  // namespace test_round_trips
