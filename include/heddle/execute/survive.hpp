// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// survive(): runs work on all ranks, and runs it again on the ranks that are left when one has
/// died, in the same processes.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/survivors.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The way in which a call of the work ended on a rank, as the flags of LosesRanks::agree().
enum class WorkEnd : std::uint32_t {
  failed = 0,  ///< by an error of this rank
  lost = 1,    ///< by a communication_error: another rank has failed or died
  done = 3,    ///< without an error
};

/// Returns how a call of the work has ended whose exception is being handled, sets `error` to the
/// exception, and tells the other ranks of `at`, unless another rank has failed before.
[[nodiscard]] WorkEnd end_of_failed_work(const TransportRef& at, std::exception_ptr& error);

/// Calls `meet`, in which the ranks of `at` find out how to go on. If it throws, tells the other
/// ranks.
/// @throws what `meet` throws if there is no `error`. Otherwise it tells the log, and throws
///         `error`, which came first.
void meet_after_work(const TransportRef& at, const std::exception_ptr& error,
                     const ExecuteOptions& options, FunctionRef<void()> meet);

/// Returns true if the work is done on all ranks that are left, and false if some must find out who
/// is left. @throws the error of this rank, or a communication_error, if a rank has failed.
[[nodiscard]] bool all_are_done(WorkEnd agreed, const std::exception_ptr& error);

/// Throws the error of this rank, or a communication_error, if as many ranks are left as before.
void expect_deaths(std::size_t before, std::size_t left, const std::exception_ptr& error);

/// Sets `first` to the first numbers of the ranks that are left, which are `left` in the transport
/// before. Tells the log who has died.
void note_survivors(std::vector<Rank>& first, std::span<const Rank> left,
                    const ExecuteOptions& options);

}  // namespace impl

/// Calls `work(transport, ranks)` on every rank. If a rank dies, the call ends on the other ranks
/// with a communication_error. They then agree on who is left, and the work is called again with a
/// transport between these ranks. This goes on until the work is done on all ranks that are left.
/// A rank whose work is done waits for the others, and calls the work again if one of them has to.
///
/// `ranks[r]` is the number that rank r of the transport has in the first one. The work makes
/// everything anew that depends on the ranks: the plan, the model and the Runner. It gets the state
/// of the model from a MemoryCheckpoint (pipeline/memory_checkpoint.hpp), or from files, and goes
/// on with the step after that state:
///
///     heddle::MemoryCheckpoint kept;
///     heddle::survive(transport, [&](auto& left, std::span<const heddle::Rank>) {
///       auto model = make_model(left.size());
///       heddle::Runner run(model, make_schedule(left.size()), left);
///       for (std::int64_t step = kept.restore(model, left).value_or(0); step < steps;) {
///         run.step(step);
///         kept.save(model, left, ++step);
///       }
///     });
///
/// The transport of a call is destroyed before the next call begins, so a Runner, a Request or
/// another object that refers to it must not outlive the call.
///
/// The work must not catch a communication_error without throwing it again. It must send all
/// messages through this transport. A rank that waits in another call, such as a collective call of
/// MPI on another communicator, does not learn that a rank has died.
///
/// An error of the work that is no communication_error ends the work on all ranks. The other ranks
/// are told, so their waits for messages end at once. All ranks must call this function.
///
/// ExecuteOptions::watchdog limits the wait for ranks that do not come to an agreement. So the work
/// of all ranks must end within this time of each other; raise it, or set 0 for no limit. On each
/// rank that is left, ExecuteOptions::log gets a line that names the ranks that died.
///
/// A ThreadTransport always goes on. An MpiTransport goes on with Open MPI 5 under
/// `mpiexec --with-ft ulfm`. With another MPI library this function runs the work once, and most
/// launchers end the job if a process dies. Open MPI 4 with `--enable-recovery` does not end it:
/// the waits of the other ranks then end by the watchdog, and with a watchdog of 0 they hang.
/// @throws the error of the work if it has failed on this rank, also if the ranks cannot agree
///         afterwards; the log gets the second error then. @throws communication_error if it
///         has failed on another rank, if a rank does not answer although nobody has died, or if an
///         agreement exceeds the watchdog's time.
template <LosesRanks T, std::invocable<T&, std::span<const Rank>> Work>
void survive(T& transport, Work&& work, const ExecuteOptions& options = {}) {
  std::vector<Rank> first;
  for (int r = 0; r < transport.size(); ++r) first.emplace_back(r);
  std::unique_ptr<T> owned;
  for (T* at = &transport;;) {
    std::exception_ptr error;
    impl::WorkEnd end = impl::WorkEnd::done;
    try {
      work(*at, std::span<const Rank>(first));
    } catch (...) {
      end = impl::end_of_failed_work(*at, error);
    }
    std::uint32_t agreed = 0;
    impl::meet_after_work(*at, error, options, [&] {
      agreed = at->agree(static_cast<std::uint32_t>(end), options.watchdog);
    });
    if (impl::all_are_done(static_cast<impl::WorkEnd>(agreed), error)) return;
    Survivors<T> left;
    impl::meet_after_work(*at, error, options, [&] { left = at->survivors(options.watchdog); });
    impl::expect_deaths(first.size(), left.ranks.size(), error);
    owned = std::move(left.transport);
    at = owned.get();
    impl::meet_after_work(*at, error, options,
                          [&] { impl::note_survivors(first, left.ranks, options); });
  }
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/survive.ipp>
#endif
