// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Our side of gpt_1f1b: what a user of Heddle writes.

#include <cstdint>
#include <memory>
#include <span>

#include <mpi.h>

#include <heddle/heddle.hpp>

#include "competitor.hpp"

namespace bench {
namespace {

class Ours final : public Competitor {
 public:
  Ours(const examples::GptTraining& training, MPI_Comm comm, int ranks)
      : m_mesh(comm, {{"pipe", ranks}}),
        m_model(examples::make_gpt<Real>(training)),
        m_run(
            m_model,
            heddle::schedule::one_f_one_b({.ranks = ranks, .microbatches = training.microbatches}),
            m_mesh) {}

  double step(std::span<const std::uint8_t> tokens, double weight) override {
    const double loss = m_run.step(tokens, weight).loss;
    m_run.drain();
    return loss;
  }

  [[nodiscard]] heddle::Bytes buffers() const override { return m_run.allocated(); }

 private:
  heddle::DeviceMesh m_mesh;
  examples::Gpt<Real> m_model;
  heddle::Runner<examples::Gpt<Real>&, heddle::DeviceMesh&> m_run;
};

}  // namespace

std::unique_ptr<Competitor> make_ours(const examples::GptTraining& training, MPI_Comm comm) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  return std::make_unique<Ours>(training, comm, ranks);
}

}  // namespace bench
