// The GPU benchmark's rows are right before a GPU sees them: inputs as PyTorch makes them,
// sources for the full sizes, the interpreter's bits on small ones.
#include "tests/bench/gpu_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "tests/bench/gpu_measure.h"
#include "tests/catch.h"
#include "tests/codegen/emit_programs.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/runtime/process.h"

using namespace tiny_compile;
using namespace bench;

namespace {

Graph full_graph(const std::string& name) {
  const GpuRow row = make_gpu_row(name);
  std::vector<Tensor> inputs;
  for (const Input& input : row.inputs) inputs.push_back(shape_only(input));
  return row.prepare({}, inputs).graph();
}

// Without the vendor's library: its products are kernels too.
Program full_program(const std::string& name) {
  const Pipeline pipeline = until(default_pipeline(), "plan_memory");
  return run_pipeline(pipeline, full_graph(name), true, Target::Cuda).program;
}

std::vector<std::string> names_from(size_t first, size_t count) {
  std::vector<std::string> names = gpu_row_names();
  const auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(std::min(count, names.size() - first))};
}

void check_bits(const std::vector<std::string>& names) {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  for (const std::string& name : names) {
    INFO(name);
    const LoadedRow row({cpu, true}, name);
    CHECK_NOTHROW(row.check_full());
    CHECK_NOTHROW(row.check_small());
  }
}

void check_compiles(const std::vector<std::string>& names) {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  std::vector<Program> programs;
  for (const std::string& name : names) programs.push_back(full_program(name));
  CHECK_NOTHROW(compile_cuda(emit_cuda_together(programs)[0].text, "sm_90"));
}

const char* const kRecordScript = R"PY(
import json, sys
sys.path.insert(0, "tests/bench")
import charts, gpu_bench

def part(name, *rows):
    with open(f"{sys.argv[1]}/{name}", "w") as f:
        json.dump({"commit": name, "command": name, "rows": rows}, f)
    return f"{sys.argv[1]}/{name}"

def row(name, commit):
    return {"row": name, "commit": commit, "contestants": {}}

def joined(*parts):
    gpu_bench.join(parts, f"{sys.argv[1]}/all")
    return gpu_bench.load_record(f"{sys.argv[1]}/all")

first = part("first", row("mse", "a"), row("adamw", "a"), {"row": "colsum", "error": "slow"})
second = part("second", row("softmax", "b"), {"row": "mse", "error": "driver", "commit": "b"},
              row("colsum", "b"), row("layernorm", "c"))
record = joined(first, second)
assert not [r for r in record["rows"] if "error" in r], record
assert {r["row"]: r["commit"] for r in record["rows"]} == {
    "mse": "a", "adamw": "a", "softmax": "b", "colsum": "b", "layernorm": "c"}, record
assert record["commit"] == "a" and record["command"] == "first; second", record
words = charts.commit_words(record["rows"])
assert words == "a (softmax and colsum b, layernorm c)", words
assert joined(second, first)["rows"][-1]["row"] == "adamw"
gpu_bench.put(record, row("mse", "d"))
assert [r["commit"] for r in record["rows"] if r["row"] == "mse"] == ["d"], record
)PY";

}  // namespace

TEST_CASE("records are joined: errors replace no figures, rows keep their commit", "[bench]") {
  if (find_program("python3").empty()) SKIP("no python3");
  const tests::Scratch scratch;
  const ProcessResult result =
      run_process({"python3", "-c", kRecordScript, scratch.path("")}, "", 60);
  INFO(result.output);
  CHECK(result.exit_code == 0);
}

TEST_CASE("inputs from a counter are those of gpu_peers.py", "[bench]") {
  Input real = dense_input(DType::f32, {1000}, 3), half = dense_input(DType::bf16, {1000}, 4),
        whole = dense_input(DType::i64, {1000}, 5);
  real.scale = 3;
  half.scale = 0.1f;
  half.shift = 1;
  whole.classes = 50257;
  CHECK(checksum(make_input(real, cpu)) == -31430959999);
  CHECK(checksum(make_input(half, cpu)) == 16252765);
  CHECK(checksum(make_input(whole, cpu)) == 25119593);
}

TEST_CASE("layouts show the storage's elements", "[bench]") {
  const Input dense = dense_input(DType::f32, {4, 6}, 1);
  auto laid_out = [&](const char* layout) {
    Input input = dense;
    lay_out(input, layout);
    return make_input(input, cpu);
  };
  const Tensor first = laid_out("misaligned"), transposed = laid_out("transposed"),
               strided = laid_out("strided"), plain = make_input(dense, cpu);
  CHECK(reinterpret_cast<uintptr_t>(first.bytes()) % 16 == 4);
  CHECK(first.element({0, 0}) == plain.element({0, 1}));
  CHECK(transposed.element({1, 2}) == plain.element({1, 3}));  // element 9 of the storage
  CHECK(strided.element({0, 2}) == plain.element({0, 4}));
  CHECK_THROWS_AS(laid_out("upside down"), Error);
}

TEST_CASE("rows of the GPU table take as many launches as they should", "[bench]") {
  const std::map<std::string, int> expected = {{"pointwise", 1},
                                               {"bias_gelu_f32", 1},
                                               {"bias_gelu_bf16", 1},
                                               {"softmax", 1},
                                               {"softmax_wide", 1},
                                               {"layernorm", 1},
                                               {"add_rmsnorm_bf16", 1},
                                               {"mse", 2},
                                               {"colsum", 2},
                                               {"transpose_add", 1},
                                               {"swiglu_bf16", 1},
                                               {"adamw", 1},
                                               {"xent_fwd", 2},
                                               {"xent_fwdbwd", 2},
                                               {"layernorm_fwdbwd", 2},
                                               {"tiny_chain", 1},
                                               {"mlp_bf16", 2},
                                               {"mlp_fwdbwd_bf16", 9},
                                               {"linear_xent_bf16", 38},
                                               {"logits_xent_bf16", 6},
                                               {"clip_adamw", 20}};
  for (const auto& [name, launches] : expected) {
    INFO(name);
    const Source source = cuda_source(full_graph(name));
    CHECK(count_launches(source) == launches);
    CHECK(source.text.rfind("// " + name + ": ", 0) == 0);
  }
}

TEST_CASE("ragged rows take one launch, sums of columns two", "[bench]") {
  for (const std::string& name : gpu_ragged_names()) {
    INFO(name);
    const int64_t launches = count_launches(cuda_source(full_graph(name)));
    CHECK(launches <= (name.starts_with("colsum/") ? 2 : 1));
  }
}

TEST_CASE("GPT-2's forward pass becomes CUDA source", "[bench]") {
  const Program program = full_program("gpt2_fwd");
  CHECK(program.launches.size() < 12 * 12 + 6);  // twelve a layer, where there were 50 ops
  CHECK(emit_cuda(program).kernels.size() >= program.launches.size());
}

TEST_CASE("the kernels of GPT-2's twelve layers are written once", "[bench]") {
  const Program program = full_program("gpt2_fwdbwd");
  const Source source = emit_cuda(program);
  std::set<std::string> different;
  for (const KernelEntry& kernel : source.kernels) different.insert(kernel.function);
  CHECK(source.kernels.size() > 12 * 20);
  CHECK(different.size() < source.kernels.size() / 6);
}

// As they are compiled on a GPU: the vendor's products, whose rows are padded.
TEST_CASE("every stage of GPT-2's step is sound", "[bench]") {
  const Graph graph = full_graph("gpt2_step");
  const Pipeline library = with_library(default_pipeline(), Matmul::Library);
  CHECK_NOTHROW(run_pipeline(library, graph, true, Target::Cuda));
}

TEST_CASE("NVRTC takes the full-size rows (1)", "[bench][cuda]") {
  check_compiles(names_from(0, 6));
}
TEST_CASE("NVRTC takes the full-size rows (2)", "[bench][cuda]") {
  check_compiles(names_from(6, 6));
}
TEST_CASE("NVRTC takes the full-size rows (3)", "[bench][cuda]") {
  check_compiles(names_from(12, 6));
}
TEST_CASE("NVRTC takes the full-size rows (4), beside the library's products",
          "[bench][cuda]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  for (const char* name : {"linear_xent_bf16", "logits_xent_bf16", "clip_adamw"})
    CHECK_NOTHROW(compile_cuda(cuda_source(full_graph(name)).text, "sm_90"));
}
TEST_CASE("small rows have the interpreter's bits (1)", "[bench]") {
  check_bits(names_from(0, 6));
}
TEST_CASE("small rows have the interpreter's bits (2)", "[bench]") {
  check_bits(names_from(6, 6));
}
TEST_CASE("small rows have the interpreter's bits (3)", "[bench]") {
  check_bits(names_from(12, 6));
}
TEST_CASE("small rows have the interpreter's bits (4)", "[bench]") {
  check_bits({"linear_xent_bf16", "logits_xent_bf16", "clip_adamw"});
}

TEST_CASE("a last layer's loss and gradients in chunks are those of all of its logits",
          "[bench]") {
  const auto results = [](const char* name) {
    const GpuRow row = make_gpu_row(name, true);
    std::vector<Tensor> inputs;
    for (const Input& input : row.inputs) inputs.push_back(make_input(input, cpu));
    return row.prepare({}, inputs).results();
  };
  const auto chunks = results("linear_xent_bf16"), whole = results("logits_xent_bf16");
  REQUIRE(chunks.size() == 3);
  for (size_t k = 0; k < 3; k++) CHECK(distance(whole[k], chunks[k]) < 0.01);
}

TEST_CASE("clip_adamw moves GPT-2's 148 tensors by clipped gradients", "[bench]") {
  const GpuRow full = make_gpu_row("clip_adamw"), row = make_gpu_row("clip_adamw", true);
  CHECK(full.inputs.size() == 4 * 148 + 1);
  CHECK(full.bytes == 4.0 * 7 * 124439808 + 7);  // and the number of steps
  std::vector<Tensor> inputs;
  for (const Input& input : row.inputs) inputs.push_back(make_input(input, cpu));
  const size_t count = inputs.size() / 4;
  const std::vector<Tensor> after = row.prepare({}, inputs).results();
  REQUIRE(after.size() == 3 * count + 1);
  double norm = 0;  // of what the first moments took in
  for (size_t k = 0; k < count; k++) {
    const Tensor taken = (after[count + k] - inputs[count + k] * 0.9) * 10.0;
    norm += (taken * taken).sum().item<double>();
  }
  CHECK(std::abs(norm - 1) < 1e-3);
}

TEST_CASE("the last timed call is compared with the first, with a matmul in it too",
          "[bench]") {
  LoadedRow row({cpu, true}, "mlp_bf16");
  CHECK_THROWS_AS(row.check_last(), Error);
  row.time_calls(3);
  CHECK_NOTHROW(row.check_last());
  uint16_t& bits = *reinterpret_cast<uint16_t*>(row.outputs()[0].bytes());
  bits ^= 1;
  CHECK_THROWS_AS(row.check_last(), Error);
}

TEST_CASE("a row's peak is its inputs, its results and what lies between", "[bench]") {
  LoadedRow fused({cpu, true}, "adamw"), chained({cpu, true}, "mlp_bf16");
  int64_t results = 0;
  for (const Tensor& output : fused.outputs()) results += output.numel() * 4;
  CHECK(fused.peak_bytes() == fused.input_bytes() + results);
  CHECK(chained.peak_bytes() >
        chained.input_bytes() + chained.outputs()[0].numel() * size_of(DType::bf16));
}

TEST_CASE("a wrong GPT-2 fails the small instance's check", "[bench]") {
  const GpuRow row = make_gpu_row("gpt2_fwd", true);
  std::vector<Tensor> inputs;
  for (const Input& input : row.inputs) inputs.push_back(make_input(input, cpu));
  const std::string text = print(row.prepare({}, inputs).graph());
  const std::vector<Tensor> want = interpret(parse_graph(text), inputs);
  auto hidden_off = [&](const char* what, const char* by) {
    const Graph other = parse_graph(std::regex_replace(text, std::regex(what), by));
    return distance(want[1], interpret(other, inputs)[1]);
  };
  CHECK(hidden_off("nothing", "else") == 0);
  const char* const mask = R"((bf16\[2,2,10,10\]) = where %\d+, %\d+, (%\d+))";
  CHECK(hidden_off(mask, "$1 = maximum $2, $2") > 10 * row.limit);
  CHECK(hidden_off(R"(= sigmoid (%\d+))", "= maximum $1, $1") > 10 * row.limit);  // of gelu
  for (const size_t weight : {8, 9, 14, 15, 20, 21, 26, 27})  // that blocks end in
    inputs[weight] = zeros(inputs[weight].shape(), DType::bf16);
  CHECK(hidden_off("nothing", "else") > 10 * row.limit);
  check_bits({"gpt2_fwd", "gpt2_fwdbwd"});
}

TEST_CASE("a step of GPT-2 takes AdamW's first step with every weight", "[bench]") {
  const GpuRow row = make_gpu_row("gpt2_step", true);
  std::vector<Tensor> inputs;
  for (const Input& input : row.inputs) inputs.push_back(make_input(input, cpu));
  const std::vector<Tensor> after = row.prepare({}, inputs).results();
  REQUIRE(after.size() == inputs.size() - 1);  // the loss for index and target
  CHECK(after.back().item<int64_t>() == 1);
  const size_t weights = (inputs.size() - 3) / 3;
  for (size_t k = 0; k < weights; k++) {
    INFO("weight " << k);
    REQUIRE(after[1 + k].dtype() == DType::f32);
    // From moments of 0 each element moves by the rate, or not where its gradient is 0.
    const Tensor step = abs(after[1 + k] - inputs[2 + k] * (1 - 1e-4));
    CHECK(step.max().item<double>() <= 1.01e-3);
    CHECK(step.max().item<double>() > 0.99e-3);
  }
  check_bits({"gpt2_step"});
}

TEST_CASE("a row is compiled with the memory budget that its name ends in", "[bench]") {
  const auto nodes = [](const std::string& name) {
    const GpuRow row = make_gpu_row(name, true);
    std::vector<Tensor> inputs;
    for (const Input& input : row.inputs) inputs.push_back(make_input(input, cpu));
    return row.prepare({}, inputs).graph().size();
  };
  const int as_it_comes = nodes("gpt2_fwdbwd");
  CHECK(nodes("gpt2_fwdbwd/budget=0.25") == as_it_comes);
  CHECK(nodes("gpt2_fwdbwd/budget=1") < as_it_comes);
  CHECK_THROWS_WITH(make_gpu_row("softmax/budget=all"),
                    Catch::Matchers::ContainsSubstring("a budget is one from 0 to 1"));
  CHECK_THROWS_WITH(nodes("softmax/budget=2"),
                    Catch::Matchers::ContainsSubstring("memory_budget is 2"));
}

TEST_CASE("ragged rows keep to 64 Mi elements and have the interpreter's bits", "[bench]") {
  const std::vector<std::string> names = gpu_ragged_names();
  CHECK(names.size() == 50);
  for (const std::string& name : names) {
    INFO(name);
    const Input x = make_gpu_row(name).inputs[0];
    CHECK(element_count(x.shape) <= int64_t{64} << 20);
    CHECK(element_count(x.shape) > int64_t{63} << 20);
  }
  CHECK(make_gpu_row("softmax/misaligned").bytes == make_gpu_row("softmax").bytes);
  CHECK(make_gpu_row("softmax/strided").bytes == 1.5 * make_gpu_row("softmax").bytes);
  CHECK(make_gpu_row("pointwise/strided").bytes == 1.75 * make_gpu_row("pointwise").bytes);
  check_bits({"softmax/7", "layernorm/1", "colsum/127", "bias_gelu_bf16/misaligned",
              "softmax/transposed", "colsum/strided", "pointwise/strided"});
}

TEST_CASE("operations are counted from the graph", "[bench]") {
  const Graph graph = parse_graph(
      "graph g(%0 a: f32[4,5], %1 b: f32[5,6]) {\n  %2: f32[4,6] = matmul %0, %1\n"
      "  %3: f32[4,6] = exp %2\n  %4: f32[4] = sum %3 {axes=[1]}\n  return %4\n}\n");
  CHECK(count_operations(graph) == 2 * 4 * 5 * 6 + 24 + 24);
}
