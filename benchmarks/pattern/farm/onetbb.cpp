// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: tbb oneapi/tbb/parallel_pipeline.h

#include "work.hpp"

#ifdef HEDDLE_HAS_TBB

#include <array>
#include <cstddef>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include "../../support.hpp"

std::optional<farms::Result> farms::by_onetbb() {
  namespace tbb = oneapi::tbb;
  using Batch = std::array<std::uint64_t, batch>;
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                    std::size_t{threads});
  tbb::task_arena arena(threads);
  arena.initialize();
  std::array<Batch, lines> batches;
  Result result;
  std::uint64_t next = 0;
  result.seconds = bench::seconds_of([&] {
    arena.execute([&] {
      tbb::parallel_pipeline(
          lines,
          tbb::make_filter<void, Batch*>(tbb::filter_mode::serial_in_order,
                                         [&](tbb::flow_control& flow) -> Batch* {
                                           if (next == items) {
                                             flow.stop();
                                             return nullptr;
                                           }
                                           Batch& made = batches[next / batch % lines];
                                           for (std::uint64_t& item : made) item = next++;
                                           return &made;
                                         }) &
              tbb::make_filter<Batch*, Batch*>(tbb::filter_mode::parallel,
                                               [](Batch* taken) {
                                                 for (std::uint64_t& item : *taken)
                                                   item = work(item);
                                                 return taken;
                                               }) &
              tbb::make_filter<Batch*, void>(tbb::filter_mode::serial_in_order, [&](Batch* taken) {
                for (const std::uint64_t each : *taken) result.gathered(each);
              }));
    });
  });
  return result;
}

#else

std::optional<farms::Result> farms::by_onetbb() { return std::nullopt; }

#endif
