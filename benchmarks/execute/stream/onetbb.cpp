// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: tbb oneapi/tbb/parallel_pipeline.h

#include "work.hpp"

#ifdef HEDDLE_HAS_TBB

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

namespace streams {

namespace {

template <bool stamped, class Stage>
Result run(const Case& work, const Stage& stage) {
  namespace tbb = oneapi::tbb;
  using Batch = streams::Batch<typename Stage::Token>;
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(work.threads));
  tbb::task_arena arena(work.threads);
  arena.initialize();
  const tbb::filter_mode middle =
      work.parallel ? tbb::filter_mode::parallel : tbb::filter_mode::serial_in_order;
  std::array<Batch, lines> batches;
  alignas(apart) Result result;
  alignas(apart) std::uint64_t next = 0;
  const auto work_on = [stage](Batch* taken) {
    for (auto& x : taken->tokens) stage.change(x);
    return taken;
  };
  const heddle::Seconds start = now();
  arena.execute([&] {
    tbb::parallel_pipeline(
        lines,
        tbb::make_filter<void, Batch*>(tbb::filter_mode::serial_in_order,
                                       [&](tbb::flow_control& flow) -> Batch* {
                                         if (next == work.tokens) {
                                           flow.stop();
                                           return nullptr;
                                         }
                                         Batch& made = batches[next / batch % lines];
                                         if constexpr (stamped) made.begun = now();
                                         for (auto& x : made.tokens)
                                           x = stage(Stage::first(next++));
                                         return &made;
                                       }) &
            tbb::make_filter<Batch*, Batch*>(middle, work_on) &
            tbb::make_filter<Batch*, Batch*>(middle, work_on) &
            tbb::make_filter<Batch*, void>(tbb::filter_mode::serial_in_order, [&](Batch* taken) {
              for (auto& x : taken->tokens) {
                stage.change(x);
                result.gathered(x);
              }
              if constexpr (stamped) result.latencies.push_back(now() - taken->begun);
            }));
  });
  result.seconds = now() - start;
  return result;
}

}  // namespace

std::optional<Result> by_onetbb(const Case& work) {
  return dispatch(work, [&]<bool stamped>(auto stage) { return run<stamped>(work, stage); });
}

}  // namespace streams

#else

std::optional<streams::Result> streams::by_onetbb(const Case&) { return std::nullopt; }

#endif
