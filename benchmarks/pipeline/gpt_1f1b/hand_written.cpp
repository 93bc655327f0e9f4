// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The other side of gpt_1f1b: 1F1B as one writes it by hand with MPI, for any number of ranks.
/// Receives are posted as soon as their buffer is free and waited for where their value is needed;
/// sends are waited for where their buffer is needed again.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <mpi.h>

#include <heddle/pipeline/partition.hpp>

#include "competitor.hpp"

namespace bench {
namespace {

class HandWritten final : public Competitor {
  using Stage = examples::GptStage<Real>;

 public:
  HandWritten(const examples::GptTraining& training, MPI_Comm comm)
      : m_microbatches(training.microbatches) {
    MPI_Comm_dup(comm, &m_comm);
    MPI_Comm_rank(m_comm, &m_rank);
    MPI_Comm_size(m_comm, &m_ranks);
    const auto range =
        heddle::partition_layers(training.model.layers, m_ranks)[static_cast<std::size_t>(m_rank)];
    m_stage = std::make_unique<Stage>(training.model, range.first, range.last, training.seed,
                                      training.optimizer);
    // A microbatch is kept from its forward to its backward call: so many at once.
    const int kept = std::min(m_microbatches, m_ranks - m_rank);
    m_saved = Ring(m_stage->saved_size(), kept);
    // One more, so that the next one arrives while this one is worked on.
    m_input = Ring(m_stage->input_size(), kept + 1);
    m_output = Ring(m_stage->output_size(), kept + 1);
    m_output_grad = Ring(m_stage->output_size(), 2);
    m_input_grad = Ring(m_stage->input_size(), 2);
    m_delta.resize(m_stage->delta_size());
  }
  ~HandWritten() override { MPI_Comm_free(&m_comm); }

  double step(std::span<const std::uint8_t> tokens, double weight) override {
    m_stage->begin_step(tokens, weight);
    m_stage->zero_gradients();
    for (int m = 0; m < m_input.slots(); ++m) receive_input(m);
    for (int m = 0; m < m_output_grad.slots(); ++m) receive_output_grad(m);
    const int ahead = std::min(m_microbatches, m_ranks - 1 - m_rank);
    for (int m = 0; m < ahead; ++m) forward(m);
    for (int m = ahead; m < m_microbatches; ++m) {
      forward(m);
      backward(m - ahead);
    }
    for (int m = m_microbatches - ahead; m < m_microbatches; ++m) backward(m);
    m_output.wait_all();
    m_input_grad.wait_all();
    m_stage->update();
    m_stage->fence();
    double loss = 0;
    if (m_stage->predicts())
      for (int m = 0; m < m_microbatches; ++m) loss += m_stage->loss(heddle::Item{m});
    MPI_Bcast(&loss, 1, MPI_DOUBLE, m_ranks - 1, m_comm);
    return loss;
  }

  [[nodiscard]] heddle::Bytes buffers() const override {
    return m_saved.bytes() + m_input.bytes() + m_output.bytes() + m_output_grad.bytes() +
           m_input_grad.bytes();
  }

 private:
  /// Memory for several microbatches, each with the message that reads or writes it. Empty where a
  /// stage has no such side.
  class Ring {
   public:
    Ring() = default;
    Ring(std::size_t elements, int slots)
        : m_elements(elements),
          m_data(elements * static_cast<std::size_t>(slots)),
          m_requests(elements == 0 ? 0 : static_cast<std::size_t>(slots), MPI_REQUEST_NULL) {}

    [[nodiscard]] int slots() const { return static_cast<int>(m_requests.size()); }
    [[nodiscard]] int count() const { return static_cast<int>(m_elements); }
    [[nodiscard]] heddle::Bytes bytes() const { return m_data.size() * sizeof(Real); }
    [[nodiscard]] Real* at(int m) {
      return slots() == 0 ? nullptr : m_data.data() + slot(m) * m_elements;
    }
    [[nodiscard]] MPI_Request& request(int m) { return m_requests[slot(m)]; }
    void wait(int m) {
      if (slots() != 0) MPI_Wait(&request(m), MPI_STATUS_IGNORE);
    }
    void wait_all() { MPI_Waitall(slots(), m_requests.data(), MPI_STATUSES_IGNORE); }

   private:
    [[nodiscard]] std::size_t slot(int m) const { return static_cast<std::size_t>(m % slots()); }

    std::size_t m_elements = 0;
    std::vector<Real> m_data;
    std::vector<MPI_Request> m_requests;
  };

  enum Tag { activation, gradient };

  void receive_input(int m) {
    if (m_input.slots() == 0 || m >= m_microbatches) return;
    MPI_Irecv(m_input.at(m), m_input.count(), MPI_FLOAT, m_rank - 1, activation, m_comm,
              &m_input.request(m));
  }
  void receive_output_grad(int m) {
    if (m_output_grad.slots() == 0 || m >= m_microbatches) return;
    MPI_Irecv(m_output_grad.at(m), m_output_grad.count(), MPI_FLOAT, m_rank + 1, gradient, m_comm,
              &m_output_grad.request(m));
  }

  void forward(int m) {
    m_input.wait(m);
    m_output.wait(m);
    m_stage->forward({.item = heddle::Item{m},
                      .input = m_input.at(m),
                      .output = m_output.at(m),
                      .saved = m_saved.at(m)});
    m_stage->fence();
    if (m_output.slots() == 0) return;
    MPI_Isend(m_output.at(m), m_output.count(), MPI_FLOAT, m_rank + 1, activation, m_comm,
              &m_output.request(m));
  }

  void backward(int m) {
    const heddle::Item item{m};
    m_output_grad.wait(m);
    m_input_grad.wait(m);
    m_stage->backward_input({.item = item,
                             .input = m_input.at(m),
                             .saved = m_saved.at(m),
                             .output_grad = m_output_grad.at(m),
                             .input_grad = m_input_grad.at(m),
                             .delta = m_delta.data()});
    m_stage->backward_weight({.item = item,
                              .input = m_input.at(m),
                              .saved = m_saved.at(m),
                              .output_grad = m_output_grad.at(m),
                              .delta = m_delta.data()});
    m_stage->fence();
    if (m_input_grad.slots() != 0)
      MPI_Isend(m_input_grad.at(m), m_input_grad.count(), MPI_FLOAT, m_rank - 1, gradient, m_comm,
                &m_input_grad.request(m));
    receive_input(m + m_input.slots());
    receive_output_grad(m + m_output_grad.slots());
  }

  int m_microbatches;
  MPI_Comm m_comm = MPI_COMM_NULL;
  int m_rank = 0;
  int m_ranks = 0;
  std::unique_ptr<Stage> m_stage;
  Ring m_saved, m_input, m_output, m_output_grad, m_input_grad;
  std::vector<Real> m_delta;  ///< of a backward call, between its two halves
};
static_assert(sizeof(Real) == sizeof(float), "the messages are MPI_FLOAT");

}  // namespace

std::unique_ptr<Competitor> make_hand_written(const examples::GptTraining& training,
                                              MPI_Comm comm) {
  return std::make_unique<HandWritten>(training, comm);
}

}  // namespace bench
