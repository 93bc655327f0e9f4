// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/json.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/solver/min_max_partition.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/pass/divide_stages.hpp>

#include "answer.hpp"
#include "json.hpp"
#include "plan_files.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr std::int64_t most_passes = 200'000;  // of a drawing: each is five actions or fewer

/// Returns a plan without a file: one stage on each rank, divided so that the slowest stage is as
/// fast as possible, and one sample a microbatch.
Plan even_plan(const plan::Profile& profile, const Machine& machine, int microbatches) {
  const int layers = static_cast<int>(profile.layers.size());
  const int stages = std::min(layers, machine.ranks());
  const auto cut = plan::min_max_partition(layers, stages, [&](int stage, int first, int last) {
    const plan::LayerTimes times =
        profile.times(LayerRange{first, last}, machine.device(Rank{stage}), 1, 1.0);
    return times.forward + times.backward_input + times.backward_weight;
  });
  Plan even;
  even.microbatches = microbatches;
  for (int stage = 0, first = 0; stage < stages; ++stage) {
    const int last = cut.ends[static_cast<std::size_t>(stage)];
    even.stages.push_back({.layers = {first, last}, .ranks = {Rank{stage}}, .samples = {1}});
    first = last;
  }
  return even;
}

/// The three files behind each other, by the numbers of bytes that a request has.
struct PlanFiles {
  std::string_view profile, machine, plan;

  PlanFiles(const Request& request, std::string_view files) {
    for (const auto& [kind, content] :
         {std::pair{"profile", &profile}, {"machine", &machine}, {"plan", &plan}}) {
      int size = 0;
      request.read(kind, size);
      if (size < 0 || static_cast<std::size_t>(size) > files.size())
        wrong(text("the files do not have the bytes of the ", kind), text(size));
      *content = files.substr(0, static_cast<std::size_t>(size));
      files.remove_prefix(content->size());
    }
  }
};

std::string name_of(const Request& request, std::string_view kind) {
  const std::string key = text(kind, "-name");
  return request.has(key) ? std::string(request.text(key)) : text(kind, ".json");
}

}  // namespace

std::string read_about(const Request& request, std::string_view content) {
  const std::string_view kind = request.text("kind");
  const std::string name = request.has("name") ? std::string(request.text("name")) : "the file";
  std::string about;
  if (kind == "profile") {
    const plan::Profile profile = json::parse_profile(content, name);
    about = text(profile.layers.size(), profile.layers.size() == 1 ? " layer" : " layers");
    if (!profile.model.empty()) about += text(" of ", profile.model);
  } else if (kind == "machine") {
    const Machine machine = json::parse_machine(content, name);
    about = text(machine.ranks(), machine.ranks() == 1 ? " rank" : " ranks");
  } else if (kind == "plan") {
    const Plan plan = json::parse_plan(content, name);
    about = text(plan.stages.size(), plan.stages.size() == 1 ? " stage, " : " stages, ",
                 plan.microbatches, " microbatches, ", plan.schedule);
  } else {
    wrong(text("the page does not read a file of the kind '", kind, "'"), "",
          "drop a profile, a machine or a plan");
  }
  return Json('{').add("kind", kind).add("about", about).close();
}

std::string Explorer::plan(std::string_view text_of_request, std::string_view content) {
  const Request request(text_of_request);
  const PlanFiles files(request, content);
  const auto profile = json::parse_profile(files.profile, name_of(request, "profile"));
  const Machine machine = json::parse_machine(files.machine, name_of(request, "machine"));
  Plan plan;
  const std::string name = name_of(request, "plan");
  if (files.plan.empty()) {
    int microbatches = 8;
    request.read("microbatches", microbatches);
    if (microbatches < 1) wrong("microbatches is below 1", text(microbatches));
    plan = even_plan(profile, machine, microbatches);
  } else {
    plan = json::parse_plan(files.plan, name);
    try {
      check(plan, static_cast<int>(profile.layers.size()), machine.ranks());
    } catch (const contract_error& error) {
      const ErrorInfo& info = error.complaint();
      throw contract_error({text("'", name, "'"), info.what, info.why, info.fix});
    }
  }
  if (request.has("schedule")) plan.schedule = request.text("schedule");
  const auto stages = static_cast<std::int64_t>(plan.stages.size()) * plan.bucket_count();
  if (stages * plan.microbatches > most_passes)
    wrong("the plan is too large for a picture",
          text(stages, " stages x ", plan.microbatches, " microbatches"),
          "heddle-plan check prices plans of any size");
  const plan::PlanProblem problem(profile, machine,
                                  {.batch = plan.batch(), .schedule = plan.schedule});
  Timeline timeline = simulated_timeline(plan, problem);
  // The orders that are drawn: those of the buckets, as simulated_timeline() has them.
  Orders orders = schedule::find_schedule(plan.schedule)
                      .orders({.ranks = static_cast<int>(plan.stages.size()),
                               .microbatches = plan.microbatches,
                               .stages_per_rank = 1});
  if (plan.bucket_count() > 1)
    orders = schedule::divide_stages(std::move(orders),
                                     std::vector(plan.stages.size(), plan.bucket_count()));
  Schedule schedule = timeline.schedule();
  m_priced = priced_timeline(std::move(orders), std::move(schedule), std::move(timeline));
  const std::vector<Bytes> memory = plan_memory(plan, problem);
  Json out = report(false);
  out.add("schedule", plan.schedule)
      .add("memory", memory)
      .add("most", std::ranges::max(memory))
      .add("batch", plan.batch());
  if (const auto shortage = memory_shortage(plan, problem))
    out.add("shortage", Json('{')
                            .add("rank", +shortage->rank)
                            .add("needed", shortage->needed)
                            .add("capacity", shortage->capacity));
  if (plan.prediction) out.add("predicted", plan.prediction->step);
  return out.close();
}

}  // namespace tool
