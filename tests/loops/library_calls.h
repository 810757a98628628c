// A matrix library of a few lines, in double precision, so that what library_matmul matches can
// be checked without a GPU.
#pragma once

#include <cmath>

#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/library_sums.h"
#include "tiny_compile/loops/use_library.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile::tests {

using In = std::span<const Tensor>;
using Out = std::vector<Tensor>;

inline std::vector<double> doubles(const Tensor& tensor) { return tensor.to_vector<double>(); }

// |got - want| / |want|, over all elements; `least` is the least norm an element counts with.
inline double distance(const std::vector<double>& got, const std::vector<double>& want,
                       double least = 0) {
  double error = 0, norm = 0, count = static_cast<double>(want.size());
  for (size_t i = 0; i < want.size(); i++) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  norm = std::max(norm, count * least * least);
  return std::sqrt(error / (norm > 0 ? norm : 1));
}

inline double tolerance(DType dtype) {  // a few roundings
  return dtype == DType::f64   ? 1e-13
         : dtype == DType::f32 ? 2e-6
         : dtype == DType::f16 ? 2e-3
                               : 2e-2;
}

inline double element(const std::vector<double>& buffer, const LibraryMatrix& matrix,
                      int64_t row, int64_t column, int64_t base) {
  if (matrix.transposed) std::swap(row, column);
  return buffer[static_cast<size_t>(matrix.offset + base + row + column * matrix.ld)];
}

// d/dz of z/2 * (1 + tanh(u)).
inline double gelu_slope(double z) {
  const double c = 0.7978845608028654, t = std::tanh(c * (z + 0.044715 * z * z * z));
  return (1 + t) / 2 + z / 2 * (1 - t * t) * c * (1 + 3 * 0.044715 * z * z);
}

inline void multiply(const LibraryMatmul& x, std::vector<std::vector<double>>& buffers,
                     int64_t a, int64_t b, int64_t d) {
  for (int64_t m = 0; m < x.m; m++) {
    for (int64_t n = 0; n < x.n; n++) {
      double sum = 0;
      for (int64_t k = 0; k < x.k; k++)
        sum += element(buffers[x.a.buffer], x.a, m, k, a) *
               element(buffers[x.b.buffer], x.b, k, n, b);
      sum *= x.alpha;
      if (x.vector == LibraryVector::Bias)
        sum += element(buffers[x.bias.buffer], x.bias, m, 0, 0);
      if (x.activation == Activation::GeluGradient)
        sum *= gelu_slope(element(buffers[x.saved.buffer], x.saved, m, n, d));
      else if (x.saved.buffer >= 0)
        buffers[x.saved.buffer][x.saved.offset + d + m + n * x.saved.ld] = sum;
      if (x.activation == Activation::Relu) sum = std::max(sum, 0.0);
      if (x.activation == Activation::Gelu)
        sum *= 0.5 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
      buffers[x.d.buffer][x.d.offset + d + m + n * x.d.ld] = sum;
    }
  }
}

// The vector that is a result: sums over the columns of D, or over k.
inline void add_up(const LibraryMatmul& x, std::vector<std::vector<double>>& buffers) {
  const bool of_d = x.vector == LibraryVector::GradientOfD,
             of_a = x.vector == LibraryVector::GradientOfA;
  if (!of_d && !of_a && x.vector != LibraryVector::GradientOfB) return;
  for (int64_t place = 0; place < (of_d || of_a ? x.m : x.n); place++) {
    double sum = 0;
    for (int64_t at = 0; at < (of_d ? x.n : x.k); at++)
      sum += of_d   ? element(buffers[x.d.buffer], x.d, place, at, 0)
             : of_a ? element(buffers[x.a.buffer], x.a, place, at, 0)
                    : element(buffers[x.b.buffer], x.b, at, place, 0);
    buffers[x.bias.buffer][x.bias.offset + place] = sum;
  }
}

// Every place of the batches, the first fastest.
inline void call_library(const LibraryMatmul& x, std::vector<std::vector<double>>& buffers) {
  int64_t count = 1;
  for (const LibraryBatch& batch : x.batches) count *= batch.count;
  for (int64_t place = 0; place < count; place++) {
    int64_t rest = place, a = 0, b = 0, d = 0;
    for (const LibraryBatch& batch : x.batches) {
      a += rest % batch.count * batch.a, b += rest % batch.count * batch.b;
      d += rest % batch.count * batch.d;
      rest /= batch.count;
    }
    multiply(x, buffers, a, b, d);
  }
  add_up(x, buffers);
}

// One launch as a program of its own: what it reads is input, what it writes output, all flat.
inline Program alone(const Program& program, const std::vector<Kernel>& kernels) {
  Program result = program;
  result.kernels = kernels;
  result.launches = {{}};
  result.outputs.clear();
  result.arena_bytes = 0;
  std::vector<bool> written(program.buffers.size());
  for (const Kernel& kernel : kernels) {
    result.launches[0].push_back(static_cast<int>(result.launches[0].size()));
    const std::vector<bool> now = buffers_written(program, kernel);
    for (size_t b = 0; b < now.size(); b++) written[b] = written[b] || now[b];
  }
  for (size_t b = 0; b < result.buffers.size(); b++) {
    Buffer flat;
    flat.name = program.buffers[b].name;
    flat.role = written[b] ? Role::Output : Role::Input;
    flat.size = program.buffers[b].size;
    flat.type = {program.buffers[b].type.dtype, {flat.size}};
    result.buffers[b] = flat;
    if (written[b]) result.outputs.push_back(static_cast<int>(b));
  }
  return result;
}

// The call does to random buffers what the kernels do.
inline void check_call(const Program& program, const std::vector<Kernel>& kernels,
                       const LibraryMatmul& call) {
  const Program one = alone(program, kernels);
  std::vector<Tensor> inputs;
  std::vector<std::vector<double>> buffers;
  for (const Buffer& buffer : one.buffers) {
    Sizes shape;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    const Tensor filled = randn(shape).to(buffer.type.dtype);
    if (buffer.role == Role::Input) inputs.push_back(filled);
    buffers.push_back(doubles(filled));
  }
  for (const LibraryMatmul& part : library_calls(call)) call_library(part, buffers);
  const std::vector<Tensor> want = interpret(one, inputs);
  for (size_t k = 0; k < want.size(); k++) {
    INFO(print(program, kernels[0]) << str(call) << ", result " << k);
    CHECK(distance(buffers[one.outputs[k]], doubles(want[k]), 1) < tolerance(call.a.dtype));
  }
}

inline std::string name_of(LibraryVector vector) {
  static constexpr const char* kNames[] = {"nothing", "a bias", "D", "A", "B"};
  return kNames[static_cast<int>(vector)];
}

// The default, with all that the library can do, and the least it is given.
inline Pipeline library_pipeline(Matmul matmul) {
  Pipeline pipeline = with_library(insert_after(default_pipeline(), "fold_columns",
                                                {"library_sums", ProgramPass(library_sums)}),
                                   matmul);
  std::erase_if(pipeline, [](const Stage& stage) { return stage.name == "thin_products"; });
  return pipeline;
}

struct ForLibrary {
  Program program;
  std::vector<std::string> calls;  // "" where a kernel is none, "of ..." its call for sums
  std::string refusals;
};

// Left to the library and fused; the Program still means the graph, its text reads back, and
// each call means its kernel.
inline ForLibrary for_library(const Graph& graph, const std::vector<Tensor>& inputs,
                              Matmul matmul = Matmul::Library) {
  const Pipeline pipeline = until(library_pipeline(matmul), "plan_memory");
  const Program program = run_pipeline(pipeline, graph, true, Target::Cuda).program;
  REQUIRE(parse_program(print(program)) == program);
  const std::vector<Tensor> want = interpret(graph, inputs), got = interpret(program, inputs);
  for (size_t k = 0; k < want.size(); k++) REQUIRE(same_bits(want[k], got[k]));
  ForLibrary result{program, {}, join(program.refusals, "\n")};
  const std::vector<LibraryCall> calls = library_kernels(program);
  for (size_t k = 0; k < calls.size(); k++) {
    const std::optional<LibraryMatmul>& matmul = calls[k].matmul;
    result.calls.push_back(matmul ? str(*matmul) : "");
    std::vector<Kernel> kernels = {program.kernels[k]};
    if (calls[k].sums >= 0) kernels.push_back(program.kernels[calls[k].sums]);
    if (matmul) check_call(program, kernels, *matmul);
  }
  for (const LibraryCall& call : calls) {
    if (call.sums >= 0) result.calls[call.sums] = "of " + name_of(call.matmul->vector);
  }
  return result;
}

inline ForLibrary for_library(const TensorFunction& function, const std::vector<Tensor>& inputs,
                              Matmul matmul = Matmul::Library) {
  return for_library(trace(function, inputs, "f").graph, inputs, matmul);
}

}  // namespace tiny_compile::tests
