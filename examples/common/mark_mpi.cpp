// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A library that disturb.sh loads into the ranks of a run (LD_PRELOAD). A rank makes the file
// begun.PID in the folder SILENT_RUN when MPI_Init returns, and ending.PID when it calls
// MPI_Finalize. Neither has a watchdog, so a rank that is stopped in one of them is no hang.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include <mpi.h>

namespace {

void mark(const char* what) {
  const char* const folder = std::getenv("SILENT_RUN");
  if (folder == nullptr) return;
  const std::string path = std::string(folder) + "/" + what + "." + std::to_string(::getpid());
  if (std::FILE* const file = std::fopen(path.c_str(), "w")) std::fclose(file);
}

}  // namespace

extern "C" int MPI_Init(int* argc, char*** argv) {
  const int status = PMPI_Init(argc, argv);
  mark("begun");
  return status;
}

extern "C" int MPI_Init_thread(int* argc, char*** argv, int asked, int* provided) {
  const int status = PMPI_Init_thread(argc, argv, asked, provided);
  mark("begun");
  return status;
}

extern "C" int MPI_Finalize() {
  mark("ending");
  return PMPI_Finalize();
}
