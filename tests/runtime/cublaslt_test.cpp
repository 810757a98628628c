// Our declarations of cuBLASLt against its header; then, on a GPU, every kind of call against
// double precision.
#include "tiny_compile/runtime/cublaslt.h"

#include <fcntl.h>

#include <thread>

#include "tests/codegen/emit_programs.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/compile/compile.h"
#include "tiny_compile/runtime/cublaslt_api.h"
#include "tiny_compile/runtime/cuda_executable.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/nn.h"
//
#include "tests/loops/library_calls.h"

using namespace tiny_compile;
using tests::distance;
using tests::doubles;
using tests::In;
using tests::Out;

#define NEEDS_CUBLASLT                             \
  if (!why_no_cuda().empty()) SKIP(why_no_cuda()); \
  if (!why_no_cublaslt().empty()) SKIP(why_no_cublaslt())

namespace {

// The folder with cublasLt.h, or "".
std::string header_folder() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) folders.push_back(str(home, "/include"));
  }
  folders.push_back("/usr/local/cuda/include");
  for (const std::string& folder : folders) {
    if (std::filesystem::exists(folder + "/cublasLt.h")) return folder;
  }
  return "";
}

// Two functions whose parameters are passed alike: pointers, and integers of the same size.
constexpr const char* kAlike = R"(
#include <cublasLt.h>
#include <type_traits>
using Handle = void*; using Operation = void*; using Layout = void*; using Preference = void*;
using CudaStream = void*; using Algorithm = void; using Heuristic = void;
template <typename A, typename B>
constexpr bool alike = std::is_pointer_v<A> ? std::is_pointer_v<B>
                                            : !std::is_pointer_v<B> && sizeof(A) == sizeof(B);
template <typename R, typename... A, typename S, typename... B>
constexpr bool fits(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return alike<R, S> && (alike<A, B> && ...);
}
static_assert(std::is_same_v<decltype(cublasLtGetVersion()), size_t>);
static_assert(fits((const char* (*)(int))nullptr, &cublasLtGetStatusString));
)";

std::string checks() {
  std::string text = kAlike;
#define X(member, symbol, parameters) \
  text += "static_assert(fits((int (*)" #parameters ")nullptr, &" #symbol "));\n";
  TC_CUBLASLT_FUNCTIONS(X)
#undef X
#define X(name, value, theirs) text += "static_assert(int(" #theirs ") == " #value ");\n";
  TC_CUBLASLT_CONSTANTS(X)
#undef X
  using cublaslt::Heuristic;
  text += str(
      "using Result = cublasLtMatmulHeuristicResult_t;\n",
      "static_assert(sizeof(Result) == ", sizeof(Heuristic),
      ");\nstatic_assert(offsetof(Result, workspaceSize) == ", offsetof(Heuristic, workspace),
      ");\nstatic_assert(offsetof(Result, state) == ", offsetof(Heuristic, state),
      ");\nstatic_assert(sizeof(cublasLtMatmulAlgo_t) == ", sizeof(cublaslt::Algorithm),
      ");\n");
  return text;
}

}  // namespace

TEST_CASE("the declarations are those of cublasLt.h", "[cublaslt]") {
  const std::string folder = header_folder();
  if (folder.empty()) SKIP("no cublasLt.h in CUDA_HOME or /usr/local/cuda");
  if (find_program("c++").empty()) SKIP("no c++ on PATH");
  const tests::Scratch scratch;
  tests::write_text(scratch.path("check.cpp"), checks());
  const ProcessResult result = run_process(
      {"c++", "-std=c++17", "-fsyntax-only", "-I" + folder, scratch.path("check.cpp")}, "", 60);
  INFO(result.output);
  CHECK(result.exit_code == 0);
}

TEST_CASE("without the library, matmuls are generated, of which one line tells", "[cublaslt]") {
  using Catch::Matchers::ContainsSubstring;
  const bool here = why_no_cublaslt().empty();
  const tests::Scratch scratch;
  const std::string file = scratch.path("words");
  const auto choose = [&] {
    dup2(open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
    const bool first = available_matmul(Matmul::Generated) == Matmul::Generated;
    const bool second =
        available_matmul(Matmul::Library) == (here ? Matmul::Library : Matmul::Generated);
    const bool third = available_matmul(Matmul::LibraryTf32) ==
                       (here ? Matmul::LibraryTf32 : Matmul::Generated);
    return first && second && third ? 0 : 1;
  };
  CHECK(tests::in_child(choose) == 0);
  const std::string words = tests::text_of(file);
  CHECK(std::count(words.begin(), words.end(), '\n') == (here ? 0 : 1));
  if (!here)
    CHECK_THAT(words, ContainsSubstring("generated") && ContainsSubstring(why_no_cublaslt()));
}

TEST_CASE("the source says what is left to the library", "[cublaslt]") {
  Program program = tests::for_library([](In i) { return Out{matmul(i[0], i[1]) + i[2]}; },
                                       {randn({8, 16}), randn({16, 24}), randn({24})})
                        .program;
  for (Kernel& kernel : program.kernels) kernel.schedule.reset();
  program = for_machine(std::move(program), default_machine(Target::Cuda));
  const Source source = emit_cuda(program);
  REQUIRE(source.kernels.size() == 1);
  REQUIRE(source.kernels[0].library);
  CHECK(source.kernels[0].grid == 0);
  CHECK_THAT(source.text, Catch::Matchers::ContainsSubstring(
                              "// the library: f32 24x8x16 (m x n x k), + bias"));
  program.matmul = Matmul::Generated;
  CHECK(!emit_cuda(program).kernels[0].library);
}

namespace {

// A function for inputs of these types, left to the library, on the GPU.
class OnGpu {
 public:
  OnGpu(const TensorFunction& function, const std::vector<Tensor>& inputs,
        Matmul matmul = Matmul::Library) {
    const Staged staged = run_pipeline(tests::library_pipeline(matmul),
                                       trace(function, inputs, "f").graph, true, Target::Cuda);
    for (const KernelEntry& kernel : staged.source.kernels) {
      if (kernel.library) matmuls_.push_back(*kernel.library);
      sums_ += kernel.sums >= 0 ? 1 : 0;
    }
    const BuiltCubins built = build_cuda(staged.source, cuda_device(0).architecture);
    executable_ = std::make_unique<CudaExecutable>(staged.program, staged.source,
                                                   load_cubins(built.cubins, 0));
  }
  int calls() const { return static_cast<int>(matmuls_.size()); }
  int sums() const { return sums_; }  // made beside a product
  const std::vector<LibraryMatmul>& matmuls() const { return matmuls_; }
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const {
    return executable_->run(inputs);
  }

 private:
  std::vector<LibraryMatmul> matmuls_;
  int sums_ = 0;
  std::unique_ptr<CudaExecutable> executable_;
};

// On the GPU, `elements` further than the allocation's start.
Tensor there(const Tensor& tensor, int64_t elements = 0) {
  if (elements == 0) return copy_to(tensor, Device{DeviceKind::Cuda, 0});
  std::vector<double> values(static_cast<size_t>(elements));
  for (double value : doubles(tensor)) values.push_back(value);
  const Tensor all =
      copy_to(from_vector(values).to(tensor.dtype()), Device{DeviceKind::Cuda, 0});
  auto data = std::make_shared<TensorData>(all.info());
  data->offset = elements;
  data->layout = row_major_layout(tensor.shape());
  return Tensor(data);
}

double bound(DType dtype) {  // some times the error of one rounding
  if (dtype == DType::f64) return 1e-13;
  return dtype == DType::f32 ? 2e-6 : dtype == DType::f16 ? 1e-3 : 8e-3;
}

// The function, as this many calls, is as near to double precision as one rounding allows.
void check(const TensorFunction& function, const std::vector<Sizes>& shapes, DType dtype,
           int calls = 1, int64_t shift = 0, double slack = 1) {
  std::vector<Tensor> inputs, wide, moved;
  for (const Sizes& shape : shapes) {
    inputs.push_back((randn(shape) * 0.25).to(dtype));
    wide.push_back(inputs.back().to(DType::f64));
    moved.push_back(there(inputs.back(), shift));
  }
  const OnGpu compiled(function, inputs);
  INFO(print(trace(function, inputs, "f").graph) << "shifted by " << shift);
  CHECK(compiled.calls() == calls);
  const std::vector<Tensor> want = interpret(trace(function, wide, "f").graph, wide);
  const std::vector<Tensor> got = compiled(moved);
  for (size_t k = 0; k < want.size(); k++) {
    INFO("output " << k << " of " << dtype);
    CHECK(distance(doubles(copy_to(got[k], cpu)), doubles(want[k])) < slack * bound(dtype));
  }
}

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
constexpr DType kNotDouble[] = {DType::f32, DType::f16, DType::bf16};

Tensor transposed(const Tensor& x) { return transpose(x, -2, -1); }

}  // namespace

TEST_CASE("on a GPU: sizes, dtypes, orientations", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  const int64_t sizes[][3] = {{64, 64, 64},   {33, 40, 17},    {1, 128, 64}, {128, 1, 64},
                              {257, 129, 65}, {256, 384, 512}, {7, 5, 1},    {1, 1, 1}};
  for (DType dtype : kFloats) {
    for (const auto& [m, n, k] : sizes) {
      check([](In i) { return Out{matmul(i[0], i[1])}; }, {{m, k}, {k, n}}, dtype);
      check([](In i) { return Out{matmul(i[0], transposed(i[1]))}; }, {{m, k}, {n, k}}, dtype);
      check([](In i) { return Out{matmul(transposed(i[0]), i[1])}; }, {{k, m}, {k, n}}, dtype);
      check([](In i) { return Out{transposed(matmul(transposed(i[0]), transposed(i[1])))}; },
            {{k, m}, {n, k}}, dtype);
    }
  }
}

TEST_CASE("on a GPU: what stands behind a product", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  for (DType dtype : kNotDouble) {
    for (int64_t n : {64, 40, 37}) {
      const std::vector<Sizes> shapes = {{50, 32}, {32, n}, {n}};
      check([](In i) { return Out{matmul(i[0], i[1]) * 0.25 + i[2]}; }, shapes, dtype);
      check([](In i) { return Out{relu(matmul(i[0], i[1]))}; }, shapes, dtype);
      check([](In i) { return Out{relu(matmul(i[0], i[1]) + i[2])}; }, shapes, dtype);
      // The library's GELU in f32 is good to a little over the bound.
      check([](In i) { return Out{gelu(matmul(i[0], i[1]), "tanh")}; }, shapes, dtype, 1, 0, 2);
      check([](In i) { return Out{gelu(matmul(i[0], i[1]) + i[2], "tanh")}; }, shapes, dtype, 1,
            0, 2);
      if (n % 8 != 0) continue;
      check(
          [](In i) {
            const Tensor z = matmul(i[0], i[1]) + i[2];
            return Out{gelu(z, "tanh"), z};
          },
          shapes, dtype, 1, 0, 2);
    }
  }
  check([](In i) { return Out{matmul(i[0], i[1]).to(DType::f32)}; }, {{50, 32}, {32, 40}},
        DType::bf16);
  check([](In i) { return Out{matmul(i[0], i[1]) * 3}; }, {{50, 32}, {32, 40}}, DType::f64);
}

TEST_CASE("on a GPU: batches, with one stride and with several", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  auto product = [](In i) { return Out{matmul(i[0], i[1])}; };
  auto heads = [](In i) {
    return Out{permute(matmul(permute(i[0], {0, 2, 1, 3}), i[1]), {0, 2, 1, 3})};
  };
  for (DType dtype : kFloats) {
    check(product, {{2, 3, 24, 16}, {2, 3, 16, 40}}, dtype);
    check(product, {{2, 3, 24, 16}, {16, 40}}, dtype);
    check(product, {{24, 16}, {5, 16, 40}}, dtype);
    check(heads, {{3, 24, 4, 16}, {3, 4, 16, 40}}, dtype);
    check(heads, {{5, 24, 6, 16}, {5, 6, 16, 40}}, dtype);  // five calls
  }
}

TEST_CASE("on a GPU: calls in two streams are waited for, recorded or not", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  const auto twice = [](In i) {  // the second product reads all that the first has made
    const Tensor y = matmul(permute(i[0], {0, 2, 1, 3}), i[1]);
    return Out{permute(matmul(y + 1.0, i[2]), {0, 2, 1, 3})};
  };
  std::vector<Tensor> inputs;
  for (const Sizes& shape :
       {Sizes{9, 512, 12, 64}, Sizes{9, 12, 64, 256}, Sizes{9, 12, 256, 64}})
    inputs.push_back(there(randn(shape).to(DType::bf16)));
  const OnGpu compiled(twice, inputs);
  const Tensor first = copy_to(compiled(inputs)[0], cpu);
  const Tensor generated = copy_to(OnGpu(twice, inputs, Matmul::Generated)(inputs)[0], cpu);
  CHECK(distance(doubles(first), doubles(generated)) < 3 * bound(DType::bf16));
  for (int call = 0; call < 20; call++)  // at the same addresses from the second on
    CHECK(same_bits(copy_to(compiled(inputs)[0], cpu), first));
}

TEST_CASE("on a GPU: operands that are not aligned", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  for (DType dtype : kFloats) {
    auto inside = [](In i) {
      return Out{matmul(slice(i[0], 1, 3, 35), slice(i[1], 1, 1, 41))};
    };
    check(inside, {{50, 64}, {32, 64}}, dtype);
    for (int64_t shift : {1, 2, 4, 8})
      check([](In i) { return Out{matmul(i[0], i[1])}; }, {{64, 32}, {32, 64}}, dtype, 1,
            shift);
  }
  // One executable for both.
  const std::vector<Tensor> inputs = {randn({64, 32}), randn({32, 64})};
  const OnGpu f([](In i) { return Out{matmul(i[0], i[1])}; }, inputs);
  const std::vector<double> aligned =
      doubles(copy_to(f({there(inputs[0]), there(inputs[1])})[0], cpu));
  const std::vector<double> shifted =
      doubles(copy_to(f({there(inputs[0], 1), there(inputs[1], 3)})[0], cpu));
  CHECK(distance(shifted, aligned) < 1e-6);
}

TEST_CASE("on a GPU: tf32 where it is asked for, f32 where it is not", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  const std::vector<Tensor> inputs = {randn({256, 256}), randn({256, 256})};
  auto product = [](In i) { return Out{matmul(i[0], i[1])}; };
  const std::vector<Tensor> wide = {inputs[0].to(DType::f64), inputs[1].to(DType::f64)};
  const std::vector<double> want = doubles(interpret(trace(product, wide, "f").graph, wide)[0]);
  auto error = [&](Matmul matmul) {
    const OnGpu f(product, inputs, matmul);
    return distance(doubles(copy_to(f({there(inputs[0]), there(inputs[1])})[0], cpu)), want);
  };
  CHECK(error(Matmul::Library) < 2e-6);
  CHECK(error(Matmul::LibraryTf32) < 2e-3);
  CHECK(error(Matmul::LibraryTf32) > 2e-6);
}

TEST_CASE("on a GPU: networks, calls and kernels in turn", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  auto mlp = [](In i) {
    return Out{linear(gelu(linear(i[0], i[1], i[2]), "tanh"), i[3], i[4])};
  };
  auto attention = [](In i) {
    const Tensor qkv = reshape(linear(i[0], i[1], i[2]), {2, 32, 3, 4, 16});
    auto part = [&](int64_t k) {
      return permute(squeeze(slice(qkv, 2, k, k + 1), 2), {0, 2, 1, 3});
    };
    const Tensor y = scaled_dot_product_attention(part(0), part(1), part(2), {}, true);
    return Out{linear(reshape(permute(y, {0, 2, 1, 3}), {2, 32, 64}), i[3], i[4])};
  };
  auto step = [](In i) {  // forward and back
    const Tensor z = matmul(i[0], i[1]) + i[2], h = gelu(z, "tanh");
    const Tensor dy = matmul(h, i[3]) + i[4] - i[5];
    const Tensor dz = gelu_backward(matmul(dy, transposed(i[3])), z, "tanh");
    return Out{matmul(transposed(h), dy), sum(dy, {0}), matmul(transposed(i[0]), dz),
               sum(dz, {0})};
  };
  for (DType dtype : kNotDouble) {
    check(mlp, {{2, 16, 64}, {256, 64}, {256}, {64, 256}, {64}}, dtype, 2, 0,
          10);  // it rounds between
    check(step, {{64, 32}, {32, 96}, {96}, {96, 24}, {24}, {64, 24}}, dtype, 5, 0, 20);
    check(attention, {{2, 32, 64}, {192, 64}, {192}, {64, 64}, {64}}, dtype, 4, 0, 20);
  }
}

TEST_CASE("on a GPU: threads share a function", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  const std::vector<Sizes> shapes = {{64, 32}, {32, 64}, {64}};
  std::vector<Tensor> inputs, moved;
  for (const Sizes& shape : shapes) inputs.push_back(randn(shape));
  const OnGpu f([](In i) { return Out{relu(matmul(i[0], i[1]) + i[2])}; }, inputs);
  for (const Tensor& input : inputs) moved.push_back(there(input));
  const std::vector<double> want = doubles(copy_to(f(moved)[0], cpu));
  std::vector<std::vector<double>> got(4);
  std::vector<std::thread> threads;
  for (std::vector<double>& result : got) {
    threads.emplace_back([&] {
      std::vector<Tensor> own;  // another bias pointer in each thread
      for (const Tensor& input : inputs) own.push_back(there(input));
      for (int turn = 0; turn < 50; turn++) result = doubles(copy_to(f(own)[0], cpu));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& result : got) CHECK(result == want);
}

namespace {

struct Sides {
  int64_t batch, in, hidden, last;
};
constexpr Sides kLayers[] = {{256, 128, 512, 64}, {1024, 64, 256, 128}, {130, 70, 40, 24},
                             {33, 17, 48, 9},     {300, 100, 200, 50},  {16384, 64, 128, 32}};
constexpr const char* kGradients[] = {"dz",
                                      "db (sums of D)",
                                      "dW",
                                      "dV",
                                      "dc (sums of A)",
                                      "dU, as linear has it",
                                      "dd (sums of B)"};

// The backward of x -> z = x w + b -> h = gelu(z) -> h v + c, and of another layer of x whose
// weights are [out, in]: from x, z, v, the gradient dy of what comes out, h, and the other's dy.
std::vector<Tensor> gradients(In i) {
  const Tensor dz = gelu_backward(matmul(i[3], transposed(i[2])), i[1], "tanh");
  return {dz,
          sum(dz, {0}),
          matmul(transposed(i[0]), dz),
          matmul(transposed(i[4]), i[3]),
          sum(i[3], {0}),
          matmul(transposed(i[5]), i[0]),
          sum(i[5], {0})};
}

std::vector<Tensor> gradient_inputs(const Sides& s, DType dtype) {
  auto some = [&](const Sizes& shape, double scale) {
    return (randn(shape) * scale).to(dtype);
  };
  return {some({s.batch, s.in}, .25),    some({s.batch, s.hidden}, 1),
          some({s.hidden, s.last}, .25), some({s.batch, s.last}, .25),
          some({s.batch, s.hidden}, .5), some({s.batch, s.last}, .25)};
}

std::vector<Tensor> on_gpu(const std::vector<Tensor>& tensors, int64_t shift = 0) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(there(tensor, shift));
  return result;
}

std::vector<Tensor> in_double(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> wide;
  for (const Tensor& tensor : inputs) wide.push_back(tensor.to(DType::f64));
  return interpret(trace(gradients, wide, "f").graph, wide);
}

// The library's gelu' in f32 is its own, and halves are rounded before they are multiplied on.
void check_gradients(const std::vector<Tensor>& got, const std::vector<Tensor>& want,
                     DType dtype) {
  for (size_t k = 0; k < want.size(); k++) {
    INFO(kGradients[k] << " of " << dtype);
    CHECK(distance(doubles(copy_to(got[k], cpu)), doubles(want[k])) < 4 * bound(dtype));
  }
}

std::string str(const Sides& s) {
  return tiny_compile::str("batch ", s.batch, ", in ", s.in, ", hidden ", s.hidden, ", last ",
                           s.last);
}

}  // namespace

TEST_CASE("on a GPU: the library has an algorithm for each gradient that is matched",
          "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  for (DType dtype : kNotDouble) {
    for (const Sides& sides : kLayers) {
      const OnGpu f(gradients, gradient_inputs(sides, dtype));
      for (const LibraryMatmul& matmul : f.matmuls()) {
        INFO(str(sides) << ": " << tiny_compile::str(matmul));
        CHECK_NOTHROW(CublasMatmul(matmul, 0));
      }
    }
  }
}

TEST_CASE("on a GPU: gelu' and the gradients of biases", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  for (DType dtype : kNotDouble) {
    for (const Sides& sides : kLayers) {
      const std::vector<Tensor> inputs = gradient_inputs(sides, dtype), moved = on_gpu(inputs);
      const std::vector<Tensor> want = in_double(inputs);
      const OnGpu f(gradients, inputs);
      INFO(str(sides));
      CHECK(f.calls() == 4);
      CHECK(f.sums() == 3);
      for (int call = 1; call <= 3; call++) {  // the first, one that is recorded, one replayed
        INFO("call " << call);
        check_gradients(f(moved), want, dtype);
      }
    }
  }
}

TEST_CASE("on a GPU: gradients of inputs that lie anywhere", "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  CompileOptions usual, with_sums;
  with_sums.pipeline =
      insert_after(with_sums.pipeline, "fold_columns", {"library_sums", library_sums});
  for (const CompileOptions& options : {usual, with_sums}) {
    auto compiled = compile(
        [](Tensor x, Tensor z, Tensor v, Tensor dy, Tensor h, Tensor other) {
          return gradients(std::vector<Tensor>{x, z, v, dy, h, other});
        },
        options);
    for (DType dtype : {DType::f32, DType::bf16}) {
      const std::vector<Tensor> inputs = gradient_inputs({130, 70, 40, 24}, dtype);
      const std::vector<Tensor> want = in_double(inputs);
      for (int64_t shift : {0, 1, 2, 4, 8}) {
        INFO("shifted by " << shift);
        const std::vector<Tensor> at = on_gpu(inputs, shift);
        check_gradients(compiled(at[0], at[1], at[2], at[3], at[4], at[5]), want, dtype);
      }
    }
  }
}

TEST_CASE("on a GPU: with generated kernels gradients are the interpreter's bits",
          "[cublaslt][gpu]") {
  NEEDS_CUBLASLT;
  const std::vector<Tensor> inputs = gradient_inputs({130, 70, 40, 24}, DType::bf16);
  const std::vector<Tensor> want = interpret(trace(gradients, inputs, "f").graph, inputs);
  const std::vector<Tensor> got = OnGpu(gradients, inputs, Matmul::Generated)(on_gpu(inputs));
  for (size_t k = 0; k < want.size(); k++) {
    INFO(kGradients[k]);
    CHECK(same_bits(copy_to(got[k], cpu), want[k]));
  }
}
