// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The main program of the tests that run on several ranks: MPI and Kokkos around Catch2.
/// Every rank runs every case. Rank 0 reports; the others are quiet unless they fail. The exit code
/// is the largest of all ranks. A rank stops at its first failed assertion, because from there on
/// its messages no longer match those of the others; it says which one at once, waits a moment for
/// the others to arrive, and ends the job when they do not.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include <Kokkos_Core.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <mpi.h>

namespace {

/// How long a failed rank waits for the others before it ends the job.
constexpr std::chrono::seconds patience{10};

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Writes a failed assertion at once: when the other ranks hang on the failed one, the report at
/// the end is never reached.
class FailureListener : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override { m_case = info.name; }

  void assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (result.isOk()) return;
    std::ostringstream line;
    line << "[rank " << world_rank() << "] FAILED in \"" << m_case
         << "\": " << result.getSourceInfo() << ": " << result.getExpressionInMacro();
    if (result.hasExpandedExpression()) line << "  with  " << result.getExpandedExpression();
    if (result.hasMessage()) line << "  " << result.getMessage();
    line << '\n';
    std::cerr << line.str() << std::flush;
  }

 private:
  std::string m_case;
};
CATCH_REGISTER_LISTENER(FailureListener)

/// The largest result of all ranks. A failed rank ends the job when the others do not come. On a
/// communicator that no test uses: elsewhere it could meet what the others still do.
int agree(MPI_Comm apart, int mine) {
  int largest = mine;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &largest, 1, MPI_INT, MPI_MAX, apart, &request);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return largest;
    if (mine != 0 && std::chrono::steady_clock::now() > deadline) {
      std::cerr << "[rank " << world_rank() << "] the other ranks wait for this one, which failed: "
                << "ending the job\n"
                << std::flush;
      MPI_Abort(MPI_COMM_WORLD, mine);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int run_session(int argc, char** argv) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm apart = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &apart);
  // Before the session exists: Catch2 takes the buffer of std::cout when it opens its report.
  std::ostringstream quiet;
  std::streambuf* const loud = std::cout.rdbuf();
  if (world_rank() != 0) std::cout.rdbuf(quiet.rdbuf());
  int result = 0;
  {
    Catch::Session session;
    session.configData().rngSeed = 1;  // random inputs must be the same on every rank
    result = session.applyCommandLine(argc, argv);
    if (size > 1) session.configData().abortAfter = 1;
    if (result == 0) result = session.run();
  }
  std::cout.rdbuf(loud);
  if (world_rank() != 0 && result != 0)
    std::cout << "[rank " << world_rank() << "] report:\n" << quiet.str() << std::flush;
  result = agree(apart, result);
  MPI_Comm_free(&apart);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  // The library promises to be content with FUNNELED, so the tests ask for no more: but for those
  // of progress threads.
  const bool threads = std::getenv("HEDDLE_TEST_THREADS") != nullptr;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
  int result = 1;
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    result = run_session(argc, argv);
  }
  MPI_Finalize();
  return result;
}
