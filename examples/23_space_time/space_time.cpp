// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Attention over time, then over space, of a tensor (batch, time, space, channels) that is divided
// over the ranks. Each stage mixes one dimension, so it needs no communication while the other
// dimension is sharded. plan_switches() decides where the sharded dimension changes (DSP). Ulysses
// always keeps space sharded, and redistributes queries, keys, values and output before and after
// an attention over space. All methods compute the same result, forward and backward, but send
// different numbers of bytes.
//
//   mpiexec -n 4 example_23_space_time     (or 2 or 3 ranks, or 1)

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/heddle.hpp>
#include <heddle/kernel/attention.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/systems/dsp/switches.hpp>

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Tensor = hd::Sharded<double****, Exec>;
using View = Tensor::View;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec::memory_space>;

constexpr int batch = 1, time_steps = 12, points = 24, heads = 12, head_width = 2;
constexpr int channels = heads * head_width;
constexpr std::size_t time_dim = 1, space_dim = 2, channel_dim = 3;
/// The dimension that each stage mixes.
const std::vector<std::size_t> mixed{time_dim, space_dim};

enum class Method { dsp, ulysses_space, ulysses_both };

/// Returns the channels of all positions of a rank, as the rows of a matrix.
Matrix rows(const View& view) {
  return Matrix(view.data(), view.extent(0) * view.extent(1) * view.extent(2), view.extent(3));
}

/// Attention along one dimension of the positions of a rank, with the data for backward.
class LocalAttention {
 public:
  /// Computes `output`. In each head of the rank's channels, a position attends to itself and to
  /// the earlier positions along `dim`.
  void forward(std::size_t dim, const std::array<View, 3>& qkv, const View& output) {
    m_dim = dim;
    const std::size_t context = output.extent(dim);
    const std::size_t width = output.extent(3);
    const std::size_t positions = output.extent(0) * output.extent(1) * output.extent(2);
    // The kernel needs at least one head, also on a rank that has none.
    m_shape = {context == 0 ? 0 : positions / context, context,
               std::max<std::size_t>(width / head_width, 1), width};
    m_qkv = Matrix("example::qkv", m_shape.rows(), 3 * width);
    m_probabilities = Matrix("example::probabilities", m_shape.probability_rows(), context);
    const Matrix rows_of_output("example::output", m_shape.rows(), width);
    for (std::size_t part = 0; part < 3; ++part)
      for_each_element(qkv[part], [&](double& here, std::size_t row, std::size_t column) {
        m_qkv(row, part * width + column) = here;
      });
    hd::kernel::attention_forward(Exec{}, m_shape, m_qkv, m_probabilities, rows_of_output);
    Exec{}.fence();
    for_each_element(output, [&](double& here, std::size_t row, std::size_t column) {
      here = rows_of_output(row, column);
    });
  }

  /// Computes the gradients of queries, keys and values.
  void backward(const View& output_grad, const std::array<View, 3>& qkv_grad) const {
    const std::size_t width = m_shape.width;
    const Matrix of_output("example::output_grad", m_shape.rows(), width);
    const Matrix of_qkv("example::qkv_grad", m_shape.rows(), 3 * width);
    const Matrix scratch("example::scratch", m_shape.probability_rows(), m_shape.context);
    for_each_element(output_grad, [&](double& here, std::size_t row, std::size_t column) {
      of_output(row, column) = here;
    });
    hd::kernel::attention_backward_input(Exec{}, m_shape, m_qkv, m_probabilities, of_output,
                                         scratch, of_qkv);
    Exec{}.fence();
    for (std::size_t part = 0; part < 3; ++part)
      for_each_element(qkv_grad[part], [&](double& here, std::size_t row, std::size_t column) {
        here = of_qkv(row, part * width + column);
      });
  }

 private:
  /// Calls visit(element, row, column) with the rows of the kernel. The positions of one line are
  /// consecutive rows.
  template <class Visit>
  void for_each_element(const View& view, Visit&& visit) const {
    const std::size_t lines = view.extent(m_dim == time_dim ? space_dim : time_dim);
    for (std::size_t b = 0; b < view.extent(0); ++b)
      for (std::size_t t = 0; t < view.extent(1); ++t)
        for (std::size_t s = 0; s < view.extent(2); ++s)
          for (std::size_t c = 0; c < view.extent(3); ++c) {
            const std::size_t line = b * lines + (m_dim == time_dim ? s : t);
            visit(view(b, t, s, c), line * m_shape.context + (m_dim == time_dim ? t : s), c);
          }
  }

  std::size_t m_dim = 0;
  hd::kernel::AttentionShape m_shape{};
  Matrix m_qkv, m_probabilities;
};

/// Two stages x + attention(x Wq, x Wk, x Wv), over time and over space. Space is sharded before
/// and after them.
class Model {
 public:
  explicit Model(Method method) : m_method(method) {
    const hd::Random random(7, "weights");
    std::uint64_t drawn = 0;
    for (auto& stage : m_weights)
      for (Matrix& weights : stage) {
        weights = Matrix("example::weights", channels, channels);
        for (std::size_t i = 0; i < channels; ++i)
          for (std::size_t j = 0; j < channels; ++j)
            weights(i, j) = random.normal(drawn++) / std::sqrt(double{channels});
      }
  }

  /// Returns the bytes that all ranks together have sent to others.
  [[nodiscard]] hd::Bytes sent() const { return m_sent; }

  [[nodiscard]] Tensor forward(Tensor x) {
    m_sent = 0;
    for (std::size_t stage = 0; stage < mixed.size(); ++stage) {
      x = moved(x, layout_in(stage));
      const Tensor output = like(x);
      std::array<Tensor, 3> qkv{like(x), like(x), like(x)};
      for (std::size_t part = 0; part < 3; ++part) {
        hd::kernel::gemm(Exec{}, hd::kernel::Transpose::no, hd::kernel::Transpose::no, 1.0,
                         rows(x.view()), m_weights[stage][part], 0.0, rows(qkv[part].view()));
        qkv[part] = moved(qkv[part], attention_in(stage));
      }
      const Tensor attended = like(qkv[0]);
      m_attention[stage].forward(mixed[stage], {qkv[0].view(), qkv[1].view(), qkv[2].view()},
                                 attended.view());
      const Tensor back = moved(attended, layout_in(stage));
      for (std::size_t i = 0; i < output.view().size(); ++i)
        output.view().data()[i] = x.view().data()[i] + back.view().data()[i];
      x = output;
    }
    return moved(x, hd::Shard{space_dim});
  }

  [[nodiscard]] Tensor backward(Tensor grad) {
    m_sent = 0;
    for (std::size_t stage = mixed.size(); stage-- > 0;) {
      grad = moved(grad, layout_in(stage));
      const Tensor attended_grad = moved(grad, attention_in(stage));
      std::array<Tensor, 3> of_qkv{like(attended_grad), like(attended_grad), like(attended_grad)};
      m_attention[stage].backward(attended_grad.view(),
                                  {of_qkv[0].view(), of_qkv[1].view(), of_qkv[2].view()});
      const Tensor sum = like(grad);
      Kokkos::deep_copy(sum.view(), grad.view());
      for (std::size_t part = 0; part < 3; ++part) {
        of_qkv[part] = moved(of_qkv[part], layout_in(stage));
        hd::kernel::gemm(Exec{}, hd::kernel::Transpose::no, hd::kernel::Transpose::yes, 1.0,
                         rows(of_qkv[part].view()), m_weights[stage][part], 1.0, rows(sum.view()));
      }
      grad = sum;
    }
    return moved(grad, hd::Shard{space_dim});
  }

 private:
  /// Returns the dimension of x that is sharded in a stage.
  [[nodiscard]] hd::Shard layout_in(std::size_t stage) const {
    if (m_method != Method::dsp) return {space_dim};
    static const auto plan = hd::systems::plan_switches({time_dim, space_dim}, mixed,
                                                        {.first = space_dim, .last = space_dim});
    return {static_cast<int>(plan.sharded[stage])};
  }
  /// Returns the layout of queries, keys and values: like x, or divided by whole heads.
  [[nodiscard]] hd::Shard attention_in(std::size_t stage) const {
    const bool by_heads = m_method == Method::ulysses_both ||
                          (m_method == Method::ulysses_space && mixed[stage] == space_dim);
    return by_heads ? hd::Shard{channel_dim, hd::ShardOrder::cyclic(head_width)} : layout_in(stage);
  }

  static Tensor like(const Tensor& x) { return {x.comm(), x.layout()}; }

  /// Returns `x` in another layout, and counts the bytes that are sent.
  Tensor moved(const Tensor& x, const hd::Shard& shard) {
    const hd::Layout target = x.layout().with({shard});
    if (target == x.layout()) return x;
    m_sent +=
        hd::schedule::redistribution(x.layout(), target, x.comm().size(), sizeof(double)).bytes();
    return hd::redistribute(x, target);
  }

  Method m_method;
  std::array<std::array<Matrix, 3>, 2> m_weights;
  std::array<LocalAttention, 2> m_attention;
  hd::Bytes m_sent = 0;
};

/// Returns a tensor of random numbers with space sharded. The numbers do not depend on the number
/// of ranks.
Tensor random_tensor(const hd::Communicator& comm, const char* name) {
  Tensor x(comm, hd::Layout({{"all", comm.size()}}, {batch, time_steps, points, channels},
                            {hd::Shard{space_dim}}));
  const hd::Random random(3, name);
  const View mine = x.view();
  for (std::size_t b = 0; b < mine.extent(0); ++b)
    for (std::size_t t = 0; t < mine.extent(1); ++t)
      for (std::size_t s = 0; s < mine.extent(2); ++s)
        for (std::size_t c = 0; c < mine.extent(3); ++c) {
          const auto point = x.indices(space_dim)[static_cast<std::int64_t>(s)];
          mine(b, t, s, c) = random.normal(
              ((b * time_steps + t) * points + static_cast<std::size_t>(point)) * channels + c);
        }
  return x;
}

/// Returns the largest difference between `x` and `whole`, which one rank has, divided by the
/// largest number in `whole`.
double difference(const Tensor& x, const Tensor& whole) {
  double most = 0, size = 0;
  const View mine = x.view(), all = whole.view();
  for (std::size_t i = 0; i < all.size(); ++i) size = std::max(size, std::abs(all.data()[i]));
  for (std::size_t b = 0; b < mine.extent(0); ++b)
    for (std::size_t t = 0; t < mine.extent(1); ++t)
      for (std::size_t s = 0; s < mine.extent(2); ++s)
        for (std::size_t c = 0; c < mine.extent(3); ++c) {
          const auto point =
              static_cast<std::size_t>(x.indices(space_dim)[static_cast<std::int64_t>(s)]);
          most = std::max(most, std::abs(mine(b, t, s, c) - all(b, t, point, c)));
        }
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, x.comm().get());
  return most / size;
}

/// Returns the sum of the products of the elements of two tensors on one rank.
double product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.view().size(); ++i) sum += a.view().data()[i] * b.view().data()[i];
  return sum;
}

/// Returns true if the gradient on one rank equals the slope of its output, by central differences.
bool gradient_is_slope(const hd::Communicator& alone) {
  Model model(Method::dsp);
  const Tensor x = random_tensor(alone, "x"), weight = random_tensor(alone, "gradient");
  const Tensor direction = random_tensor(alone, "direction");
  (void)model.forward(x);
  const double slope = product(model.backward(weight), direction);
  std::array<double, 2> values{};
  constexpr double step = 1e-5;
  for (const int side : {0, 1}) {
    const Tensor moved(x.comm(), x.layout());
    for (std::size_t i = 0; i < moved.view().size(); ++i)
      moved.view().data()[i] =
          x.view().data()[i] + (side == 0 ? -step : step) * direction.view().data()[i];
    values[static_cast<std::size_t>(side)] = product(model.forward(moved), weight);
  }
  return std::abs((values[1] - values[0]) / (2 * step) / slope - 1) < 1e-6;
}

void run() {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::Communicator alone = world.split(static_cast<int>(+world.rank()), 0);
  const bool prints = world.rank() == 0;
  const auto ranks = static_cast<hd::Bytes>(world.size());
  const hd::Bytes bytes = sizeof(double) * batch * time_steps * points * channels;
  if (prints)
    std::cout << hd::systems::plan_switches({time_dim, space_dim}, mixed,
                                            {.first = space_dim, .last = space_dim})
              << "\n\n"
              << std::left << std::setw(26) << "method" << std::right << std::setw(16)
              << "forward bytes" << std::setw(16) << "backward bytes" << std::setw(16)
              << "DSP over this" << '\n';

  Model serial(Method::dsp);
  const Tensor whole_output = serial.forward(random_tensor(alone, "x"));
  const Tensor whole_grad = serial.backward(random_tensor(alone, "gradient"));

  hd::Bytes dsp = 0;
  const auto ratio = [](hd::Bytes a, hd::Bytes b) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(3) << static_cast<double>(a) / static_cast<double>(b)
        << 'x';
    return std::move(out).str();
  };
  const auto line = [&](const char* name, hd::Bytes forward, hd::Bytes backward) {
    if (!prints) return;
    std::cout << std::left << std::setw(26) << name << std::right << std::setw(16) << forward
              << std::setw(16) << backward << std::setw(16);
    if (forward > 0)
      std::cout << ratio(dsp, forward);
    else
      std::cout << "nothing";
    std::cout << '\n';
  };
  double worst = 0;
  for (const auto& [method, name] :
       {std::pair(Method::dsp, "DSP"), std::pair(Method::ulysses_space, "Ulysses, over space"),
        std::pair(Method::ulysses_both, "Ulysses, over both")}) {
    Model model(method);
    const Tensor output = model.forward(random_tensor(world, "x"));
    const hd::Bytes forward = model.sent();
    if (method == Method::dsp) dsp = forward;
    const Tensor grad = model.backward(random_tensor(world, "gradient"));
    worst = std::max({worst, difference(output, whole_output), difference(grad, whole_grad)});
    line(name, forward, model.sent());
  }
  // The ring is not executed here, only counted: each rank's keys and values travel to the P - 1
  // other ranks in forward, and once more in backward, followed by their gradients.
  line("ring over space (formula)", 2 * (ranks - 1) * bytes, 4 * (ranks - 1) * bytes);
  const bool slope = gradient_is_slope(alone);
  if (!prints) return;
  std::cout << "\nforward and backward equal one rank within 1e-12: "
            << (worst < 1e-12 ? "yes" : "no")
            << "\none rank's gradient is the slope of its output: " << (slope ? "yes" : "no")
            << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const hd::Environment env(argc, argv);
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "space_time: " << error.what() << '\n';
    return 1;
  }
}
