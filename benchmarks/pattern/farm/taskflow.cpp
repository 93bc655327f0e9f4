// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: taskflow taskflow/taskflow.hpp

#include "work.hpp"

#ifdef HEDDLE_HAS_TASKFLOW

#include <array>
#include <cstddef>
#include <taskflow/algorithm/pipeline.hpp>
#include <taskflow/taskflow.hpp>

#include "../../support.hpp"

std::optional<farms::Result> farms::by_taskflow() {
  static tf::Executor executor(std::size_t{threads});
  using Batch = std::array<std::uint64_t, batch>;
  std::array<Batch, lines> batches;
  Result result;
  std::uint64_t next = 0;
  tf::Pipeline pipeline(lines,
                        tf::Pipe{tf::PipeType::SERIAL,
                                 [&](tf::Pipeflow& flow) {
                                   if (next == items) return flow.stop();
                                   for (std::uint64_t& item : batches[flow.line()]) item = next++;
                                 }},
                        tf::Pipe{tf::PipeType::PARALLEL,
                                 [&](tf::Pipeflow& flow) {
                                   for (std::uint64_t& item : batches[flow.line()])
                                     item = work(item);
                                 }},
                        tf::Pipe{tf::PipeType::SERIAL, [&](tf::Pipeflow& flow) {
                                   for (const std::uint64_t each : batches[flow.line()])
                                     result.gathered(each);
                                 }});
  tf::Taskflow taskflow;
  taskflow.composed_of(pipeline);
  result.seconds = bench::seconds_of([&] { executor.run(taskflow).wait(); });
  return result;
}

#else

std::optional<farms::Result> farms::by_taskflow() { return std::nullopt; }

#endif
