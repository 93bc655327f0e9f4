// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: taskflow taskflow/taskflow.hpp

#include "work.hpp"

#ifdef HEDDLE_HAS_TASKFLOW

#include <cstddef>
#include <map>
#include <taskflow/algorithm/pipeline.hpp>
#include <taskflow/taskflow.hpp>

namespace streams {

namespace {

template <bool stamped, class Stage>
Result run(const Case& work, const Stage& stage) {
  static std::map<int, tf::Executor> executors;
  tf::Executor& executor =
      executors.try_emplace(work.threads, static_cast<std::size_t>(work.threads)).first->second;
  const tf::PipeType middle = work.parallel ? tf::PipeType::PARALLEL : tf::PipeType::SERIAL;
  using Batch = streams::Batch<typename Stage::Token>;
  std::array<Batch, lines> batches;
  alignas(apart) Result result;
  alignas(apart) std::uint64_t next = 0;
  const auto work_on = [&batches, stage] {  // a Pipe takes a callable of its own
    return [&batches, stage](tf::Pipeflow& flow) {
      for (auto& x : batches[flow.line()].tokens) stage.change(x);
    };
  };
  tf::Pipeline pipeline(lines,
                        tf::Pipe{tf::PipeType::SERIAL,
                                 [&](tf::Pipeflow& flow) {
                                   if (next == work.tokens) return flow.stop();
                                   Batch& made = batches[flow.line()];
                                   if constexpr (stamped) made.begun = now();
                                   for (auto& x : made.tokens) x = stage(Stage::first(next++));
                                 }},
                        tf::Pipe{middle, work_on()}, tf::Pipe{middle, work_on()},
                        tf::Pipe{tf::PipeType::SERIAL, [&](tf::Pipeflow& flow) {
                                   Batch& taken = batches[flow.line()];
                                   for (auto& x : taken.tokens) {
                                     stage.change(x);
                                     result.gathered(x);
                                   }
                                   if constexpr (stamped)
                                     result.latencies.push_back(now() - taken.begun);
                                 }});
  tf::Taskflow taskflow;
  taskflow.composed_of(pipeline);
  const heddle::Seconds start = now();
  executor.run(taskflow).wait();
  result.seconds = now() - start;
  return result;
}

}  // namespace

std::optional<Result> by_taskflow(const Case& work) {
  return dispatch(work, [&]<bool stamped>(auto stage) { return run<stamped>(work, stage); });
}

}  // namespace streams

#else

std::optional<streams::Result> streams::by_taskflow(const Case&) { return std::nullopt; }

#endif
