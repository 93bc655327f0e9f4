// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Runs emitted programs, of which the source that includes this has a table, and compares their
/// buffers and their messages with a file. Knows nothing of Heddle. generate.cpp writes both.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

namespace driver {

constexpr int steps = 3;       ///< of which the file has the results
inline int performed = steps;  ///< steps that the programs perform

struct Traffic {
  std::uint64_t messages = 0, bytes = 0;
};

/// What this rank has sent, by receiver and tag. MPI_Isend below counts it.
inline std::map<std::pair<int, int>, Traffic> sent;
inline std::uint64_t received = 0;  ///< receives posted

/// The file with what is expected, read from its begin to its end.
class File {
 public:
  explicit File(const char* name) {
    std::ifstream in(name, std::ios::binary);
    m_bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const char* take(std::size_t bytes) {
    if (m_bytes.size() - m_at < bytes) {
      std::cerr << "the file ends early\n";
      std::exit(2);
    }
    m_at += bytes;
    return m_bytes.data() + (m_at - bytes);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  bool at_end() const { return m_at == m_bytes.size(); }

 private:
  std::vector<char> m_bytes;
  std::size_t m_at = 0;
};

/// The meaning of the actions: every byte that one writes depends on its kind, stage and item, on
/// every byte that it reads, and on their order.
template <class Base, class Task, class Access>
class Meaning : public Base {
 public:
  void forward(const Task& task) override { perform(0, task); }
  void backward_input(const Task& task) override { perform(1, task); }
  void backward_weight(const Task& task) override { perform(2, task); }
  void backward(const Task& task) override { perform(3, task); }
  void update(const Task& task) override { perform(8, task); }

 private:
  static void perform(std::uint64_t kind, const Task& task) {
    std::uint64_t state = 0xcbf29ce484222325u;  // FNV-1a of "action"
    for (const char c : {'a', 'c', 't', 'i', 'o', 'n'})
      state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    const auto mix = [&state](std::uint64_t word) {
      state = (state ^ word) * 0x9e3779b97f4a7c15u;
      state ^= state >> 29;
    };
    mix(kind << 56 ^ static_cast<std::uint64_t>(task.stage) << 28 ^
        static_cast<std::uint64_t>(task.item));
    for (int s = 0; s < task.count; ++s)
      if (task.spans[s].access != Access::write)
        for (std::size_t i = 0; i < task.spans[s].bytes; ++i) mix(task.spans[s].data[i]);
    std::uint64_t index = 0;
    for (int s = 0; s < task.count; ++s)
      if (task.spans[s].access != Access::read)
        for (std::size_t i = 0; i < task.spans[s].bytes; ++i)
          task.spans[s].data[i] = static_cast<unsigned char>(state >> (index++ % 57));
  }
};

/// What the ranks of a case find wrong; empty if nothing.
using Check = std::string (*)(MPI_Comm comm, File& file);

struct Case {
  const char* name;
  int ranks;
  Check check;
};

/// Runs a program on the ranks of `comm`, which is null on ranks beyond those of the schedule.
template <class Program, class Work>
std::string check(MPI_Comm comm, File& file) {
  int rank = -1;
  if (comm != MPI_COMM_NULL) MPI_Comm_rank(comm, &rank);
  struct Expected {
    const char* initial;
    const char* last;
    std::size_t bytes;
  };
  std::vector<Expected> mine;
  for (std::uint64_t left = file.number(); left > 0; --left) {
    const int owner = static_cast<int>(file.number());
    const std::size_t bytes = file.number();
    const char* const initial = file.take(bytes);
    const char* const last = file.take(bytes);
    if (owner == rank) mine.push_back({initial, last, bytes});
  }
  std::map<std::pair<int, int>, Traffic> to_send;
  std::uint64_t to_receive = 0;
  for (std::uint64_t left = file.number(); left > 0; --left) {
    const int from = static_cast<int>(file.number()), to = static_cast<int>(file.number());
    const int lane = static_cast<int>(file.number());
    const std::uint64_t messages = file.number(), bytes = file.number();
    if (from == rank) to_send[{to, lane}] = {steps * messages, steps * bytes};
    if (to == rank) to_receive += steps * messages;
  }
  if (rank < 0) return {};
  sent.clear();
  received = 0;
  std::string wrong;
  Program program(comm);
  if (program.buffers().size() != mine.size()) return "another number of buffers";
  for (std::size_t b = 0; b < mine.size(); ++b) {
    if (program.buffers()[b].bytes != mine[b].bytes) return "a buffer of another size";
    if (mine[b].bytes != 0) std::memcpy(program.buffers()[b].data, mine[b].initial, mine[b].bytes);
  }
  Work work;
  for (int step = 0; step < performed; ++step) program.step(work);
  program.finish();
  for (std::size_t b = 0; b < mine.size(); ++b)
    if (mine[b].bytes != 0 &&
        std::memcmp(program.buffers()[b].data, mine[b].last, mine[b].bytes) != 0)
      wrong += "buffer " + std::to_string(b) + " ends otherwise; ";
  if (!std::equal(sent.begin(), sent.end(), to_send.begin(), to_send.end(),
                  [](const auto& a, const auto& b) {
                    return a.first == b.first && a.second.messages == b.second.messages &&
                           a.second.bytes == b.second.bytes;
                  }))
    wrong += "other messages are sent; ";
  if (received != to_receive) wrong += "other messages are received; ";
  return wrong;
}

inline int run(const char* name, const Case* cases, std::size_t count) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  File file(name);
  int failures = 0, run = 0;
  for (std::size_t c = 0; c < count; ++c) {
    MPI_Comm comm = MPI_COMM_NULL;
    const bool enough = cases[c].ranks <= size;
    MPI_Comm_split(MPI_COMM_WORLD, enough && rank < cases[c].ranks ? 0 : MPI_UNDEFINED, rank,
                   &comm);
    const std::string wrong = cases[c].check(comm, file);
    run += enough;
    if (!wrong.empty()) {
      ++failures;
      std::cerr << cases[c].name << ", rank " << rank << ": " << wrong << '\n';
    }
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  if (!file.at_end()) ++failures;
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::cout << run << " programs ran, " << all << " failures\n";
  return all == 0 ? 0 : 1;
}

}  // namespace driver

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  int size = 0;
  MPI_Type_size(type, &size);
  driver::Traffic& traffic = driver::sent[{to, tag}];
  ++traffic.messages;
  traffic.bytes += static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

extern "C" int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  ++driver::received;
  return PMPI_Irecv(data, count, type, from, tag, comm, request);
}
