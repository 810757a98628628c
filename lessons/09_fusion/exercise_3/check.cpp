#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

std::string kernels_of(const Program& program) {
  std::string text;
  for (const Kernel& kernel : program.kernels) text += print(program, kernel);
  return text;
}

std::string becomes(const Graph& graph, size_t kernels) {
  const Program before = fuse(lower(graph)), got = exercise::launch_together(before);
  if (const std::string trouble = other_bits(graph, got); !trouble.empty()) return trouble;
  if (got.kernels.size() == kernels && got.launches.size() == kernels) return "";
  return str("before:\n", kernels_of(before), "yours:\n", kernels_of(got), "wanted: ", kernels,
             " kernels");
}

// A step of gradient descent over parameters of these shapes: p - 0.1 * g.
Graph descent(const std::vector<std::string>& shapes) {
  std::vector<std::string> inputs, results;
  std::string body;
  int id = 0;
  for (const std::string& shape : shapes) {
    inputs.push_back(str("%", id, " p", id, ": f32[", shape, "]"));
    inputs.push_back(str("%", id + 1, " g", id, ": f32[", shape, "]"));
    id += 2;
  }
  for (size_t k = 0; k < shapes.size(); k++, id += 4) {
    const std::string type = "f32[" + shapes[k] + "]";
    body += str("%", id, ": f32[] = constant {value=0.1}; %", id + 1, ": ", type, " = expand %",
                id, "; %", id + 2, ": ", type, " = mul %", 2 * k + 1, ", %", id + 1, "; %",
                id + 3, ": ", type, " = sub %", 2 * k, ", %", id + 2, ";");
    results.push_back(str("%", id + 3));
  }
  return graph_of(join(inputs, ", "), body + "return " + join(results, ", "));
}

}  // namespace

TEST_CASE("two parameters of one shape are updated by one kernel") {
  EXPECT(becomes(descent({"257", "257"}), 1));
}

TEST_CASE("parameters of two shapes stay two kernels") {
  EXPECT(becomes(descent({"257", "31"}), 2));
}

TEST_CASE("rows in another order stay apart") {
  EXPECT(becomes(descent({"31,17", "17,31"}), 2));
}

TEST_CASE("two reductions keep their registers") {
  EXPECT(becomes(graph_of("%0 x: f32[31,17], %1 y: f32[31,17]",
                          "%2: f32[31] = sum %0 {axes=[1]}; %3: f32[31] = max %1 {axes=[1]};"
                          "return %2, %3"),
                 1));
}

TEST_CASE("inner loops of one name stay two loops") {
  EXPECT(becomes(graph_of("%0 x: f32[31,17], %1 y: f32[31,5]",
                          "%2: f32[31] = sum %0 {axes=[1]}; %3: f32[31] = max %1 {axes=[1]};"
                          "return %2, %3"),
                 1));
}

TEST_CASE("a kernel that waits stays apart") {
  EXPECT(becomes(graph_of("%0 x: f32[17,16], %1 z: f32[17]",
                          "%2: f32[17] = max %0 {axes=[1]}; %3: f32[17] = flip %2 {axes=[0]};"
                          "%4: f32[17] = add %3, %1; return %4"),
                 2));
}

TEST_CASE("a kernel that waits by way of another stays apart") {
  EXPECT(becomes(graph_of("%0 x: f32[16,16], %1 w: f32[16,16], %2 z: f32[16,16]",
                          "%3: f32[16,16] = tanh %0; %4: f32[16,16] = matmul %3, %1;"
                          "%5: f32[16,16] = cumsum %4 {axis=0}; %6: f32[16,16] = permute %5 "
                          "{axes=[1,0]}; %7: f32[16,16] = mul %6, %2; return %7"),
                 4));
}

TEST_CASE("matmuls, scans and scatters stay alone") {
  EXPECT(becomes(graph_of("%0 x: f32[31,17], %1 y: f32[31,17]",
                          "%2: f32[31,17] = cumsum %0 {axis=1};"
                          "%3: f32[31] = max %1 {axes=[1]}; return %2, %3"),
                 2));
}

TEST_CASE("a kernel has at most twelve steps") {
  EXPECT(becomes(descent(std::vector<std::string>(25, "257")), 3));
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(other_bits_made(
      [](const Graph& graph) { return exercise::launch_together(fuse(lower(graph))); }));
}

TEST_CASE("a step over ten parameters is three launches") {
  const Graph graph =
      descent({"257,31", "257", "257,31", "257", "31", "31", "257,31", "257", "31", "257"});
  const Program program = run_pipeline(exercise::with_mine(), graph, true).program;
  EXPECT(other_bits(graph, program, 1));
  score("launches", static_cast<int64_t>(program.launches.size()), 3);
  CHECK(program.launches.size() == 3);
}
