// Sums of columns inside the kernel that goes over the rows, bit for bit.
#include "tiny_compile/loops/fold.h"

#include "tests/codegen/emit_programs.h"
#include "tests/loops/refusals.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/fold_columns.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;

Out normalized_with_gradients(In in) {
  const Tensor &x = in[0], &w = in[1], &dy = in[2];
  const Tensor h = x * rsqrt((x * x).mean(-1, true) + 1e-5), g = dy * w;
  return {h * w, g - h * (g * h).mean(-1, true), (dy * h).sum(0), dy.sum(0)};
}

Staged staged(const std::function<Out(In)>& function, const std::vector<Tensor>& inputs,
              Target target) {
  return run_pipeline(default_pipeline(), trace(function, inputs, "f").graph, true, target);
}

int folds(const Program& program) {
  int count = 0;
  for (const Kernel& kernel : program.kernels) {
    for (const Step& step : kernel.steps) count += step.kind == StepKind::Fold;
  }
  return count;
}

constexpr const char* kFolds = R"(program f on cuda {
  input x: f32[64,130]
  output y: f32[2,130]
  output z: f32[64]
  kernel k rows(i0: 2, i1: 32) {
    $0 = load x[i0*130 + i1*260 + j0]
    r0: f32 = sum(j0: 130) $0
    store z[i0 + i1*2] = r0
    fold y[i0*130 + j0] for (j0: 130) = sum(i1) mul($0, r0)
  }
  launch k
  return y, z
}
)";

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

}  // namespace

TEST_CASE("gradients of weights are folds of the kernel that goes over the rows", "[folds]") {
  manual_seed(1);
  for (int64_t rows : {4096, 5120, 34 * 1024}) {
    const int64_t width = rows > 10000 ? 128 : 131;
    const std::vector<Tensor> inputs = {randn({rows, width}), randn({width}),
                                        randn({rows, width})};
    const Staged cuda = staged(normalized_with_gradients, inputs, Target::Cuda);
    INFO(print(cuda.program));
    CHECK(folds(cuda.program) == 2);
    CHECK(cuda.program.launches.size() == 2);
    CHECK(parse_program(print(cuda.program)) == cuda.program);
    const Out wanted = interpret(trace(normalized_with_gradients, inputs, "f").graph, inputs);
    const Out got = interpret(cuda.program, inputs);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
    CHECK(folds(staged(normalized_with_gradients, inputs, Target::Cpp).program) == 0);
  }
}

TEST_CASE("batches and positions are rows; sums of halves are rounded once", "[folds]") {
  manual_seed(4);
  const auto batched = [](In in) {
    const Tensor &x = in[0], &dy = in[1];
    const Tensor h = x * rsqrt((x * x).mean(-1, true) + 1e-5);
    return Out{h, (dy * h).sum({0, 1}), dy.sum({0, 1})};
  };
  for (DType dtype : {float32, bfloat16, float64}) {
    const std::vector<Tensor> inputs = {randn({4, 1024, 130}).to(dtype),
                                        randn({4, 1024, 130}).to(dtype)};
    const Staged cuda = staged(batched, inputs, Target::Cuda);
    INFO(print(cuda.program) << join(cuda.program.refusals, "\n"));
    CHECK(folds(cuda.program) == 2);
    CHECK(parse_program(print(cuda.program)) == cuda.program);
    const Out wanted = interpret(trace(batched, inputs, "f").graph, inputs),
              got = interpret(cuda.program, inputs);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
  }
}

TEST_CASE("columns of two widths are not added by one kernel", "[folds]") {
  manual_seed(5);
  const auto two_widths = [](In in) {
    const Tensor h = in[0] * rsqrt((in[0] * in[0]).mean(-1, true) + 1e-5);
    return Out{h, h.sum(0), (in[1] * h.slice(1, 0, 256, 2)).sum(0)};
  };
  const std::vector<Tensor> inputs = {randn({4096, 256}), randn({4096, 128})};
  const Staged cuda = staged(two_widths, inputs, Target::Cuda);
  INFO(print(cuda.program) << join(cuda.program.refusals, "\n"));
  const Out wanted = interpret(trace(two_widths, inputs, "f").graph, inputs),
            got = interpret(cuda.program, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
}

TEST_CASE("sums that wait for other sums of columns are no folds of the same rows", "[folds]") {
  const std::string rows = R"(program f on cuda {
  input x: f32[4096,128]
  output s: f32[128]
  output z: f32[4096]
  output t: f32[128]
  kernel rows_1 rows(i0: 4096) {
    r0: f32 = sum(j0: 128) load x[i0*128 + j0]
    store z[i0] = r0
  }
  kernel columns_2 rows(i0: 128) {
    r0: f32 = sum(j0: 4096) load x[i0 + j0*128]
    store s[i0] = r0
)",
                    other = "  }\n  kernel columns_3 rows(i0: 128) {\n",
                    sum = ": f32 = sum(j0: 4096) mul(load x[i0 + j0*128], ",
                    launches = "  launch rows_1\n  launch columns_2\n",
                    end = "  return s, z, t\n}\n";
  manual_seed(6);
  const std::vector<Tensor> inputs = {randn({4096, 128})};
  for (const auto& [rest, found] :
       {std::pair{"    r2" + sum + "r0)\n    store t[i0] = r2\n  }\n" + launches, 0},
        {other + "    r0" + sum + "load s[127 - i0])\n    store t[i0] = r0\n  }\n" + launches +
             "  launch columns_3\n",
         1},
        {other + "    r0" + sum + "mul(load z[j0], load s[127 - i0]))\n    store t[i0] = r0\n" +
             "  }\n" + launches + "  launch columns_3\n",
         1}}) {
    const Program program = parse_program(rows + rest + end),
                  fused = fold_columns(fuse(program));
    INFO(print(fused));
    CHECK_NOTHROW(verify(fused));
    CHECK(folds(fused) == found);
    const Out wanted = interpret(program, inputs), got = interpret(fused, inputs);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
  }
}

TEST_CASE(
    "columns that fill no pack take the room of one: folds that fuse makes can be written",
    "[folds]") {
  const auto normalized = [](In in) {
    const Tensor h = in[0] * rsqrt((in[0] * in[0]).mean(-1, true) + 1e-5);
    return Out{h, h.sum(0)};
  };
  for (const auto& [width, found] : {std::pair{872, 1}, {873, 0}}) {
    const Staged cuda = staged(normalized, {zeros({4096, width}, float64)}, Target::Cuda);
    CHECK(folds(cuda.program) == found);
  }
}

TEST_CASE("columns that a row's kernel goes over in two loops are added by another",
          "[folds]") {
  manual_seed(7);
  const auto transposed = [](In in) {
    const Tensor h = in[0].reshape({4096, 4, 64}) * in[1].transpose(0, 1);
    const Tensor y = h / h.sum({1, 2}, true);
    return Out{y, y.reshape({4096, 256}).sum(0)};
  };
  const std::vector<Tensor> inputs = {randn({4096, 256}), randn({64, 4})};
  const Staged cuda = staged(transposed, inputs, Target::Cuda);
  CHECK(folds(cuda.program) == 0);
  CHECK(join(cuda.program.refusals, "\n").find("its columns are several loops there") !=
        std::string::npos);
  const Out wanted = interpret(trace(transposed, inputs, "f").graph, inputs),
            got = interpret(cuda.program, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
}

TEST_CASE("what nobody reads any more keeps no sum from being a fold", "[folds]") {
  const auto moments = [](In in) {
    return Out{in[0].sum(1), in[0].sum(0), (in[0] * in[0]).sum(0)};
  };
  manual_seed(8);
  const std::vector<Tensor> inputs = {randn({4096, 139})};
  const Staged cuda = staged(moments, inputs, Target::Cuda);
  INFO(print(cuda.program) << join(cuda.program.refusals, "\n"));
  CHECK(folds(cuda.program) == 2);
  const Out wanted = interpret(trace(moments, inputs, "f").graph, inputs),
            got = interpret(cuda.program, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
}

TEST_CASE("what a fold saves: rows are read once", "[folds]") {
  const std::vector<Tensor> inputs = {zeros({65536, 1024}), zeros({1024}),
                                      zeros({65536, 1024})};
  const int64_t pass = 4 * 65536 * 1024;
  const int64_t cpp =
                    bytes_moved(staged(normalized_with_gradients, inputs, Target::Cpp).program),
                cuda = bytes_moved(
                    staged(normalized_with_gradients, inputs, Target::Cuda).program);
  CHECK(cpp > 6 * pass);
  CHECK(cuda < 4 * pass + pass / 7);  // partial sums: a 32nd, twice, written and read
}

TEST_CASE("sums are not folded where rows are few, short, long, or ragged", "[folds]") {
  for (const auto& [rows, width] :
       {std::pair<int64_t, int64_t>{2048, 128}, {4096, 100}, {4096, 1025}, {4097, 128}}) {
    const std::vector<Tensor> inputs = {zeros({rows, width}), zeros({width}),
                                        zeros({rows, width})};
    INFO(rows << " x " << width);
    CHECK(folds(staged(normalized_with_gradients, inputs, Target::Cuda).program) == 0);
  }
}

TEST_CASE("a block has room for the sums of a few columns: others are refused with the reason",
          "[folds]") {
  const auto many = [](In in) {
    Out out = normalized_with_gradients(in);
    out.push_back((in[0] * out[0]).sum(0));
    return out;
  };
  const std::vector<Tensor> inputs = {zeros({4096, 1024}), zeros({1024}), zeros({4096, 1024})};
  const Staged all = staged(many, inputs, Target::Cuda);
  CHECK(folds(all.program) == 2);
  CHECK(join(all.program.refusals, "\n").find("the sums of a block's rows do not fit it") !=
        std::string::npos);
}

TEST_CASE("folds as text: they run, and wrong ones are refused", "[folds]") {
  const Program program = parse_program(kFolds);
  CHECK(print(program) == kFolds);
  manual_seed(2);
  const Tensor x = randn({64, 130});
  const Tensor sums = x.sum(1, true);
  const Out got = interpret(program, std::vector{x});
  for (int64_t part : {0, 1}) {
    const Tensor wanted = (x * sums).slice(0, part, 64, 2).sum(0);
    CHECK(same_bits(got[0].slice(0, part, part + 1).reshape({130}), wanted));
  }
  const auto refused = [](const char* old, const char* by) {
    try {
      parse_program(replaced(kFolds, old, by));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("= sum(i1)", "= sum(i0)").find("expected sum(the last row axis)") !=
        std::string::npos);
  CHECK(refused("= sum(i1)", "=").find("expected sum(the last row axis)") != std::string::npos);
  CHECK(refused("fold y[i0*130 + j0]", "fold y[i1*4 + j0]").find("outside its loop") !=
        std::string::npos);
  CHECK(refused("i1: 32", "i1: 24").find("a power of two up to 1024") != std::string::npos);
}

TEST_CASE("folds are for CUDA: the C++ back end says so", "[folds]") {
  CHECK_THROWS_WITH(parse_program(replaced(kFolds, " on cuda", "")),
                    Catch::Matchers::ContainsSubstring("folds rows, which the C++"));
}

TEST_CASE("folds compile for GPUs that cannot be asked for what comes next", "[folds][nvrtc]") {
  const Source source = emit_cuda(parse_program(kFolds));
  CHECK(source.text.find("tc_ahead(in_") != std::string::npos);
  if (!why_no_nvrtc().empty()) SKIP("NVRTC: " + why_no_nvrtc());
  CHECK(!compile_cuda(source.text, "sm_80").empty());
}

TEST_CASE("folds compile for the GPU: packs, ragged rows, doubles, many rows",
          "[folds][nvrtc]") {
  if (!why_no_nvrtc().empty()) SKIP("NVRTC: " + why_no_nvrtc());
  for (const auto& [old, by] :
       {std::pair{"x: f32", "x: f32"}, {"x: f32[64,130]", "x: f32[64,130] align=4"}}) {
    const Source source = emit_cuda(parse_program(replaced(kFolds, old, by)));
    CHECK(source.kernels[0].grid == 2);
    CHECK(source.kernels[0].block == 128);
    CHECK(!compile_cuda(source.text, "sm_90").empty());
  }
  std::string doubles = kFolds;
  for (size_t at = 0; (at = doubles.find("f32")) != std::string::npos;)
    doubles.replace(at, 3, "f64");
  CHECK(!compile_cuda(emit_cuda(parse_program(doubles)).text, "sm_90").empty());
}
