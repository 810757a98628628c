// What does a good library give without a compiler? Each function is the formula as one Eigen
// expression; OpenMP splits elements or rows into one piece a thread.
#include "tests/bench/eigen_peers.h"

#if defined(__GNUC__) && !defined(__clang__)  // g++ 12 says it of its own intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if __has_include(<eigen3/unsupported/Eigen/SpecialFunctions>)
#include <cmath>
#include <eigen3/Eigen/Core>
#include <eigen3/unsupported/Eigen/SpecialFunctions>
#define HAVE_EIGEN 1
#elif __has_include(<unsupported/Eigen/SpecialFunctions>)
#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>
#define HAVE_EIGEN 1
#endif

namespace eigen_peers {

#ifdef HAVE_EIGEN
namespace {

using Array = Eigen::ArrayXf;
using In = Eigen::Map<const Array>;
using Out = Eigen::Map<Array>;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixIn = Eigen::Map<const Matrix>;
using MatrixOut = Eigen::Map<Matrix>;

constexpr float kRootHalf = 0.70710678f;

template <class Body>
void in_pieces(long n, int threads, Body body) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) {
    const long begin = n * t / threads / 16 * 16;
    const long end = t + 1 == threads ? n : n * (t + 1) / threads / 16 * 16;
    body(begin, end - begin);
  }
}

template <class Body>
void in_rows(long rows, int threads, Body body) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (long r = 0; r < rows; ++r) body(r);
}

}  // namespace

bool available() { return true; }

void pointwise(const float* x, const float* w, const float* b, float* out, long n,
               int threads) {
  in_pieces(n, threads, [=](long at, long count) {
    const In v(x + at, count), scale(w + at, count), shift(b + at, count);
    Out(out + at, count) = (v * scale + shift).tanh() * v.logistic() + 0.5f * v;
  });
}

void bias_gelu(const float* x, const float* bias, float* out, long rows, long columns,
               int threads) {
  in_rows(rows, threads, [=](long r) {
    const auto v = In(x + r * columns, columns) + In(bias, columns);
    Out(out + r * columns, columns) = 0.5f * v * (1.0f + (v * kRootHalf).erf());
  });
}

void softmax(const float* x, float* out, long rows, long columns, int threads) {
  in_rows(rows, threads, [=](long r) {
    const In v(x + r * columns, columns);
    Out result(out + r * columns, columns);
    result = (v - v.maxCoeff()).exp();
    result *= 1.0f / result.sum();
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float* out, long rows,
                long columns, float epsilon, int threads) {
  in_rows(rows, threads, [=](long r) {
    const In v(x + r * columns, columns);
    const float mean = v.mean();
    const float scale = 1.0f / std::sqrt((v - mean).square().mean() + epsilon);
    Out(out + r * columns, columns) =
        (v - mean) * scale * In(weight, columns) + In(bias, columns);
  });
}

float mse(const float* a, const float* b, long n, int threads) {
  double total = 0;
  in_pieces(n, threads, [&](long at, long count) {
    const double part = double((In(a + at, count) - In(b + at, count)).square().sum());
#pragma omp atomic
    total += part;
  });
  return float(total / double(n));
}

void adamw(const hand::AdamW& s, const float* p, const float* m, const float* v, const float* g,
           float* new_p, float* new_m, float* new_v, long n, int threads) {
  const float rate = float(s.learning_rate / (1.0 - std::pow(double(s.beta1), s.step)));
  const float root = float(1.0 / std::sqrt(1.0 - std::pow(double(s.beta2), s.step)));
  in_pieces(n, threads, [=](long at, long count) {
    const In gradient(g + at, count);
    Out first(new_m + at, count), second(new_v + at, count);
    first = In(m + at, count) * s.beta1 + gradient * (1.0f - s.beta1);
    second = In(v + at, count) * s.beta2 + gradient.square() * (1.0f - s.beta2);
    Out(new_p + at, count) = In(p + at, count) * (1.0f - s.learning_rate * s.weight_decay) -
                             rate * first / (second.sqrt() * root + s.epsilon);
  });
}

void mlp(const hand::Mlp& model, float* workspace, float* out, int threads) {
  Eigen::setNbThreads(threads);
  const long batch = model.batch, hidden = model.hidden;
  MatrixOut first(workspace, batch, hidden), second(workspace + batch * hidden, batch, hidden);
  MatrixOut logits(out, batch, model.classes);
  const auto row = [](const float* bias, long n) {
    return Eigen::Map<const Eigen::RowVectorXf>(bias, n);
  };
  first.noalias() =
      MatrixIn(model.x, batch, model.inputs) * MatrixIn(model.w1, model.inputs, hidden);
  first = (first.rowwise() + row(model.b1, hidden)).cwiseMax(0.0f);
  second.noalias() = first * MatrixIn(model.w2, hidden, hidden);
  second = (second.rowwise() + row(model.b2, hidden)).cwiseMax(0.0f);
  logits.noalias() = second * MatrixIn(model.w3, hidden, model.classes);
  logits.rowwise() += row(model.b3, model.classes);
  logits.colwise() -= Eigen::VectorXf(logits.rowwise().maxCoeff());
  logits.colwise() -= Eigen::VectorXf(logits.array().exp().rowwise().sum().log());
}

#else

bool available() { return false; }
void pointwise(const float*, const float*, const float*, float*, long, int) {}
void bias_gelu(const float*, const float*, float*, long, long, int) {}
void softmax(const float*, float*, long, long, int) {}
void layer_norm(const float*, const float*, const float*, float*, long, long, float, int) {}
float mse(const float*, const float*, long, int) { return 0; }
void adamw(const hand::AdamW&, const float*, const float*, const float*, const float*, float*,
           float*, float*, long, int) {}
void mlp(const hand::Mlp&, float*, float*, int) {}

#endif

}  // namespace eigen_peers
