// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of transformer_program.hpp.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/transformer_program.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline void check_shape(const TransformerShape& shape) {
  constexpr const char* where = "heddle::systems::transformer_program";
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"layers", shape.layers}, {"sequences", shape.sequences},  {"context", shape.context},
      {"width", shape.width},   {"heads", shape.heads},          {"kv_heads", shape.kv_heads},
      {"hidden", shape.hidden}, {"vocabulary", shape.vocabulary}};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    const auto& [name, size] = sizes[i];
    const std::int64_t least = i < 5 ? 1 : 0, most = i == 0 ? 1 << 16 : std::int64_t{1} << 60;
    expects(size >= least && size <= most, [&, name = name, size = size] {
      return ErrorInfo{where, text(name, " is out of range"), text(name, " = ", size),
                       text("give a size from ", least, " to ", most)};
    });
  }
  expects(shape.epsilon >= 0 && std::isfinite(shape.epsilon), [&] {
    return ErrorInfo{where, "epsilon is finite and at least 0", text("epsilon = ", shape.epsilon)};
  });
  heddle::impl::expect_enumerator(where, "TransformerShape::type", shape.type, Scalar::i8);
  const std::int64_t kv_heads = shape.kv_heads == 0 ? shape.heads : shape.kv_heads;
  expects(shape.width % shape.heads == 0 && shape.heads % kv_heads == 0, [&] {
    return ErrorInfo{where, "heads divide the width, and heads of keys and values divide the heads",
                     text("width ", shape.width, ", heads ", shape.heads, ", kv_heads ", kv_heads)};
  });
  expects(
      shape.activation == "gelu" || shape.activation == "relu" || shape.activation == "tanh", [&] {
        return ErrorInfo{where, "the activation is unknown",
                         text("activation '", shape.activation, "'"), "choose gelu, relu or tanh"};
      });
}

/// Writes the operations of transformer_program().
class TransformerWriter {
 public:
  explicit TransformerWriter(const TransformerShape& shape) : m_shape(shape) {
    check_shape(shape);
    const std::int64_t kv_heads = shape.kv_heads == 0 ? shape.heads : shape.kv_heads;
    m_out.name = "transformer";
    m_out.dimensions = {{"sequence", shape.sequences},
                        {"position", shape.context},
                        {"key", shape.context},
                        {"width", shape.width},
                        {"head", kv_heads},
                        {"head_width", shape.width / shape.heads},
                        {"hidden", shape.hidden == 0 ? 4 * shape.width : shape.hidden}};
    if (kv_heads < shape.heads) {
      m_out.dimensions.push_back({"query", shape.heads / kv_heads});
      m_heads = {"head", "query"};
    }
    if (shape.vocabulary > 0) m_out.dimensions.push_back({"word", shape.vocabulary});
  }

  TensorProgram run() {
    const bool words = m_shape.vocabulary > 0;
    given("mask", {"position", "key"}, TensorRole::input);
    std::string x = "input";
    if (words)
      x = embedding();
    else
      given(x, stream, TensorRole::input);
    for (std::int64_t layer = 0; layer < m_shape.layers; ++layer) {
      m_prefix = text("block", layer, '.');
      x = sum("middle", x, attention(norm("norm1", x)));
      x = sum("output", x, mlp(norm("norm2", x)));
    }
    m_prefix.clear();
    if (words)
      loss(norm("norm", x));
    else
      element("identity", {x}, "output", stream);
    m_out.tensors.back().role = TensorRole::output;
    return std::move(m_out);
  }

 private:
  using Names = std::vector<std::string>;
  inline static const Names stream = {"sequence", "position", "width"};
  inline static const Names rows = {"sequence", "position"};

  void given(const std::string& name, Names dims, TensorRole role) {
    m_out.tensors.push_back({m_prefix + name, std::move(dims), role, m_shape.type});
  }
  std::string parameter(const std::string& name, Names dims) {
    given(name, std::move(dims), TensorRole::parameter);
    return m_prefix + name;
  }
  std::string add(OperationKind kind, Names inputs, const std::string& name, Names dims,
                  std::string function = {}, double factor = 1) {
    given(name, std::move(dims), TensorRole::intermediate);
    m_out.operations.push_back(
        {kind, std::move(inputs), m_prefix + name, std::move(function), factor});
    return m_prefix + name;
  }
  std::string element(const char* function, Names inputs, const std::string& name, Names dims,
                      double factor = 1) {
    return add(OperationKind::elementwise, std::move(inputs), name, std::move(dims), function,
               factor);
  }
  std::string matmul(const std::string& a, const std::string& b, const std::string& name,
                     Names dims) {
    return add(OperationKind::matmul, {a, b}, name, std::move(dims));
  }
  /// Behind what is in front.
  [[nodiscard]] static Names joined(Names front, const Names& behind) {
    front.insert(front.end(), behind.begin(), behind.end());
    return front;
  }

  std::string sum(const std::string& name, const std::string& a, const std::string& b) {
    return element("add", {a, b}, name, stream);
  }
  /// x weight + bias.
  std::string linear(const std::string& name, const std::string& x, const Names& in,
                     const Names& out) {
    const std::string weight = parameter(name, joined(in, out));
    const std::string bias = parameter(name + "_bias", out);
    const std::string product = matmul(x, weight, name + "_product", joined(rows, out));
    return element("add", {product, bias}, name + "_result", joined(rows, out));
  }

  std::string norm(const std::string& name, const std::string& x) {
    const double share = 1 / static_cast<double>(m_shape.width);
    const std::string scale = parameter(name + ".scale", {"width"});
    const std::string shift = parameter(name + ".shift", {"width"});
    const std::string all = add(OperationKind::reduce, {x}, name + ".sum", rows, "sum");
    const std::string mean = element("scale", {all}, name + ".mean", rows, share);
    const std::string centred = element("subtract", {x, mean}, name + ".centred", stream);
    const std::string squares = matmul(centred, centred, name + ".squares", rows);
    const std::string variance = element("scale", {squares}, name + ".variance", rows, share);
    const std::string above =
        element("shift", {variance}, name + ".above_zero", rows, m_shape.epsilon);
    const std::string inverse = element("power", {above}, name + ".inverse", rows, -0.5);
    const std::string normal = element("multiply", {centred, inverse}, name + ".normal", stream);
    const std::string scaled = element("multiply", {normal, scale}, name + ".scaled", stream);
    return element("add", {scaled, shift}, name + ".result", stream);
  }

  std::string attention(const std::string& x) {
    const std::string at = "attention.";
    const Names of_queries = joined(m_heads, {"head_width"});
    const Names of_keys = {"head", "head_width"};
    const Names keys = {"sequence", "key", "head", "head_width"};
    const Names scores = joined(joined({"sequence"}, m_heads), {"position", "key"});
    const Names each = joined(joined({"sequence"}, m_heads), {"position"});
    const std::string q = linear(at + "q", x, {"width"}, of_queries);
    const std::string k =
        add(OperationKind::reshape, {linear(at + "k", x, {"width"}, of_keys)}, at + "keys", keys);
    const std::string v =
        add(OperationKind::reshape, {linear(at + "v", x, {"width"}, of_keys)}, at + "values", keys);
    const double root = std::sqrt(static_cast<double>(m_shape.width / m_shape.heads));
    const std::string products = matmul(q, k, at + "products", scores);
    const std::string scaled = element("scale", {products}, at + "scaled", scores, 1 / root);
    const std::string seen = element("add", {scaled, m_mask}, at + "seen", scores);
    const Exponentials e = exponentials(at, seen, scores, each);
    const std::string odds = element("divide", {e.powers, e.total}, at + "odds", scores);
    const std::string attended = matmul(odds, v, at + "attended", joined(rows, of_queries));
    return linear(at + "project", attended, of_queries, {"width"});
  }

  /// exp(x - max x), and its sum over the last dimension.
  struct Exponentials {
    std::string below, powers, total;
  };
  Exponentials exponentials(const std::string& at, const std::string& x, const Names& all,
                            const Names& each) {
    const std::string most = add(OperationKind::reduce, {x}, at + "most", each, "max");
    const std::string fixed = element("stop_gradient", {most}, at + "fixed", each);
    const std::string below = element("subtract", {x, fixed}, at + "below", all);
    const std::string powers = element("exp", {below}, at + "powers", all);
    return {below, powers, add(OperationKind::reduce, {powers}, at + "total", each, "sum")};
  }

  std::string mlp(const std::string& x) {
    const Names inside = joined(rows, {"hidden"});
    const std::string z = linear("mlp.expand", x, {"width"}, {"hidden"});
    const std::string a = m_shape.activation == "gelu"
                              ? gelu(z, inside)
                              : element(m_shape.activation.c_str(), {z}, "mlp.activated", inside);
    return linear("mlp.contract", a, {"hidden"}, {"width"});
  }

  /// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3).
  std::string gelu(const std::string& x, const Names& dims) {
    const double slope = std::sqrt(2 / std::acos(-1.0));
    const std::string square = element("multiply", {x, x}, "mlp.square", dims);
    const std::string cubic = element("scale", {square}, "mlp.cubic", dims, 0.044715);
    const std::string factor = element("shift", {cubic}, "mlp.factor", dims, 1);
    const std::string bent = element("multiply", {x, factor}, "mlp.bent", dims);
    const std::string u = element("scale", {bent}, "mlp.argument", dims, slope);
    const std::string gate = element("tanh", {u}, "mlp.tanh", dims);
    const std::string open = element("shift", {gate}, "mlp.gate", dims, 1);
    const std::string twice = element("multiply", {x, open}, "mlp.twice", dims);
    return element("scale", {twice}, "mlp.activated", dims, 0.5);
  }

  std::string embedding() {
    given("tokens", rows, TensorRole::input);
    given("targets", joined(rows, {"word"}), TensorRole::input);
    const std::string table = parameter("embedding.token", {"word", "width"});
    const std::string positions = parameter("embedding.position", {"position", "width"});
    const std::string found =
        add(OperationKind::gather, {table, "tokens"}, "embedding.rows", stream);
    return sum("embedding.result", found, positions);
  }

  /// log(sum exp(logits)) - logits of the target, on average.
  void loss(const std::string& x) {
    const std::string logits = linear("vocabulary", x, {"width"}, {"word"});
    const Names all = joined(rows, {"word"});
    const Exponentials e = exponentials("loss.", logits, all, rows);
    const std::string log = element("log", {e.total}, "loss.log", rows);
    const std::string wanted = matmul(e.below, "targets", "loss.wanted", rows);
    const std::string each = element("subtract", {log, wanted}, "loss.each", rows);
    const std::string whole = add(OperationKind::reduce, {each}, "loss.sum", {}, "sum");
    element("scale", {whole}, "loss", {},
            1 / (static_cast<double>(m_shape.sequences) * static_cast<double>(m_shape.context)));
  }

  TransformerShape m_shape;
  TensorProgram m_out = {};
  std::string m_prefix = {};  ///< of the names of a block
  std::string m_mask = "mask";
  Names m_heads = {"head"};  ///< the dimensions of heads of queries
};

}  // namespace impl

HEDDLE_INLINE TensorProgram transformer_program(const TransformerShape& shape) {
  return impl::TransformerWriter(shape).run();
}

}  // namespace heddle::inline v0::systems
