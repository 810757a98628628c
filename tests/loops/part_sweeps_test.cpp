// Kernels whose sweeps become kernels of their own, bit for bit.
#include "tiny_compile/loops/part_sweeps.h"

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/loops/verify.h"
#include "tiny_compile/schedule/policy.h"

using namespace tiny_compile;

namespace {

Program fused(const Graph& graph) {
  return fuse(for_machine(lower(graph), default_machine(Target::Cuda)));
}

Program with_sweeps_apart(const Program& program) {
  Program result = program;
  result.kernels.clear();
  result.launches.clear();
  for (const Kernel& kernel : program.kernels) {
    const bool parts = can_part_sweeps(program, kernel);
    for (Kernel& part : parts ? part_sweeps(result, kernel) : std::vector{kernel}) {
      result.launches.push_back({static_cast<int>(result.kernels.size())});
      result.kernels.push_back(std::move(part));
    }
  }
  return result;
}

// Softmaxes, norms and what is stored beside them, along either axis of x.
std::vector<std::string> bodies(int64_t rows, int64_t columns, int axis) {
  const std::string all = str("[", rows, ",", columns, "]"),
                    one = axis == 0 ? str("[1,", columns, "]") : str("[", rows, ",1]"),
                    axes = str(" {axes=[", axis, "], keepdim=1}\n");
  const std::string softmax = "%1: f32" + one + " = max %0" + axes + "%2: f32" + all +
                              " = expand %1\n%3: f32" + all + " = sub %0, %2\n%4: f32" + all +
                              " = exp %3\n%5: f32" + one + " = sum %4" + axes + "%6: f32" +
                              all + " = expand %5\n%7: f32" + all + " = div %4, %6\n";
  return {"%1: f32" + all + " = abs %0\n%2: f32" + one + " = max %1" + axes + "%3: f32" + all +
              " = expand %2\n%4: f32" + all + " = div %0, %3\nreturn %4, %2\n",
          softmax + "return %7\n", softmax + "return %7, %5, %3\n"};
}

}  // namespace

TEST_CASE("sweeps as kernels of their own give the same bits", "[part_sweeps]") {
  for (const int axis : {0, 1}) {
    for (const auto& [rows, columns] :
         {std::pair{1, 1}, {7, 1001}, {1500, 3}, {1025, 9}, {0, 5}}) {
      if (rows == 0 && axis == 0) continue;  // a maximum of nothing
      for (const std::string& body : bodies(rows, columns, axis)) {
        const Graph graph =
            parse_graph(str("graph f(%0 x: f32[", rows, ",", columns, "]) {\n", body, "}"));
        const Program before = fused(graph), after = with_sweeps_apart(before);
        INFO(print(before) << print(after));
        verify(after);
        const std::vector<Tensor> inputs = random_inputs(graph, 11);
        const std::vector<Tensor> want = interpret(graph, inputs),
                                  got = interpret(after, inputs);
        for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(got[k], want[k]));
      }
    }
  }
}

TEST_CASE("on a GPU, columns that are swept once are read twice where they are long",
          "[part_sweeps][policy]") {
  const auto kernels = [](int64_t rows, int64_t columns, int body) {
    const Graph graph = parse_graph(str("graph f(%0 x: f32[", rows, ",", columns, "]) {\n",
                                        bodies(rows, columns, 0)[size_t(body)], "}"));
    const Program program = schedule(fused(graph));
    verify(program);
    return program.kernels.size();
  };
  CHECK(kernels(2048, 8192, 0) == 1);
  CHECK(kernels(3000, 8192, 0) > 1);
  CHECK(kernels(3000, 1024, 0) == 1);  // few elements
  CHECK(kernels(3000, 8192, 1) == 1);  // a softmax sweeps twice: it is held
}

TEST_CASE("parts are as few as their results need: short sweeps go together", "[part_sweeps]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[128,64,1024], %1 m: f32[128,96]) {
  %2: f32[128,1] = sum %1 {axes=[1], keepdim=1}
  %3: f32[128,96] = expand %2
  %4: f32[128,96] = sub %1, %3
  %5: f32[128,1] = max %4 {axes=[1], keepdim=1}
  %6: f32[128,1,1] = reshape %5
  %7: f32[128,64,1024] = expand %6
  %8: f32[128,64,1024] = mul %0, %7
  %9: f32[128,1,1] = sum %8 {axes=[1,2], keepdim=1}
  %10: f32[128,1,1] = max %8 {axes=[1,2], keepdim=1}
  %11: f32[128,1,1] = sub %9, %10
  %12: f32[128,64,1024] = expand %11
  %13: f32[128,64,1024] = sub %8, %12
  return %13, %2
})");
  Program program = fused(graph);
  REQUIRE(program.kernels.size() == 1);
  const std::vector<Kernel> parts = part_sweeps(program, program.kernels[0]);
  REQUIRE(parts.size() == 3);  // what m gives, both reductions of x, points
  const auto reductions = [](const Kernel& kernel) {
    return std::count_if(kernel.steps.begin(), kernel.steps.end(), makes_register);
  };
  CHECK(reductions(parts[0]) == 2);
  CHECK(reductions(parts[1]) == 2);
  CHECK(reductions(parts[2]) == 0);
  const Program after = with_sweeps_apart(fused(graph));
  verify(after);
  const std::vector<Tensor> inputs = random_inputs(graph, 5);
  const std::vector<Tensor> want = interpret(graph, inputs), got = interpret(after, inputs);
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(got[k], want[k]));
}

namespace {

// A softmax over the last axis.
std::string bodies_of(const std::string& all, const std::string& one) {
  return "%1: f32" + one + " = max %0 {axes=[2], keepdim=1}\n%2: f32" + all +
         " = expand %1\n%3: f32" + all + " = sub %0, %2\n%4: f32" + all + " = exp %3\n%5: f32" +
         one + " = sum %4 {axes=[2], keepdim=1}\n%6: f32" + all + " = expand %5\n%7: f32" +
         all + " = div %4, %6\nreturn %7\n";
}

// What a quantisation of columns becomes, where x lies transposed: along them.
size_t kernels_of_transposed(int64_t columns, int64_t rows) {
  const std::string all = str("[", rows, ",", columns, "]"), one = str("[1,", columns, "]");
  const Graph graph =
      parse_graph(str("graph f(%0 x: f32", all, " {strides=[1,", rows, "]}) {\n%1: f32", all,
                      " = abs %0\n%2: f32", one, " = max %1 {axes=[0], keepdim=1}\n%3: f32",
                      all, " = expand %2\n%4: f32", all, " = div %0, %3\nreturn %4\n}"));
  const Program program = schedule(fused(graph));
  verify(program);
  return program.kernels.size();
}

}  // namespace

TEST_CASE("what is one part is not taken apart", "[part_sweeps][policy]") {
  const auto is_taken = [](const std::string& graph) {
    const Program program = fused(parse_graph(graph));
    REQUIRE(program.kernels.size() == 1);
    CHECK(schedule(program).kernels.size() >= 1);  // and ends
    return can_part_sweeps(program, program.kernels[0]);
  };
  // Short loops, though each needs the last's result; results of one row, none of which needs another's.
  CHECK(!is_taken("graph f(%0 x: f32[64,8192,600] {strides=[4915200,600,1]}) {\n" +
                  bodies_of("[64,8192,600]", "[64,8192,1]") + "}"));
  CHECK(!is_taken(R"(graph f(%0 x: f32[128,65536]) {
  %1: f32[128] = sum %0 {axes=[1]}
  %2: f32[128] = max %0 {axes=[1]}
  %3: f32[128] = min %0 {axes=[1]}
  return %1, %2, %3
})"));
}

TEST_CASE("on a GPU, what reads rows and stores columns does so by tiles where it is long",
          "[part_sweeps][policy]") {
  CHECK(kernels_of_transposed(1000, 140416) == 2);
  CHECK(kernels_of_transposed(1000, 1000) == 1);
}
