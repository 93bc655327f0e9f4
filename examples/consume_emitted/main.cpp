// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Trains a model of three stages with 1F1B, in MPI alone. pipeline.hpp is a file that `mpigen
/// emit` wrote, and nothing else of Heddle is needed. A stage multiplies by its weights, element by
/// element, and the product of the three weights learns to be 3.

#include <cstdio>
#include <cstring>

#include "pipeline.hpp"  // includes mpi.h, without its old functions for C++

namespace {

constexpr int width = 8;  // numbers that a stage hands on: 64 bytes
constexpr double rate = 0.02;

/// The numbers of the task's buffer of this role; null if it uses none.
double* numbers(const pipeline::Task& task, const char* role) {
  for (int s = 0; s < task.count; ++s)
    if (std::strcmp(task.spans[s].role, role) == 0)
      return reinterpret_cast<double*>(task.spans[s].data);
  return nullptr;
}

double sample(int item, int i) { return 1 + 0.1 * item - 0.05 * i; }

class Model : public pipeline::Work {
 public:
  double loss = 0;  ///< of the step, on the last rank

  void forward(const pipeline::Task& task) override {
    const double* const input = numbers(task, "input");
    double* const output = numbers(task, "output");
    double* const saved = numbers(task, "saved");
    const double* const weights = numbers(task, "weights");
    for (int i = 0; i < width; ++i) {
      saved[i] = input ? input[i] : sample(task.item, i);  // the first stage has no input
      if (output) output[i] = weights[i] * saved[i];
    }
  }

  void backward(const pipeline::Task& task) override {
    const double* const saved = numbers(task, "saved");
    const double* const output_grad = numbers(task, "output_grad");
    const double* const weights = numbers(task, "weights");
    double* const input_grad = numbers(task, "input_grad");
    double* const gradients = numbers(task, "gradients");
    const bool first = task.spans[task.count - 1].access == pipeline::Access::write;
    for (int i = 0; i < width; ++i) {
      double grad = 0;
      if (output_grad) {
        grad = output_grad[i];
      } else {  // the last stage has the loss
        grad = weights[i] * saved[i] - 3 * sample(task.item, i);
        loss += grad * grad / 2;
      }
      if (input_grad) input_grad[i] = grad * weights[i];
      gradients[i] = (first ? 0 : gradients[i]) + grad * saved[i];
    }
  }

  void update(const pipeline::Task& task) override {
    const double* const gradients = numbers(task, "gradients");
    double* const weights = numbers(task, "weights");
    for (int i = 0; i < width; ++i) weights[i] -= rate * gradients[i];
  }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    pipeline::Program program(MPI_COMM_WORLD);
    for (pipeline::Buffer& buffer : program.buffers())
      for (int i = 0; buffer.persistent && i < width; ++i)
        reinterpret_cast<double*>(buffer.data)[i] = 1;  // the weights
    Model model;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 8; ++step) {
      model.loss = 0;
      program.step(model);
      if (rank == pipeline::ranks - 1 && step % 2 == 1)
        std::printf("step %2d: loss %.6f\n", step + 1, model.loss);
    }
    program.finish();
  }
  MPI_Finalize();
  return 0;
}
