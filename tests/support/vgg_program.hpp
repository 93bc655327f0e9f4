// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A training step with the parameters of VGG-19 as a TensorProgram, and the programs with closed
/// forms that HAP is compared with.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::test {

/// Returns forward, backward and update of four linear layers with ReLUs between them. Layer 1 is
/// VGG's largest (25088 x 4096, 411 MB), layers 2 and 3 its last two. Layer 0 stands for all
/// convolutions and has their 80 MB.
inline systems::TensorProgram vgg_program(std::int64_t batch) {
  using systems::OperationKind;
  using systems::TensorRole;
  systems::TensorProgram vgg{
      .name = "VGG-like",
      .dimensions = {{"b", batch}, {"p", 800}, {"i", 25088}, {"h", 4096}, {"g", 4096}, {"c", 1000}},
      .tensors = {{"x", {"b", "p"}, systems::TensorRole::input},
                  {"target", {"b", "c"}, systems::TensorRole::input}}};
  const std::vector<std::string> dims = {"p", "i", "h", "g", "c"};
  constexpr int layers = 4;
  const auto name = [](const char* what, int layer) { return what + std::to_string(layer); };
  const auto add = [&](std::string tensor, std::vector<std::string> of,
                       TensorRole role = systems::TensorRole::intermediate,
                       std::string updates = {}) {
    vgg.tensors.push_back(
        {std::move(tensor), std::move(of), role, Scalar::f32, std::move(updates)});
  };
  for (int l = 0; l < layers; ++l) {
    const std::string& in = dims[static_cast<std::size_t>(l)];
    const std::string& out = dims[static_cast<std::size_t>(l) + 1];
    add(name("w", l), {in, out}, systems::TensorRole::parameter);
    add(name("z", l), {"b", out});
    add(name("dz", l), {"b", out});
    add(name("dw", l), {in, out});
    add(name("new_w", l), {in, out}, systems::TensorRole::output, name("w", l));
    if (l + 1 == layers) continue;
    add(name("a", l), {"b", out});
    add(name("da", l), {"b", out});
  }
  const auto input = [&](int l) { return l == 0 ? std::string("x") : name("a", l - 1); };
  for (int l = 0; l < layers; ++l) {
    vgg.operations.push_back(
        {systems::OperationKind::matmul, {input(l), name("w", l)}, name("z", l)});
    if (l + 1 < layers)
      vgg.operations.push_back(
          {systems::OperationKind::elementwise, {name("z", l)}, name("a", l), "relu"});
  }
  vgg.operations.push_back({systems::OperationKind::elementwise,
                            {name("z", layers - 1), "target"},
                            name("dz", layers - 1),
                            "subtract"});
  for (int l = layers - 1; l >= 0; --l) {
    if (l + 1 < layers)
      vgg.operations.push_back({systems::OperationKind::elementwise,
                                {name("da", l), name("z", l)},
                                name("dz", l),
                                "relu_gradient"});
    vgg.operations.push_back(
        {systems::OperationKind::matmul, {input(l), name("dz", l)}, name("dw", l)});
    vgg.operations.push_back({systems::OperationKind::elementwise,
                              {name("w", l), name("dw", l)},
                              name("new_w", l),
                              "step",
                              0.01});
    if (l > 0)
      vgg.operations.push_back(
          {systems::OperationKind::matmul, {name("dz", l), name("w", l)}, name("da", l - 1)});
  }
  return vgg;
}

/// How the largest layer of vgg_program() is divided. All other layers are data parallel.
enum class LargeLayer : std::uint8_t { data, inputs, outputs, factors };

/// Returns the forms that prescribe a program. `data` is data parallelism in all layers.
inline std::vector<std::pair<std::string, systems::TensorForm>> vgg_forms(
    const systems::TensorProgram& vgg, LargeLayer large) {
  using systems::TensorForm;
  std::vector<std::pair<std::string, TensorForm>> forms;
  for (const systems::ProgramTensor& tensor : vgg.tensors) {
    const bool one = tensor.name.back() == '1', gradient = tensor.name.starts_with("dw");
    TensorForm form = tensor.dims[0] == "b" ? systems::TensorForm::sharded("b")
                      : gradient            ? systems::TensorForm::partial()
                                            : TensorForm{};
    if (!tensor.updates.empty()) continue;
    if (one && large == LargeLayer::inputs) {
      if (tensor.name == "w1" || gradient) form = systems::TensorForm::sharded("i");
      if (tensor.name == "z1") form = systems::TensorForm::partial();
    }
    if (tensor.name == "da0" && large == LargeLayer::inputs)
      form = systems::TensorForm::sharded("i");
    if (one && large == LargeLayer::outputs) {
      if (tensor.name == "w1" || gradient) form = systems::TensorForm::sharded("h");
      if (tensor.name == "z1") form = systems::TensorForm::sharded("h");
    }
    if (tensor.name == "da0" && large == LargeLayer::outputs) form = systems::TensorForm::partial();
    if (one && gradient && large == LargeLayer::factors) form = TensorForm{};
    forms.emplace_back(tensor.name, form);
  }
  return forms;
}

/// Returns the forms that keep the convolutions data parallel and leave the rest free, because a
/// matrix stands for them here that could be divided in other ways than convolutions.
inline std::vector<std::pair<std::string, systems::TensorForm>> vgg_convolutions() {
  using systems::TensorForm;
  return {{"x", systems::TensorForm::sharded("b")},
          {"w0", {}},
          {"z0", systems::TensorForm::sharded("b")},
          {"dw0", systems::TensorForm::partial()}};
}

/// Returns the bytes that a node of `nodes` sends in a step of vgg_program(), by closed form. The
/// gradients of data parallel layers are summed around a ring.
inline double vgg_bytes(std::int64_t batch, LargeLayer large, int nodes) {
  const double n = nodes, b = static_cast<double>(batch), size = 4;
  const double rest = 800.0 * 25088 + 4096.0 * 4096 + 4096.0 * 1000, in = 25088, out = 4096;
  const double sums = 2 * (n - 1) / n * rest * size, gather = (n - 1) / n * b * size;
  const double exchange = gather / n;
  switch (large) {
    case LargeLayer::data: return sums + 2 * (n - 1) / n * in * out * size;
    case LargeLayer::inputs: return sums + 2 * exchange * in + 2 * gather * out;
    case LargeLayer::outputs: return sums + 2 * gather * in + 2 * exchange * out;
    case LargeLayer::factors: break;
  }
  return sums + gather * (in + out);
}

}  // namespace heddle::test
