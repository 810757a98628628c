// Long reductions in two kernels, bit for bit; axes that step together become one.
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/axes.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/loops/verify.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

Program fused(const std::string& graph) { return fuse(lower(parse_graph(graph))); }
bool splits(const Program& program) { return can_split(program, program.kernels[0]); }

}  // namespace

TEST_CASE("axes that always step together become one", "[split]") {
  const Program program = fused(R"(graph f(%0 x: f32[8,4,2]) {
    %1: f32[8,4,2] = exp %0
    return %1
  })");
  REQUIRE(print(program, collapse_axes(program.kernels[0])) == R"(  kernel exp_1 rows(i0: 64) {
    store y1[i0] = exp(load x[i0])
  }
)");
}

TEST_CASE("an axis that one access lacks keeps its loop", "[split]") {
  const Program program = fused(R"(graph f(%0 x: f32[8,4,2], %1 y: f32[2]) {
    %2: f32[8,4,2] = expand %1
    %3: f32[8,4,2] = add %0, %2
    return %3
  })");
  REQUIRE(print(program, collapse_axes(program.kernels[0])) ==
          R"(  kernel add_3 rows(i0: 32, i1: 2) {
    store y3[i0*2 + i1] = add(load x[i0*2 + i1], load y[i1])
  }
)");
}

TEST_CASE("a reduction over two axes in storage order is one loop, else two", "[split]") {
  const Program in_order =
      fused("graph f(%0 x: f32[8,4,2]) {\n%1: f32[8] = sum %0 {axes=[1,2]}\nreturn %1\n}");
  REQUIRE(collapse_axes(in_order.kernels[0]).axes.size() == 2);
  const Program crossed =
      fused("graph f(%0 x: f32[8,4,2]) {\n%1: f32[8] = sum %0 {axes=[2,1]}\nreturn %1\n}");
  REQUIRE(collapse_axes(crossed.kernels[0]).axes.size() == 3);
}

TEST_CASE("what is the same in any order goes in memory's", "[split]") {
  const auto of = [](const std::string& dtype, const std::string& op) {
    return parse_program("program f {\n  input x: " + dtype + "[70,30]\n  output y: " +
                         (op == "argmax" ? "i64" : dtype) + "[1]\n  kernel k rows(i0: 1) {\n" +
                         "    r0: " + (op == "argmax" ? "i64" : dtype) + " = " + op +
                         "(j0: 30, j1: 70) load x[j0 + j1*30]\n" +
                         "    store y[0] = r0\n  }\n  launch k\n  return y\n}\n");
  };
  const auto loops_of = [](const Kernel& kernel) {
    const Kernel ordered = collapse_axes(order_loops(kernel));
    return static_cast<int>(ordered.axes.size()) - ordered.rows;
  };
  for (const char* op : {"max", "min"}) CHECK(loops_of(of("f32", op).kernels[0]) == 1);
  CHECK(loops_of(of("i64", "sum").kernels[0]) == 1);
  CHECK(loops_of(of("f32", "sum").kernels[0]) == 2);  // the contract's order
  CHECK(loops_of(of("f32", "argmax").kernels[0]) == 2);
  CHECK(loops_of(of("f32", "cumsum").kernels[0]) == 2);  // a scan's total

  // A sum shares the loops with the largest, so both keep its order.
  Program both = of("f32", "sum");
  Step largest = both.kernels[0].steps[0];
  largest.op = Op::max;
  both.kernels[0].steps.insert(both.kernels[0].steps.begin() + 1, largest);
  CHECK(order_loops(both.kernels[0]) == both.kernels[0]);

  for (const int64_t count : {1, 7, 1001}) {
    const Tensor x = randn({count, 300});
    const auto f = [](std::span<const Tensor> in) {
      const Tensor all = in[0].transpose(0, 1);
      return std::vector<Tensor>{all.abs().max(), all.to(DType::i32).sum()};
    };
    const Graph graph = trace(f, std::vector<Tensor>{x}, "f").graph;
    for (const Target target : {Target::Cpp, Target::Cuda}) {
      const Program program =
          run_pipeline(until(default_pipeline(), "schedule"), graph, true, target).program;
      const std::vector<Tensor> inputs = {x}, want = interpret(graph, inputs),
                                got = interpret(program, inputs);
      for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
    }
  }
}

TEST_CASE("a split sum is chunks of 1024 and then their results", "[split]") {
  Program program = fused(
      "graph f(%0 x: f32[20000]) {\n%1: f32[] = sum %0 {axes=[0]}\n"
      "return %1\n}");
  REQUIRE(splits(program));
  const Kernel whole = program.kernels[0];
  const std::vector<Kernel> kernels = split_reduction(program, whole);
  REQUIRE(kernels.size() == 2);
  REQUIRE(print(program, kernels[0]) == R"(  kernel sum_1 rows(i0: 20) {
    $2 = lt(index[i0*1024 + j0], i64 20000)
    r0: f32 = sum(j0: 1024) where($2, load x[i0*1024 + j0] if $2 else 0.0, f32 -0.0)
    store p2_sum_1[i0] = r0
  }
)");
  REQUIRE(print(program, kernels[1]) == R"(  kernel sum_1_finish rows() {
    r0: f32 = sum(j0: 20) load p2_sum_1[j0]
    store y1[0] = r0
  }
)");
}

TEST_CASE("what ragged chunks would store is stored apart", "[split]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[3,20011]) {
    %1: f32[3,20011] = exp %0
    %2: f32[] = sum %1 {axes=[0,1]}
    return %1, %2
  })");
  Program program = fuse(lower(graph));
  REQUIRE(program.kernels.size() == 1);
  REQUIRE(splits(program));
  const Program done = schedule(program);
  REQUIRE(done.kernels.size() == 3);
  REQUIRE(done.kernels[2].steps.size() == 1);
  REQUIRE(print(done, done.kernels[2]).find("store y1[i0] = exp(load x[i0])\n") !=
          std::string::npos);
  verify(done);
  const std::vector<Tensor> inputs = random_inputs(graph, 7);
  for (size_t k = 0; k < 2; k++)
    REQUIRE(same_bits(interpret(graph, inputs)[k], interpret(done, inputs)[k]));
}

TEST_CASE("what cannot be split is left whole", "[split]") {
  for (const char* body : {"%1: f32[] = sum %0 {axes=[0,1]}\nreturn %1",        // short
                           "%1: f32[64] = sum %0 {axes=[1]}\nreturn %1",        // many rows
                           "%1: i64[] = argmax %0 {axes=[0,1]}\nreturn %1"}) {  // short
    INFO(body);
    REQUIRE(!splits(fused(str("graph f(%0 x: f32[64,100]) {\n", body, "\n}"))));
  }
}

TEST_CASE("a split reduction keeps every bit, whatever op, dtype and length", "[split]") {
  for (const std::string op : {"sum", "prod", "max", "min", "sum_exp", "argmax", "argmin"}) {
    for (const std::string dtype : {"f32", "f64", "bf16", "f16", "i32", "i8"}) {
      const bool is_integer = dtype[0] == 'i', widens = op == "sum" || op == "prod",
                 is_place = op.substr(0, 3) == "arg";
      if (op == "sum_exp" && is_integer) continue;
      for (int count : {16384, 17000, 40001}) {
        const std::string result = is_place || (is_integer && widens) ? "i64" : dtype;
        const Graph graph = parse_graph(
            str("graph f(%0 x: ", dtype, "[2,", count, "]) {\n%1: ", result, "[2] = ", op,
                " %0 {axes=[1]}\n%2: ", result, "[2] = neg %1\n", "return %2\n}"));
        INFO(print(graph));
        const Program program = schedule(fuse(lower(graph)));
        REQUIRE(program.kernels.size() == 2);
        verify(program);
        const std::vector<Tensor> inputs = random_inputs(graph, 7);
        REQUIRE(same_bits(interpret(graph, inputs)[0], interpret(program, inputs)[0]));
      }
    }
  }
}

TEST_CASE("chunks have their largest beside a sum of exponentials, or a place", "[split]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const struct {
    const char* name;
    std::vector<std::pair<int, float>> at;
  } rows[] = {{"numbers", {}},
              {"two of the largest", {{1500, 9}, {3000, 9}, {49999, 9}}},
              {"NaN behind the largest", {{1500, 99}, {3000, nan}, {4500, nan}}},
              {"infinities", {{1023, inf}, {1024, -inf}, {16383, inf}}},
              {"zeros of both signs in the last chunk", {{49152, -0.0f}, {49153, 0.0f}}},
              {"far below", {{5, -1e30f}, {49999, 88.5f}}}};
  for (const char* op : {"sum_exp", "argmax", "argmin"}) {
    const std::string result = std::string(op) == "sum_exp" ? "f32" : "i64";
    for (const std::string columns : {"", ",3"}) {
      const int width = columns.empty() ? 1 : 3;
      const Graph graph = parse_graph(str(
          "graph f(%0 x: f32[50000", columns, "]) {\n%1: ", result, "[",
          columns.substr(columns.empty() ? 0 : 1), "] = ", op, " %0 {axes=[0]}\nreturn %1\n}"));
      for (Target target : {Target::Cpp, Target::Cuda}) {
        const Program program =
            schedule(for_machine(fuse(lower(graph)), default_machine(target)));
        for (const auto& row : rows) {
          const std::vector<Tensor> inputs = random_inputs(graph, 5);
          float* const values = inputs[0].data<float>();
          for (int k = 0; k < 50000 * width; k++)
            values[k] = static_cast<float>(k * 2654435761u % 4096) / 1024 - 2;
          for (const auto& [place, value] : row.at) values[place * width] = value;
          INFO(op << " of " << row.name << print(program));
          REQUIRE(same_bits(interpret(graph, inputs)[0], interpret(program, inputs)[0]));
        }
        if (columns.empty() || target == Target::Cuda) REQUIRE(program.kernels.size() == 2);
      }
    }
  }
}

TEST_CASE("a chunk's largest is found once, though two results want it", "[split]") {
  const Graph graph = parse_graph(
      "graph f(%0 x: f32[9000,500]) {\n  %1: f32[500] = sum_exp %0 {axes=[0]}\n"
      "  %2: f32[500] = max %0 {axes=[0]}\n  return %1, %2\n}\n");
  const Program program =
      schedule(for_machine(fuse(lower(graph)), default_machine(Target::Cuda)));
  INFO(print(program));
  REQUIRE(program.kernels.size() >= 2);
  const std::vector<Step>& steps = program.kernels[0].steps;
  const auto is = [](Op op) {
    return [op](const Step& s) { return s.kind == StepKind::Reduce && s.op == op; };
  };
  CHECK(std::count_if(steps.begin(), steps.end(), is(Op::max)) == 1);
  CHECK(std::count_if(steps.begin(), steps.end(), is(Op::sum_exp)) == 1);
  const std::vector<Tensor> inputs = random_inputs(graph, 3), wanted = interpret(graph, inputs),
                            got = interpret(program, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(wanted[k], got[k]));
}

TEST_CASE("for a GPU, more than 1024 chunks are taken together until few are left", "[split]") {
  const Graph graph =
      parse_graph("graph f(%0 x: f32[1100000]) {\n%1: f32[] = sum %0 {axes=[0]}\nreturn %1\n}");
  Program program = fuse(lower(graph));
  for (Target target : {Target::Cpp, Target::Cuda}) {
    program = for_machine(std::move(program), default_machine(target));
    const Program scheduled = schedule(program);
    CHECK(parse_program(print(scheduled)) == scheduled);
    const Kernel& finish = scheduled.kernels[1];
    CHECK(inner_count(finish, finish.steps[0]).constant() ==
          (target == Target::Cpp ? 1075 : 1024));
    const std::vector<Tensor> inputs = random_inputs(graph, 3);
    CHECK(same_bits(interpret(scheduled, inputs)[0], interpret(graph, inputs)[0]));
  }
}

TEST_CASE("for a GPU results of very many chunks are chunks again", "[split]") {
  const Graph graph = parse_graph(
      "graph f(%0 x: f32[1,17901]) {\n%1: f32[1001,17901] = expand %0\n"
      "%2: f32[] = sum %1 {axes=[0,1]}\nreturn %2\n}");
  const Program scheduled =
      schedule(for_machine(fuse(lower(graph)), default_machine(Target::Cuda)));
  const Kernel& finish = scheduled.kernels[1];
  CHECK(inner_count(finish, finish.steps[0]).constant() == 2048);
  const std::vector<Tensor> inputs = random_inputs(graph, 3);
  CHECK(same_bits(interpret(scheduled, inputs)[0], interpret(graph, inputs)[0]));
}

TEST_CASE("for a GPU, columns are split from four chunks, while they do not fill it",
          "[split]") {
  const auto splits_down = [](int64_t length, int64_t columns) {
    const Program program =
        fused(str("graph f(%0 x: f32[", length, ",", columns, "]) {\n%1: f32[", columns,
                  "] = sum %0 {axes=[0]}\nreturn %1\n}"));
    return splits(for_machine(program, default_machine(Target::Cuda)));
  };
  CHECK(splits_down(4096, 1000));
  CHECK(splits_down(4096, 1001));
  CHECK_FALSE(splits_down(4095, 1000));
  CHECK_FALSE(splits_down(4096, 1000000));
}

TEST_CASE("for a CPU, whole chunks of columns are split while cores have none", "[split]") {
  const auto splits_down = [](int64_t length, int64_t columns, int64_t cores) {
    const Program program =
        fused(str("graph f(%0 x: f32[", length, ",", columns, "]) {\n%1: f32[", columns,
                  "] = sum %0 {axes=[0]}\nreturn %1\n}"));
    Machine machine = default_machine(Target::Cpp);
    machine.name = "mine", machine.cores = cores;
    return splits(for_machine(program, machine));
  };
  CHECK(splits_down(4096, 32, 2));
  CHECK(splits_down(12288, 480, 16));
  CHECK_FALSE(splits_down(4097, 32, 16));  // a part of a chunk is slow
  CHECK_FALSE(splits_down(4096, 481, 16));
  CHECK_FALSE(splits_down(4096, 32, 1));
}

TEST_CASE("what is split of a strided input stays in its buffer, whatever divides a chunk",
          "[split]") {
  for (const char* text :
       {"graph f(%0 x: f32[143,33,16]) {\n%1: f32[143,32,16] = slice %0 {axis=1, start=0, "
        "step=1, stop=32}\n%2: f32[] = sum %1 {axes=[0,1,2]}\nreturn %2\n}",
        "graph f(%0 x: f32[603,33,3]) {\n%1: f32[603,32,3] = slice %0 {axis=1, start=0, "
        "step=1, stop=32}\n%2: f32[3] = sum %1 {axes=[0,1]}\nreturn %2\n}"}) {
    const Graph graph = parse_graph(text);
    const std::vector<Tensor> inputs = random_inputs(graph, 5);
    for (Target target : {Target::Cpp, Target::Cuda}) {
      const Program program = for_machine(fuse(lower(graph)), default_machine(target));
      const Program scheduled = schedule(program);
      verify(scheduled);
      CHECK(scheduled.kernels.size() == 2);
      CHECK(same_bits(interpret(scheduled, inputs)[0], interpret(graph, inputs)[0]));
    }
  }
}
