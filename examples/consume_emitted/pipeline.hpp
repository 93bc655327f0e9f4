// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// 1F1B P=3 M=4 on 3 ranks, in C++17 with MPI alone. Written by Heddle 0.1.0.
//
// Derive a class from pipeline::Work and start 3 processes. Each does:
//
//   pipeline::Program program(MPI_COMM_WORLD);
//   for (auto& buffer : program.buffers())
//     if (buffer.persistent) fill(buffer);
//   program.step(work);  // as often as you like
//   program.finish();    // before you read or change a buffer

#ifndef HEDDLE_EMITTED_pipeline
#define HEDDLE_EMITTED_pipeline

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// The C++ functions of old MPIs, which are not used, have warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

namespace pipeline {

constexpr int ranks = 3;

/// How an action touches memory: `write` begins a new value, `update` changes the present one.
enum class Access { read, write, update };

/// The type of the elements of a buffer.
enum class Type { byte, i32, i64, f32, f64, f16, bf16, f8e4m3, f8e5m2, i8 };

/// Memory that an action touches.
struct Span {
  const char* role;  ///< the role of its buffer
  Access access;
  Type type;
  unsigned char* data;
  std::size_t bytes;
  std::size_t record;  ///< elements that a combine joins as one value; 0: one
};

/// One action.
struct Task {
  int stage;
  int item;           ///< the microbatch
  bool fused;         ///< may be computed together with the next action
  bool again;         ///< repeats an earlier action, whose result was not kept
  const Span* spans;  ///< the memory, in the order that the schedule states
  int count;          ///< number of spans
};

/// A buffer of a rank.
struct Buffer {
  const char* role;
  int stage;
  Type type;
  int parts;        ///< such as one for each microbatch
  bool persistent;  ///< keeps its value between steps: fill it before the first one
  std::size_t bytes;
  unsigned char* data;
};

/// What the actions compute. Derive from it.
class Work {
 public:
  virtual ~Work() = default;
  /// F: the forward pass of a stage.
  virtual void forward(const Task& task) = 0;
  /// I: the gradients of the inputs of a stage. This schedule does not call it.
  virtual void backward_input(const Task&) {}
  /// W: the gradients of the weights of a stage. This schedule does not call it.
  virtual void backward_weight(const Task&) {}
  /// B: both gradients of a stage at once.
  virtual void backward(const Task& task) = 0;
  /// a step of the optimiser.
  virtual void update(const Task& task) = 0;
  /// Adds the span that is only read to the other one.
  virtual void combine(const Task& task) {
    const int read = task.spans[0].access == Access::read ? 0 : 1;
    const Span& from = task.spans[read];
    const Span& into = task.spans[1 - read];
    if (into.record != 0)
      throw std::logic_error("pipeline::Work: combine() of records is not defined");
    switch (into.type) {
      case Type::i32: return add<std::uint32_t>(from, into);  // wraps around
      case Type::i64: return add<std::uint64_t>(from, into);
      case Type::f32: return add<float>(from, into);
      case Type::f64: return add<double>(from, into);
      default: break;
    }
    throw std::logic_error("pipeline::Work: combine() of bytes is not defined");
  }

 private:
  template <class T>
  static void add(const Span& from, const Span& into) {
    for (std::size_t at = 0; at + sizeof(T) <= into.bytes; at += sizeof(T)) {
      T value, sum;
      std::memcpy(&value, from.data + at, sizeof(T));
      std::memcpy(&sum, into.data + at, sizeof(T));
      sum += value;
      std::memcpy(into.data + at, &sum, sizeof(T));
    }
  }
};

/// The part of the schedule on this rank, and its memory. All ranks of a communicator construct it.
class Program {
 public:
  explicit Program(MPI_Comm comm) : exceptions_(std::uncaught_exceptions()) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    if (size != ranks)
      throw std::runtime_error("pipeline::Program: start it on " + std::to_string(ranks) +
                               " ranks, not on " + std::to_string(size));
    MPI_Comm_dup(comm, &comm_);
    MPI_Comm_rank(comm, &rank_);
    switch (rank_) {
      case 0: make_0(); break;
      case 1: make_1(); break;
      case 2: make_2(); break;
    }
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Completes all messages. If an exception destroys the program, the job ends, because the
  /// other ranks would wait for this one.
  ~Program() {
    if (std::uncaught_exceptions() > exceptions_) MPI_Abort(comm_, 1);
    finish();
    MPI_Comm_free(&comm_);
  }

  /// Returns the buffers of this rank.
  std::vector<Buffer>& buffers() { return buffers_; }

  /// Performs the schedule once. Messages may stay in flight.
  void step(Work& work) {
    std::swap(now_, before_);
    switch (rank_) {
      case 0: rank_0(work); break;
      case 1: rank_1(work); break;
      case 2: rank_2(work); break;
    }
  }

  /// Completes the messages in flight.
  void finish() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  void add(const char* role, int stage, Type type, int parts, bool persistent, std::size_t bytes) {
    memory_.emplace_back(bytes);
    buffers_.push_back({role, stage, type, parts, persistent, bytes, memory_.back().data()});
  }

  /// The requests of two steps, because a message may be awaited in the next one.
  void expect(std::size_t messages) {
    requests_.assign(2 * messages, MPI_REQUEST_NULL);
    now_ = requests_.data();
    before_ = now_ + messages;
  }

  /// Lets MPI carry the messages in flight.
  void progress() {
    int done = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
  }

  /// Rank 0: 896 bytes, 8 messages a step.
  void make_0() {
    add("output", 0, Type::f64, 4, false, 256);
    add("saved", 0, Type::f64, 4, false, 256);
    add("gradients", 0, Type::f64, 1, false, 64);
    add("weights", 0, Type::f64, 1, true, 64);
    add("output_grad", 0, Type::f64, 4, false, 256);
    expect(8);
  }

  void rank_0(Work& work) {
    unsigned char* const output_0 = buffers_[0].data;
    unsigned char* const saved_0 = buffers_[1].data;
    unsigned char* const gradients_0 = buffers_[2].data;
    unsigned char* const weights_0 = buffers_[3].data;
    unsigned char* const output_grad_0 = buffers_[4].data;
    MPI_Request* const to_1 = now_;  // 4 messages
    MPI_Request* const to_1_before = before_;
    MPI_Request* const from_1 = now_ + 4;  // 4 messages

    // 0F0
    MPI_Wait(&to_1_before[0], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"output", Access::write, Type::f64, output_0, 64, 0},
          {"saved", Access::write, Type::f64, saved_0, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
      };
      work.forward({0, 0, false, false, spans, 3});
    }
    progress();

    // 0SEND_F0 to rank 1
    MPI_Isend(output_0, 64, MPI_BYTE, 1, 0, comm_, &to_1[0]);

    // 0F1
    MPI_Wait(&to_1_before[1], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"output", Access::write, Type::f64, output_0 + 64, 64, 0},
          {"saved", Access::write, Type::f64, saved_0 + 64, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
      };
      work.forward({0, 1, false, false, spans, 3});
    }
    progress();

    // 0SEND_F1 to rank 1
    MPI_Isend(output_0 + 64, 64, MPI_BYTE, 1, 0, comm_, &to_1[1]);

    // 0F2
    MPI_Wait(&to_1_before[2], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"output", Access::write, Type::f64, output_0 + 128, 64, 0},
          {"saved", Access::write, Type::f64, saved_0 + 128, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
      };
      work.forward({0, 2, false, false, spans, 3});
    }
    progress();

    // 0SEND_F2 to rank 1
    MPI_Isend(output_0 + 128, 64, MPI_BYTE, 1, 0, comm_, &to_1[2]);

    // 0RECV_B0 from rank 1
    MPI_Irecv(output_grad_0, 64, MPI_BYTE, 1, 0, comm_, &from_1[0]);

    // 0B0
    MPI_Wait(&from_1[0], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"saved", Access::read, Type::f64, saved_0, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_0, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
          {"gradients", Access::write, Type::f64, gradients_0, 64, 0},
      };
      work.backward({0, 0, false, false, spans, 4});
    }
    progress();

    // 0F3
    MPI_Wait(&to_1_before[3], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"output", Access::write, Type::f64, output_0 + 192, 64, 0},
          {"saved", Access::write, Type::f64, saved_0 + 192, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
      };
      work.forward({0, 3, false, false, spans, 3});
    }
    progress();

    // 0SEND_F3 to rank 1
    MPI_Isend(output_0 + 192, 64, MPI_BYTE, 1, 0, comm_, &to_1[3]);

    // 0RECV_B1 from rank 1
    MPI_Irecv(output_grad_0 + 64, 64, MPI_BYTE, 1, 0, comm_, &from_1[1]);

    // 0B1
    MPI_Wait(&from_1[1], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"saved", Access::read, Type::f64, saved_0 + 64, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_0 + 64, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_0, 64, 0},
      };
      work.backward({0, 1, false, false, spans, 4});
    }
    progress();

    // 0RECV_B2 from rank 1
    MPI_Irecv(output_grad_0 + 128, 64, MPI_BYTE, 1, 0, comm_, &from_1[2]);

    // 0B2
    MPI_Wait(&from_1[2], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"saved", Access::read, Type::f64, saved_0 + 128, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_0 + 128, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_0, 64, 0},
      };
      work.backward({0, 2, false, false, spans, 4});
    }
    progress();

    // 0RECV_B3 from rank 1
    MPI_Irecv(output_grad_0 + 192, 64, MPI_BYTE, 1, 0, comm_, &from_1[3]);

    // 0B3
    MPI_Wait(&from_1[3], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"saved", Access::read, Type::f64, saved_0 + 192, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_0 + 192, 64, 0},
          {"weights", Access::read, Type::f64, weights_0, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_0, 64, 0},
      };
      work.backward({0, 3, false, false, spans, 4});
    }
    progress();

    // 0UPDATE0
    {
      const Span spans[] = {
          {"gradients", Access::update, Type::f64, gradients_0, 64, 0},
          {"weights", Access::update, Type::f64, weights_0, 64, 0},
      };
      work.update({0, 0, false, false, spans, 2});
    }
    progress();
  }

  /// Rank 1: 1408 bytes, 16 messages a step.
  void make_1() {
    add("output", 1, Type::f64, 4, false, 256);
    add("saved", 1, Type::f64, 4, false, 256);
    add("gradients", 1, Type::f64, 1, false, 64);
    add("weights", 1, Type::f64, 1, true, 64);
    add("input", 1, Type::f64, 4, false, 256);
    add("input_grad", 1, Type::f64, 4, false, 256);
    add("output_grad", 1, Type::f64, 4, false, 256);
    expect(16);
  }

  void rank_1(Work& work) {
    unsigned char* const output_1 = buffers_[0].data;
    unsigned char* const saved_1 = buffers_[1].data;
    unsigned char* const gradients_1 = buffers_[2].data;
    unsigned char* const weights_1 = buffers_[3].data;
    unsigned char* const input_1 = buffers_[4].data;
    unsigned char* const input_grad_1 = buffers_[5].data;
    unsigned char* const output_grad_1 = buffers_[6].data;
    MPI_Request* const from_0 = now_;  // 4 messages
    MPI_Request* const to_2 = now_ + 4;  // 4 messages
    MPI_Request* const to_2_before = before_ + 4;
    MPI_Request* const from_2 = now_ + 8;  // 4 messages
    MPI_Request* const to_0 = now_ + 12;  // 4 messages
    MPI_Request* const to_0_before = before_ + 12;

    // 1RECV_F0 from rank 0
    MPI_Irecv(input_1, 64, MPI_BYTE, 0, 0, comm_, &from_0[0]);

    // 1RECV_F1 from rank 0
    MPI_Irecv(input_1 + 64, 64, MPI_BYTE, 0, 0, comm_, &from_0[1]);

    // 1F0
    MPI_Wait(&from_0[0], MPI_STATUS_IGNORE);
    MPI_Wait(&to_2_before[0], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1, 64, 0},
          {"output", Access::write, Type::f64, output_1, 64, 0},
          {"saved", Access::write, Type::f64, saved_1, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
      };
      work.forward({1, 0, false, false, spans, 4});
    }
    progress();

    // 1SEND_F0 to rank 2
    MPI_Isend(output_1, 64, MPI_BYTE, 2, 0, comm_, &to_2[0]);

    // 1RECV_F2 from rank 0
    MPI_Irecv(input_1 + 128, 64, MPI_BYTE, 0, 0, comm_, &from_0[2]);

    // 1F1
    MPI_Wait(&from_0[1], MPI_STATUS_IGNORE);
    MPI_Wait(&to_2_before[1], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1 + 64, 64, 0},
          {"output", Access::write, Type::f64, output_1 + 64, 64, 0},
          {"saved", Access::write, Type::f64, saved_1 + 64, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
      };
      work.forward({1, 1, false, false, spans, 4});
    }
    progress();

    // 1SEND_F1 to rank 2
    MPI_Isend(output_1 + 64, 64, MPI_BYTE, 2, 0, comm_, &to_2[1]);

    // 1RECV_B0 from rank 2
    MPI_Irecv(output_grad_1, 64, MPI_BYTE, 2, 0, comm_, &from_2[0]);

    // 1B0
    MPI_Wait(&from_2[0], MPI_STATUS_IGNORE);
    MPI_Wait(&to_0_before[0], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1, 64, 0},
          {"saved", Access::read, Type::f64, saved_1, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_1, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_1, 64, 0},
          {"gradients", Access::write, Type::f64, gradients_1, 64, 0},
      };
      work.backward({1, 0, false, false, spans, 6});
    }
    progress();

    // 1SEND_B0 to rank 0
    MPI_Isend(input_grad_1, 64, MPI_BYTE, 0, 0, comm_, &to_0[0]);

    // 1F2
    MPI_Wait(&from_0[2], MPI_STATUS_IGNORE);
    MPI_Wait(&to_2_before[2], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1 + 128, 64, 0},
          {"output", Access::write, Type::f64, output_1 + 128, 64, 0},
          {"saved", Access::write, Type::f64, saved_1 + 128, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
      };
      work.forward({1, 2, false, false, spans, 4});
    }
    progress();

    // 1SEND_F2 to rank 2
    MPI_Isend(output_1 + 128, 64, MPI_BYTE, 2, 0, comm_, &to_2[2]);

    // 1RECV_B1 from rank 2
    MPI_Irecv(output_grad_1 + 64, 64, MPI_BYTE, 2, 0, comm_, &from_2[1]);

    // 1RECV_F3 from rank 0
    MPI_Irecv(input_1 + 192, 64, MPI_BYTE, 0, 0, comm_, &from_0[3]);

    // 1B1
    MPI_Wait(&from_2[1], MPI_STATUS_IGNORE);
    MPI_Wait(&to_0_before[1], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1 + 64, 64, 0},
          {"saved", Access::read, Type::f64, saved_1 + 64, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_1 + 64, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_1 + 64, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_1, 64, 0},
      };
      work.backward({1, 1, false, false, spans, 6});
    }
    progress();

    // 1SEND_B1 to rank 0
    MPI_Isend(input_grad_1 + 64, 64, MPI_BYTE, 0, 0, comm_, &to_0[1]);

    // 1F3
    MPI_Wait(&from_0[3], MPI_STATUS_IGNORE);
    MPI_Wait(&to_2_before[3], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1 + 192, 64, 0},
          {"output", Access::write, Type::f64, output_1 + 192, 64, 0},
          {"saved", Access::write, Type::f64, saved_1 + 192, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
      };
      work.forward({1, 3, false, false, spans, 4});
    }
    progress();

    // 1SEND_F3 to rank 2
    MPI_Isend(output_1 + 192, 64, MPI_BYTE, 2, 0, comm_, &to_2[3]);

    // 1RECV_B2 from rank 2
    MPI_Irecv(output_grad_1 + 128, 64, MPI_BYTE, 2, 0, comm_, &from_2[2]);

    // 1B2
    MPI_Wait(&from_2[2], MPI_STATUS_IGNORE);
    MPI_Wait(&to_0_before[2], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1 + 128, 64, 0},
          {"saved", Access::read, Type::f64, saved_1 + 128, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_1 + 128, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_1 + 128, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_1, 64, 0},
      };
      work.backward({1, 2, false, false, spans, 6});
    }
    progress();

    // 1SEND_B2 to rank 0
    MPI_Isend(input_grad_1 + 128, 64, MPI_BYTE, 0, 0, comm_, &to_0[2]);

    // 1RECV_B3 from rank 2
    MPI_Irecv(output_grad_1 + 192, 64, MPI_BYTE, 2, 0, comm_, &from_2[3]);

    // 1B3
    MPI_Wait(&from_2[3], MPI_STATUS_IGNORE);
    MPI_Wait(&to_0_before[3], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_1 + 192, 64, 0},
          {"saved", Access::read, Type::f64, saved_1 + 192, 64, 0},
          {"output_grad", Access::read, Type::f64, output_grad_1 + 192, 64, 0},
          {"weights", Access::read, Type::f64, weights_1, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_1 + 192, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_1, 64, 0},
      };
      work.backward({1, 3, false, false, spans, 6});
    }
    progress();

    // 1SEND_B3 to rank 0
    MPI_Isend(input_grad_1 + 192, 64, MPI_BYTE, 0, 0, comm_, &to_0[3]);

    // 1UPDATE0
    {
      const Span spans[] = {
          {"gradients", Access::update, Type::f64, gradients_1, 64, 0},
          {"weights", Access::update, Type::f64, weights_1, 64, 0},
      };
      work.update({1, 0, false, false, spans, 2});
    }
    progress();
  }

  /// Rank 2: 896 bytes, 8 messages a step.
  void make_2() {
    add("saved", 2, Type::f64, 4, false, 256);
    add("gradients", 2, Type::f64, 1, false, 64);
    add("weights", 2, Type::f64, 1, true, 64);
    add("input", 2, Type::f64, 4, false, 256);
    add("input_grad", 2, Type::f64, 4, false, 256);
    expect(8);
  }

  void rank_2(Work& work) {
    unsigned char* const saved_2 = buffers_[0].data;
    unsigned char* const gradients_2 = buffers_[1].data;
    unsigned char* const weights_2 = buffers_[2].data;
    unsigned char* const input_2 = buffers_[3].data;
    unsigned char* const input_grad_2 = buffers_[4].data;
    MPI_Request* const from_1 = now_;  // 4 messages
    MPI_Request* const to_1 = now_ + 4;  // 4 messages
    MPI_Request* const to_1_before = before_ + 4;

    // 2RECV_F0 from rank 1
    MPI_Irecv(input_2, 64, MPI_BYTE, 1, 0, comm_, &from_1[0]);

    // 2RECV_F1 from rank 1
    MPI_Irecv(input_2 + 64, 64, MPI_BYTE, 1, 0, comm_, &from_1[1]);

    // 2F0
    MPI_Wait(&from_1[0], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2, 64, 0},
          {"saved", Access::write, Type::f64, saved_2, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
      };
      work.forward({2, 0, false, false, spans, 3});
    }
    progress();

    // 2B0
    MPI_Wait(&to_1_before[0], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2, 64, 0},
          {"saved", Access::read, Type::f64, saved_2, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_2, 64, 0},
          {"gradients", Access::write, Type::f64, gradients_2, 64, 0},
      };
      work.backward({2, 0, false, false, spans, 5});
    }
    progress();

    // 2SEND_B0 to rank 1
    MPI_Isend(input_grad_2, 64, MPI_BYTE, 1, 0, comm_, &to_1[0]);

    // 2F1
    MPI_Wait(&from_1[1], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2 + 64, 64, 0},
          {"saved", Access::write, Type::f64, saved_2 + 64, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
      };
      work.forward({2, 1, false, false, spans, 3});
    }
    progress();

    // 2RECV_F2 from rank 1
    MPI_Irecv(input_2 + 128, 64, MPI_BYTE, 1, 0, comm_, &from_1[2]);

    // 2B1
    MPI_Wait(&to_1_before[1], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2 + 64, 64, 0},
          {"saved", Access::read, Type::f64, saved_2 + 64, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_2 + 64, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_2, 64, 0},
      };
      work.backward({2, 1, false, false, spans, 5});
    }
    progress();

    // 2SEND_B1 to rank 1
    MPI_Isend(input_grad_2 + 64, 64, MPI_BYTE, 1, 0, comm_, &to_1[1]);

    // 2F2
    MPI_Wait(&from_1[2], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2 + 128, 64, 0},
          {"saved", Access::write, Type::f64, saved_2 + 128, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
      };
      work.forward({2, 2, false, false, spans, 3});
    }
    progress();

    // 2RECV_F3 from rank 1
    MPI_Irecv(input_2 + 192, 64, MPI_BYTE, 1, 0, comm_, &from_1[3]);

    // 2B2
    MPI_Wait(&to_1_before[2], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2 + 128, 64, 0},
          {"saved", Access::read, Type::f64, saved_2 + 128, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_2 + 128, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_2, 64, 0},
      };
      work.backward({2, 2, false, false, spans, 5});
    }
    progress();

    // 2SEND_B2 to rank 1
    MPI_Isend(input_grad_2 + 128, 64, MPI_BYTE, 1, 0, comm_, &to_1[2]);

    // 2F3
    MPI_Wait(&from_1[3], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2 + 192, 64, 0},
          {"saved", Access::write, Type::f64, saved_2 + 192, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
      };
      work.forward({2, 3, false, false, spans, 3});
    }
    progress();

    // 2B3
    MPI_Wait(&to_1_before[3], MPI_STATUS_IGNORE);
    {
      const Span spans[] = {
          {"input", Access::read, Type::f64, input_2 + 192, 64, 0},
          {"saved", Access::read, Type::f64, saved_2 + 192, 64, 0},
          {"weights", Access::read, Type::f64, weights_2, 64, 0},
          {"input_grad", Access::write, Type::f64, input_grad_2 + 192, 64, 0},
          {"gradients", Access::update, Type::f64, gradients_2, 64, 0},
      };
      work.backward({2, 3, false, false, spans, 5});
    }
    progress();

    // 2SEND_B3 to rank 1
    MPI_Isend(input_grad_2 + 192, 64, MPI_BYTE, 1, 0, comm_, &to_1[3]);

    // 2UPDATE0
    {
      const Span spans[] = {
          {"gradients", Access::update, Type::f64, gradients_2, 64, 0},
          {"weights", Access::update, Type::f64, weights_2, 64, 0},
      };
      work.update({2, 0, false, false, spans, 2});
    }
    progress();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int exceptions_;
  std::vector<std::vector<unsigned char>> memory_;
  std::vector<Buffer> buffers_;
  std::vector<MPI_Request> requests_;
  MPI_Request* now_ = nullptr;     ///< the requests of this step
  MPI_Request* before_ = nullptr;  ///< the requests of the step before
};

}  // namespace pipeline

#endif
