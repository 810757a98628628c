// Equal kernels are one function of the C++ source, called with each one's own buffers; a long
// source is several units that are compiled side by side.
#include "tiny_compile/codegen/functions.h"

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// x = exp(x) @ w, n times, each w an input of its own.
Graph layers(int n) {
  std::string inputs = "%0 x: f32[16,16]", body;
  for (int k = 1; k <= n; k++) {
    const int before = k == 1 ? 0 : n + 2 * k - 2, next = n + 2 * k - 1;
    inputs += str(", %", k, " w", k, ": f32[16,16]");
    body += str("  %", next, ": f32[16,16] = exp %", before, "\n  %", next + 1,
                ": f32[16,16] = matmul %", next, ", %", k, "\n");
  }
  return parse_graph(str("graph g(", inputs, ") {\n", body, "  return %", 3 * n, "\n}\n"));
}

Staged staged(const Graph& graph) { return run_pipeline(default_pipeline(), graph, true); }

std::set<std::string> functions_of(const Source& source) {
  std::set<std::string> names;
  for (const KernelEntry& entry : source.kernels) names.insert(entry.function);
  return names;
}

std::vector<Tensor> run(const Staged& compiled, int units, const std::vector<Tensor>& inputs) {
  return Executable(compiled.program, compiled.source,
                    build_cpp(compiled.source.text, default_toolchain(), units))
      .run(inputs);
}

// n results of 40 functions each, at places that `at` chooses.
Graph chosen(int n) {
  std::string body, returned;
  for (int k = 0, id = 2; k < n; k++, id++) {
    const std::string type = str("f32[", 40 + k, "] = ");
    body += str("  %", id, ": i64[", 40 + k, "] = slice %1 {axis=0, start=0, stop=", 40 + k,
                ", step=1}\n");
    body += str("  %", id + 1, ": ", type, "gather %0, %", id, " {axis=0}\n");
    for (id++; id % 43 != 1; id++) body += str("  %", id + 1, ": ", type, "tanh %", id, "\n");
    returned += str(k ? ", %" : "%", id);
  }
  return parse_graph("graph g(%0 x: f32[5], %1 at: i64[64]) {\n" + body + "  return " +
                     returned + "\n}\n");
}

}  // namespace

TEST_CASE("twelve layers are as many functions as three", "[functions]") {
  const Graph twelve = layers(12);
  const Staged three = staged(layers(3)), all = staged(twelve);
  REQUIRE(all.source.kernels.size() == three.source.kernels.size() + 9);
  CHECK(functions_of(all.source).size() == functions_of(three.source).size());
  CHECK(all.source.text.size() < three.source.text.size() + 1000);
  const std::vector<Tensor> inputs = random_inputs(twelve, 3);
  CHECK(same_bits(run(all, 1, inputs)[0], interpret(twelve, inputs)[0]));
}

TEST_CASE("programs emitted together share the kernels that are the same", "[functions]") {
  const Program three = staged(layers(3)).program, twelve = staged(layers(12)).program;
  const std::vector<Source> sources =
      emit_cpp_together(lower_all_to_tiles(std::vector{three, twelve}));
  CHECK(sources[0].text == sources[1].text);
  CHECK(functions_of(sources[1]) == functions_of(sources[0]));
}

TEST_CASE("kernels a.b and a_b are two functions", "[functions]") {
  const Graph graph = parse_graph(
      "graph g(%0 x: f32[4]) {\n  %1: f32[4] = tanh %0\n  %2: f32[4] = exp %0\n"
      "  return %1, %2\n}\n");
  Program program = run_pipeline(until(default_pipeline(), "lower"), graph, true).program;
  program.kernels[0].name = "a.b", program.kernels[1].name = "a_b";
  CHECK(functions_of(emit_cpp(lower_to_tiles(program))).size() == 2);
}

TEST_CASE("a long source is several units, which linked are the same library", "[functions]") {
  const tests::Setting no_cache("TC_CACHE_DIR", "/dev/null");
  const Graph graph = chosen(24);
  const Staged compiled = staged(graph);
  REQUIRE(compiled.source.units > 1);
  std::vector<Tensor> inputs = random_inputs(graph, 3);
  inputs[1] = remainder(inputs[1], 5).to(DType::i64);
  const std::vector<Tensor> want = interpret(graph, inputs);
  for (int units : {1, compiled.source.units}) {
    const std::vector<Tensor> got = run(compiled, units, inputs);
    for (size_t k = 0; k < want.size(); k++) REQUIRE(same_bits(got[k], want[k]));
  }
  inputs[1] = inputs[1] + 5;  // every unit's kernels tell it
  CHECK_THROWS_WITH(run(compiled, compiled.source.units, inputs), ContainsSubstring("range"));
}

TEST_CASE("a short source is one unit", "[functions]") {
  const Staged compiled = staged(layers(1));
  CHECK(compiled.source.units == 1);
  CHECK(compiled.source.text.find("TC_UNIT") == std::string::npos);
}
