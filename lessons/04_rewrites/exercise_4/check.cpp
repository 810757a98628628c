#include "lessons/tools/check.h"
#include "exercise.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/runtime/build.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::quantise_matmuls;

namespace {

std::string type(const Sizes& shape) { return "f32[" + join(shape, ",") + "]"; }

Graph matmul_graph(const Tensor& a, const Tensor& b) {
  Sizes shape = a.shape();
  shape.back() = b.shape().back();
  return graph_of("%0 a: " + type(a.shape()) + ", %1 b: " + type(b.shape()),
                  "%2: " + type(shape) + " = matmul %0, %1; return %2");
}

std::string unsound(const Graph& graph) {
  const std::optional<Problem> problem = find_problem(graph);
  return problem ? "your result is no sound graph: " + problem->message + "\n" + print(graph)
                 : "";
}

// Whether each matmul left multiplies i32 that were i8.
std::string is_not_quantised(const Graph& graph) {
  if (const std::string trouble = unsound(graph); !trouble.empty()) return trouble;
  for (int id = 0; id < graph.size(); id++) {
    if (graph[id].op != Op::matmul) continue;
    for (int input : graph[id].inputs) {
      const Node& operand = graph[input];
      if (operand.op != Op::cast || operand.type.dtype != DType::i32 ||
          graph[operand.inputs[0]].type.dtype != DType::i8)
        return str("%", input, " is no i8 cast to i32\n", print(graph));
    }
  }
  return "";
}

struct Errors {
  double worst = 0;  // as a part of the bound
  std::string trouble;
};

// The errors of one matrix product, for the row-major matrices a, b and got.
void measure(const double* a, const double* b, const float* got, int64_t rows, int64_t depth,
             int64_t columns, Errors& errors) {
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t n = 0; n < columns; n++) {
      double want = 0, s = 0, t = 0;
      for (int64_t k = 0; k < depth; k++) {
        const double x = a[m * depth + k], y = b[k * columns + n];
        want += x * y;
        s = std::max(s, std::abs(x) / 127);
        t = std::max(t, std::abs(y) / 127);
      }
      const double error = std::abs(double{got[m * columns + n]} - want);
      const double bound = 127.5 * double(depth) * s * t;
      if (error <= bound) {
        errors.worst = std::max(errors.worst, bound > 0 ? error / bound : 0);
      } else if (errors.trouble.empty()) {
        errors.trouble =
            str("[", m, ",", n, "] should be ", want, " and is ", got[m * columns + n],
                ": the error is ", error, ", the bound ", bound);
      }
    }
  }
}

Errors errors_of(const Tensor& a, const Tensor& b) {
  Errors errors;
  const Graph graph = quantise_matmuls(matmul_graph(a, b));
  errors.trouble = is_not_quantised(graph);
  if (!errors.trouble.empty()) return errors;
  const std::vector<float> got =
      interpret(graph, std::vector<Tensor>{a, b})[0].to_vector<float>();
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  const int64_t rows = a.size(-2), depth = a.size(-1), columns = b.size(-1);
  const int64_t batch = a.numel() / (rows * depth);
  for (int64_t k = 0; k < batch; k++)
    measure(x.data() + k * rows * depth, y.data() + k * depth * columns,
            got.data() + k * rows * columns, rows, depth, columns, errors);
  return errors;
}

std::string leaves_the_bound(const Tensor& a, const Tensor& b) {
  return errors_of(a, b).trouble;
}

std::string stays(const std::string& inputs, const std::string& body) {
  const Graph graph = graph_of(inputs, body);
  return other_graph(quantise_matmuls(graph), graph);
}

}  // namespace

TEST_CASE("errors are within the bound") {
  manual_seed(1);
  const Errors errors = errors_of(randn({33, 257}), randn({257, 17}));
  EXPECT(errors.trouble);
  score("worst error, in thousandths of the bound", std::llround(errors.worst * 1000), 25);
}

TEST_CASE("a row of small numbers keeps its digits") {
  manual_seed(2);
  const Tensor sizes = from_vector(std::vector<float>{1e-6f, 1, 3e4f, 1e-3f, 7}, Sizes{5, 1});
  EXPECT(leaves_the_bound(randn({5, 41}) * sizes, randn({41, 3})));
  EXPECT(leaves_the_bound(randn({3, 41}), (randn({5, 41}) * sizes).t().contiguous()));
}

TEST_CASE("what is rounded is rounded to the nearest") {
  Tensor a = full({1, 100}, 126.99), b = full({100, 1}, -126.99);
  a = where(arange(100) == 0, 127.0, a);
  b = where(unsqueeze(arange(100), 1) == 0, 127.0, b);
  EXPECT(leaves_the_bound(a, b));
}

TEST_CASE("the largest numbers do not saturate") {
  EXPECT(leaves_the_bound(full({2, 257}, 3), full({257, 2}, 0.7)));
}

TEST_CASE("a row of zeros gives zeros") {
  manual_seed(3);
  const Tensor a = where(unsqueeze(arange(4), 1) == 2, 0.0, randn({4, 9}));
  const Tensor b = where(arange(3) == 1, 0.0, randn({9, 3}));
  EXPECT(leaves_the_bound(a, b));
  EXPECT(leaves_the_bound(a, zeros({9, 3})));
}

TEST_CASE("sums do not wrap") {
  EXPECT(leaves_the_bound(full({1, 131072}, 5), full({131072, 1}, 5)));
}

TEST_CASE("batches have scales of their own") {
  manual_seed(4);
  const Tensor sizes = from_vector(std::vector<float>{1e-5f, 1, 100}, Sizes{3, 1, 1});
  EXPECT(leaves_the_bound(randn({3, 4, 21}) * sizes, randn({3, 21, 5})));
}

TEST_CASE("what an i32 cannot hold stays") {
  EXPECT(stays("%0 a: f32[2,131073], %1 b: f32[131073,3]",
               "%2: f32[2,3] = matmul %0, %1; return %2"));
}

TEST_CASE("a matmul over nothing stays") {
  EXPECT(stays("%0 a: f32[2,0], %1 b: f32[0,3]", "%2: f32[2,3] = matmul %0, %1; return %2"));
}

TEST_CASE("a matmul without rows is sound") {
  const Graph graph = quantise_matmuls(matmul_graph(zeros({0, 5}), zeros({5, 3})));
  EXPECT(unsound(graph));
}

TEST_CASE("other dtypes and other ops stay") {
  for (const std::string dtype : {"f64", "f16", "i32", "i8"})
    EXPECT(stays("%0 a: " + dtype + "[2,5], %1 b: " + dtype + "[5,3]",
                 "%2: " + dtype + "[2,3] = matmul %0, %1; return %2"));
  EXPECT(stays("%0 a: f32[2,5], %1 b: f32[2,5]",
               "%2: f32[2,5] = mul %0, %1; %3: f32[2] = sum %2 {axes=[1]}; return %3"));
}

TEST_CASE("two layers, both of integers") {
  const Graph graph = graph_of(
      "%0 x: f32[9,33], %1 v: f32[33,65], %2 w: f32[65,4]",
      "%3: f32[9,65] = matmul %0, %1; %4: f32[9,65] = tanh %3; %5: f32[9,4] = matmul %4, %2;"
      "return %5, %3");
  const Graph got = quantise_matmuls(graph);
  EXPECT(is_not_quantised(got));
  CHECK(got.outputs.size() == 2);
  CHECK(got.inputs().size() == 3);
}

TEST_CASE("compiled it gives the bits of the interpreter") {
  manual_seed(5);
  const std::vector<Tensor> inputs = {randn({5, 37}), randn({37, 11})};
  const Graph graph = matmul_graph(inputs[0], inputs[1]);
  const Staged staged = run_pipeline(exercise::with_mine(), graph, true);
  const Tensor got = build(staged.program, staged.source).run(inputs)[0];
  CHECK(same_bits(got, interpret(quantise_matmuls(graph), inputs)[0]));
}
