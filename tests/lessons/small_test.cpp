// The small compiler (lessons/small) has the real one's bits after every step, and tells whoever
// gives it what is wrong.
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <random>

#include "lessons/small/16_matmul.h"
#include "lessons/small/program.h"
#include "lessons/small/random.h"
#include "lessons/small/real.h"
#include "tests/catch.h"
#include "tests/lessons/small_threads.h"
#include "tiny_compile/graph/interpreter.h"

namespace {

using namespace small;
using Catch::Matchers::ContainsSubstring;

std::vector<Array> real_results(const Graph& graph, const std::vector<Array>& inputs) {
  return numbers_of(tiny_compile::interpret(tiny_compile::parse_graph(real_text(graph)),
                                            real_tensors(graph, inputs)));
}

void require_real_bits(const Graph& graph, const std::vector<Array>& inputs) {
  INFO(print(graph));
  const std::vector<Array> wanted = real_results(graph, inputs);
  const auto require = [&](const char* step, const std::vector<Array>& got) {
    INFO(step);
    for (size_t k = 0; k < wanted.size(); k++) {
      INFO("result " << k);
      REQUIRE(same(got[k], wanted[k]));
    }
  };
  require("interpreter", interpret(graph, inputs));
  const auto require_plan = [&](const char* step, const Plan& plan) {
    INFO(text_of(plan));
    require(step, Executable(plan, false)(inputs));
  };
  const auto require_on_gpu = [&](const char* step, const Plan& plan) {
    if (!tiny_compile::why_no_gpu().empty()) return;
    INFO("on a GPU\n" << text_of(plan));
    require(step, Executable(plan, true)(inputs));
  };
  require_plan("03", loop_per_op(graph, false));
  require_on_gpu("03", loop_per_op(graph, true));
  require_plan("08", row_by_row(unfused(graph), false));
  require_on_gpu("08", row_by_row(unfused(graph), true));
  const Program fused = fuse(cse_dce(graph));
  require_plan("09", row_by_row(fused, false));
  require_on_gpu("09", row_by_row(fused, true));
  require_plan("10", in_cpp(fused));
  const auto require_threads = [&](const char* step, const Plan& plan) {
    INFO(text_of(plan));
    require(step, run_threads(plan, inputs));
    require_on_gpu(step, plan);
  };
  require_threads("11", in_cuda(fused));
  require_threads("12", in_layouts(fused));
  require_plan("13", with_arena(in_cpp(fused)));
  require_plan("16", with_arena(in_tiles(fused, false)));
  require_threads("16", in_tiles(fused, true));
  require_on_gpu("13", with_arena(in_tiles(fused, true)));
}

std::string message_of(const std::function<void()>& wrong) {
  try {
    wrong();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("small: a graph is its text", "[small]") {
  const Graph long_row =
      trace([](const Tensors& in) { return Tensors{exp(in[0])}; }, {{5000000000}});
  REQUIRE(print(parse(print(long_row))) == print(long_row));
  for (unsigned seed = 0; seed < 200; seed++) {
    const Graph graph = Random(seed).graph(30);
    REQUIRE(print(parse(print(graph))) == print(graph));
    REQUIRE_NOTHROW(tiny_compile::parse_graph(real_text(graph)));
  }
}

TEST_CASE("small: the program and random graphs have the real compiler's bits", "[small]") {
  const Graph block = trace(program, program_inputs({13, 8, 11}));
  require_real_bits(block, numbers_for(block, 1));
  for (unsigned seed = 0; seed < 4; seed++)
    require_real_bits(Random(seed).graph(40), numbers_for(Random(seed).graph(40), seed));
}

namespace {

// The first random graph, of some hundred, to which the pass gives other bits; -1 where it keeps
// all of them.
int first_changed(const std::function<Graph(const Graph&)>& pass) {
  for (int seed = 0; seed < 300; seed++) {
    const Graph graph = Random(static_cast<unsigned>(seed), 5).graph(25);
    const Graph passed = pass(graph);
    verify(passed);
    const std::vector<Array> inputs = numbers_for(graph, 5), wanted = interpret(graph, inputs),
                             got = interpret(passed, inputs);
    if (!std::equal(wanted.begin(), wanted.end(), got.begin(), got.end(), same)) return seed;
  }
  return -1;
}

int64_t operations(const Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const Node& node) { return node.op != Op::Input; });
}

}  // namespace

TEST_CASE("small: rewrites keep every bit, and an unsound one does not", "[small]") {
  CHECK(first_changed([](const Graph& graph) { return rewrite(graph); }) == -1);
  const auto with = [](Rule rule) {
    std::vector<Rule> rules = sound_rules();
    rules.push_back(std::move(rule));
    return first_changed([rules](const Graph& graph) { return rewrite(graph, rules); });
  };
  CHECK(with([](const Graph& graph, const Node& node) -> Replacement {
          if (node.op != Op::Log || graph[node.inputs[0]].op != Op::Exp) return {};
          return as(node, graph[node.inputs[0]].inputs[0]);  // log exp x => x
        }) >= 0);

  const Graph graph = trace(
      [](const Tensors& in) {
        const Tensor x = in[0], transposed = permute(permute(x, {1, 0}), {1, 0});
        return Tensors{x * 1, 1 * x, x / 1, x + -0.0, x - 0, -(-x), transposed, detach(x)};
      },
      {{3, 3}});
  CHECK(operations(cse_dce(rewrite(graph))) == 0);
  const Graph wrong = trace([](const Tensors& in) { return Tensors{in[0] + 0}; }, {{1}});
  CHECK(operations(rewrite(wrong)) == 2);  // of -0 it is +0
  const Graph half =
      trace([](const Tensors& in) { return Tensors{in[0] * exp(log(0.5 + in[0]))}; }, {{2, 2}});
  CHECK(print(rewrite(half)) == print(half));
}

TEST_CASE("small: equal nodes become one, and dead ones none", "[small]") {
  CHECK(first_changed(cse_dce) == -1);
  const Graph graph = trace(
      [](const Tensors& in) {
        exp(in[1]);  // dead
        return Tensors{exp(in[0]) + exp(in[0]), exp(in[0])};
      },
      {{3}, {3}});
  const Graph clean = cse_dce(graph);
  CHECK(operations(clean) == 2);
  CHECK(clean.nodes[1].op == Op::Input);
  const Graph zeros = trace(
      [](const Tensors& in) {
        return Tensors{in[0] * 0.0, in[0] * -0.0};
      },
      {{3}});
  CHECK(operations(cse_dce(zeros)) == 4);  // 0 and -0 are two constants
  const Graph block = trace(program, program_inputs({13, 8, 11}));
  CHECK(operations(cse_dce(rewrite(block))) < operations(block) - 5);
  require_real_bits(cse_dce(rewrite(block)), numbers_for(block, 1));
}

TEST_CASE("small: gradients are the slopes, with the real compiler's bits", "[small]") {
  const Graph block = trace(program, program_inputs({7, 8, 5}));
  const Ids by = {0, 2, 3, 4, 5, 6, 7, 8};
  const Graph both = with_gradients(block, by), better = cse_dce(rewrite(both));
  std::mt19937 engine(1);
  std::vector<Array> inputs;
  for (const Shape& shape : program_inputs({7, 8, 5})) {
    inputs.emplace_back(count(shape));
    for (float& each : inputs.back()) each = static_cast<float>(engine()) * 0x1p-32f - 0.5f;
  }
  require_real_bits(better, inputs);
  const std::vector<Array> results = interpret(better, inputs);
  REQUIRE(same(results[3], interpret(both, inputs)[3]));
  for (size_t k = 0; k < by.size(); k++) {
    for (const size_t at : {size_t{0}, inputs[by[k]].size() - 1}) {
      const auto loss_at = [&](float step) {
        std::vector<Array> moved = inputs;
        moved[by[k]][at] += step;
        return interpret(block, moved)[0][0];
      };
      const float slope = (loss_at(0x1p-7f) - loss_at(-0x1p-7f)) * 0x1p6f;
      INFO("input " << by[k] << ", element " << at);
      CHECK(results[k + 1][at] == Catch::Approx(slope).epsilon(1e-3).margin(3e-5));
    }
  }
  const Node& last = both.nodes.back();
  CHECK(std::string(last.where.file).ends_with("program.h"));

  const auto told = [](const Function& loss) {
    return message_of([&] { with_gradients(trace(loss, {{2, 2}, {2, 2}}), {0}); });
  };
  CHECK_THAT(told([](const Tensors& in) {
               return Tensors{max(in[0], {0, 1})};
             }),
             ContainsSubstring("small_test.cpp") && ContainsSubstring("max has no derivative"));
  CHECK_THAT(told([](const Tensors& in) { return Tensors{in[0] * 2}; }),
             ContainsSubstring("a loss is one number, not [2,2]"));
  CHECK_THAT(told([](const Tensors&) { return Tensors{}; }),
             ContainsSubstring("returns nothing"));
  CHECK(told([](const Tensors& in) {
          return Tensors{sum(in[0] * in[0] - max(in[1], {0, 1}), {0, 1})};
        }) == "no error");  // the gradient of in[0] alone
  CHECK(told([](const Tensors& in) {
          return Tensors{sum(in[0] - max(detach(in[0]), {0, 1}), {0, 1})};
        }) == "no error");
  const Graph nothing =
      trace([](const Tensors& in) { return Tensors{sum(in[0], {0})}; }, {{3}, {2}});
  CHECK(interpret(with_gradients(nothing, {0, 1}), {{1, 2, 3}, {4, 5}})[2] == Array{0, 0});
}

namespace {

// A loop's bits, and some more, dealt out to random levels.
Layout random_layout(Random& random, int64_t size, bool has_grid, int64_t& lanes,
                     int64_t& warps, int64_t covered) {
  Layout layout;
  int64_t stride = 1, registers = 16;
  if (const int64_t width = int64_t{1} << random.below(4); size % width == 0 && width > 1) {
    layout = {{Vector, width}};
    stride = width, registers /= width;
  }
  while (stride < covered || layout.empty() || random.below(3) == 0) {
    const auto level = std::array{Warp, Lane, Register, Serial}[random.below(4)];
    int64_t& left = level == Lane ? lanes : level == Warp ? warps : registers;
    const int64_t extent = int64_t{1} << random.below(4);
    if (extent > left && level != Serial) continue;
    if (level != Serial) left /= extent;
    layout.insert(layout.begin(), {level, extent});
    stride *= extent;
  }
  if (has_grid) layout.insert(layout.begin(), {Grid, 1});
  return size == 1 ? Layout{{Serial, 1}} : layout;
}

Schedule random_schedule(Random& random, const Kernel& kernel) {
  for (;;) {
    int64_t lanes = 32, warps = 4;
    Schedule schedule;
    for (size_t d = 0; d < kernel.sizes.size(); d++) {
      const bool is_k = d + 1 == kernel.sizes.size(),
                 has_grid = is_k ? kernel.in_chunks : random.below(2) == 0;
      const int64_t covered = is_k && has_grid ? 1024 : has_grid ? 1 : kernel.sizes[d];
      schedule.push_back(
          random_layout(random, kernel.sizes[d], has_grid, lanes, warps, covered));
    }
    if (is_product(kernel)) schedule.back() = {{Serial, 1}};
    if (why_illegal(schedule, kernel).empty()) return schedule;
  }
}

// How many layouts were tried until one gave other bits, or all.
int64_t try_layouts(unsigned seed) {
  Random random(seed, 5);
  const Graph graph = cse_dce(random.graph(20));
  const std::vector<Array> inputs = numbers_for(graph, seed);
  const Program program = split(fuse(graph));
  const auto add = [&](Plan& plan, const Formulas& f) {
    add_reduced(plan, f, random_schedule(random, f.kernel));
  };
  const Plan plan = plan_of(program, add, kHalves);
  INFO("seed " << seed << "\n" << print(graph) << text_of(plan));
  const std::vector<Array> wanted = interpret(graph, inputs), got = run_threads(plan, inputs);
  for (size_t k = 0; k < wanted.size(); k++) REQUIRE(same(got[k], wanted[k]));
  if (tiny_compile::why_no_gpu().empty()) {
    const std::vector<Array> there = Executable(plan, true)(inputs);
    for (size_t k = 0; k < wanted.size(); k++) REQUIRE(same(there[k], wanted[k]));
  }
  return std::ssize(program.kernels);
}

}  // namespace

TEST_CASE("small: each legal layout gives the same bits", "[small]") {
  int64_t layouts = 0;
  for (unsigned seed = 0; seed < 8; seed++) layouts += try_layouts(seed);
  CHECK(layouts > 20);
}

TEST_CASE("small: odd graphs have the real compiler's bits", "[small]") {
  const auto check = [](const Function& function, const std::vector<Shape>& shapes) {
    const Graph graph = trace(function, shapes);
    require_real_bits(graph, numbers_for(graph, 2));
  };
  check([](const Tensors& in) { return Tensors{sum(reshape(in[0], {}), {})}; }, {{1}});
  check([](const Tensors& in) { return Tensors{in[0], max(in[0], {0, 1})}; }, {{1, 1}});
  check(
      [](const Tensors& in) {
        exp(in[0]);  // dead: nobody has removed it
        return Tensors{in[0] + 1};
      },
      {{4, 3}});
  Shape many(30, 1);
  many[28] = 4, many[29] = 3;
  check([&](const Tensors& in) { return Tensors{sum(reshape(in[0], many), {29})}; }, {{12}});
  check(  // neither operand of the first depends on k, one of the second, which is stored, too
      [](const Tensors& in) {
        const Tensor row = expand(log(in[1]), {7, 5}), column = expand(in[0], {9, 7});
        return Tensors{matmul(column, row), matmul(permute(in[1], {1, 0}), log(in[1])),
                       log(in[1])};
      },
      {{9, 1}, {1, 5}});
}

TEST_CASE("small: what is too much for one kernel is not one", "[small]") {
  // Chunks of chunks: a million of them are no second kernel's.
  const Graph long_row =
      trace([](const Tensors& in) { return Tensors{sum(in[0], {0})}; }, {{(1 << 30) + 1}});
  CHECK(in_layouts(fuse(long_row)).launches.size() == 4);
  const Graph many_sums = trace(
      [](const Tensors& in) {
        Tensors sums;
        for (int k = 0; k < 40; k++) sums.push_back(sum(in[0] * (k + 2.0), {1}));
        return sums;
      },
      {{4, 2048}});
  for (const Launch& launch : in_layouts(fuse(many_sums)).launches)
    CHECK(launch.arrays.size() <= 64);
  const Graph much_kept = trace(
      [](const Tensors& in) {
        Tensor sums = sum(in[0], {1}), all = in[0];
        for (int k = 0; k < 12; k++) sums = sums + sum(exp(in[0] * (k + 2.0)), {1});
        for (int k = 0; k < 12; k++) all = all + exp(in[0] * (k + 2.0)) * sums;
        return Tensors{all};
      },
      {{2, 32768}});
  const Plan plan = in_cpp(fuse(cse_dce(much_kept)));
  CHECK(text_of(plan).find("float kept_") == std::string::npos);
}

TEST_CASE("small: what is costly is made once in each kernel", "[small]") {
  const Graph graph = trace(
      [](const Tensors& in) {
        const Tensor e = exp(exp(in[0]));
        return Tensors{e, sum(e, {1}), e / max(e, {1})};
      },
      {{33, 100}});
  for (const Plan& plan : {in_cpp(fuse(graph)), in_layouts(fuse(graph))}) {
    INFO(text_of(plan));
    REQUIRE(plan.launches.size() == 1);
    const std::string& text = plan.launches[0].text;
    size_t calls = 0, kept = 0;
    for (size_t at = text.find("tc_exp("); at != text.npos; at = text.find("tc_exp(", at + 1))
      calls++;
    for (size_t at = text.find("float kept_"); at != text.npos;
         at = text.find("float kept_", at + 1))
      kept++;
    CHECK(calls == 2);
    CHECK(kept <= 2);  // the last exp and, on a GPU, what is loaded
  }
  require_real_bits(graph, numbers_for(graph, 6));
}

TEST_CASE("small: an illegal layout is refused with its reason", "[small]") {
  const Graph graph =
      trace([](const Tensors& in) { return Tensors{sum(in[0], {1})}; }, {{8, 4096}});
  const Program program = unfused(graph);
  const auto told = [&](const Layout& i0, const Layout& k) {
    Plan plan = plan_of(graph);
    return message_of([&] {
      add_reduced(plan, {graph, program.kernels[0]}, {i0, {{Grid, 1}}, k});
    });
  };
  const Layout row = {{Grid, 1}}, right = {{Warp, 4}, {Register, 32}, {Lane, 32}};
  CHECK(told(row, right) == "no error");
  CHECK_THAT(told({{Register, 4}}, right), ContainsSubstring("i0: covers 4 of 8"));
  CHECK_THAT(told({{Grid, 2}}, right),
             ContainsSubstring("i0: the grid's part is what remains"));
  CHECK_THAT(told(row, {{Register, 32}, {Lane, 32}}),
             ContainsSubstring("k: covers 1024 of 4096"));
  CHECK_THAT(told(row, {{Warp, 4}, {Register, 33}, {Lane, 32}}),
             ContainsSubstring("k: a part of 33: no power of two"));
  CHECK_THAT(told({{Lane, 2}, {Grid, 1}}, right),
             ContainsSubstring("i0: the grid's part is not the highest"));
  CHECK_THAT(told(row, {{Grid, 1}, {Lane, 32}, {Register, 32}}),
             ContainsSubstring("k: blocks share out k, but store no chunks"));
  CHECK_THAT(told(row, {{Serial, 8}, {Register, 16}, {Lane, 32}}),
             ContainsSubstring("k: turns over more than one digit of 1024"));
  CHECK_THAT(told({{Grid, 1}, {Vector, 2}, {Lane, 4}}, right),
             ContainsSubstring("i0: a vector is not the lowest part"));
  CHECK_THAT(told({{Grid, 1}, {Vector, 16}}, right),
             ContainsSubstring("i0: vectors of 16 in 8"));
  CHECK_THAT(told({{Grid, 1}, {Lane, 2}}, right), ContainsSubstring("4 warps of 64 lanes"));
}

TEST_CASE("small: recorded: layouts",
          "[.small-layouts]") {  // on a GPU, too, where there is one
  const int64_t wanted = tiny_compile::why_no_gpu().empty() ? 500 : 5000;
  int64_t layouts = 0;
  for (unsigned seed = 100; layouts < wanted; seed++) layouts += try_layouts(seed);
  std::printf("%lld layouts\n", static_cast<long long>(layouts));
}

// Of as many as there is time for; SMALL_PART=3/14 is the fourth of 14 processes that share them out.
TEST_CASE("small: recorded: 2,000 random graphs", "[.small-graphs]") {
  int part = 0, parts = 1, graphs = 0;
  if (const char* const given = std::getenv("SMALL_PART"))
    REQUIRE(std::sscanf(given, "%d/%d", &part, &parts) == 2);
  const char* const seconds = std::getenv("SMALL_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(seconds ? std::atoi(seconds) : 100000);
  for (int seed = 1000 + part; seed < 3000 && std::chrono::steady_clock::now() < end;
       seed += parts, graphs++) {
    const auto number = static_cast<unsigned>(seed);
    const Graph graph = Random(number, number % 3 ? 5 : 7).graph(25);
    INFO("seed " << seed);
    require_real_bits(graph, numbers_for(graph, number));
  }
  std::printf("%d graphs\n", graphs);
}

TEST_CASE("small: NVRTC takes the text of every kernel", "[small][cuda]") {
  if (!tiny_compile::why_no_nvrtc().empty()) SKIP(tiny_compile::why_no_nvrtc());
  const auto check = [](const Plan& plan) {
    INFO(text_of(plan));
    CHECK_NOTHROW(tiny_compile::compile_cuda(beginning(true) + text_of(plan), "sm_90"));
  };
  for (const Graph& graph : {trace(program, program_inputs({})), Random(3).graph(60)}) {
    check(loop_per_op(graph, true));
    check(row_by_row(unfused(graph), true));
    const Program fused = fuse(cse_dce(graph));
    check(row_by_row(fused, true));
    check(in_cuda(fused));
    check(in_layouts(fused));
    check(in_tiles(fused, true));
  }
}

TEST_CASE("small: backward keeps as few bytes as it can", "[small]") {
  const auto kept = [](const Function& function, const Shape& shape) {
    const Graph graph = cse_dce(rewrite(with_gradients(trace(function, {shape}), {0})));
    CHECK(first_changed([](const Graph& random) { return recompute(random); }) == -1);
    int64_t bytes = 0;
    for (const int64_t id : kept_values(graph))
      if (graph[id].op != Op::Input) bytes += 4 * count(graph[id].shape);
    return bytes;
  };
  CHECK(kept(
            [](const Tensors& in) {
              return Tensors{sum(exp(exp(in[0])), {0, 1})};
            },
            {8, 8}) == 0);
  // Of softmax, a number or two of each row.
  CHECK(kept(
            [](const Tensors& in) {
              const Tensor y = softmax(in[0]);
              return Tensors{sum(y * y, {0, 1})};
            },
            {8, 64}) <= 4 * 8 * 3);
  const Graph both = cse_dce(rewrite(
      with_gradients(trace(program, program_inputs({7, 8, 5})), {0, 2, 3, 4, 5, 6, 7, 8})));
  const Graph again = recompute(both);
  verify(again);
  CHECK(again.size() > both.size());
  const std::vector<Array> inputs = numbers_for(both, 3), wanted = interpret(both, inputs),
                           got = interpret(again, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same(got[k], wanted[k]));
}

TEST_CASE("small: arrays that are never needed together share memory", "[small]") {
  const Graph chain = trace(
      [](const Tensors& in) {
        Tensor x = in[0];
        for (int k = 0; k < 6; k++) x = matmul(x, in[0]);
        return Tensors{x};
      },
      {{32, 32}});
  const Plan plan = with_arena(in_cpp(unfused(chain)));
  CHECK(memory_of(plan) <= kAligned + 4 * 1024);  // the input, the result and two between
  CHECK(std::ranges::all_of(plan.offsets, [](int64_t at) { return at % kAligned == 0; }));
  require_real_bits(chain, numbers_for(chain, 2));
}

TEST_CASE("small: code is reused when it would be written again", "[small]") {
  Compiled compiled(
      [](const std::vector<Shape>& shapes) {
        return in_tiles(fuse(cse_dce(rewrite(trace(program, shapes)))), false);
      },
      false);
  const auto check = [&](int64_t rows, size_t compilations) {
    INFO(rows << " rows");
    const std::vector<Shape> shapes = program_inputs({rows, 8, 11});
    const Graph graph = trace(program, shapes);
    const std::vector<Array> inputs = numbers_for(graph, 4),
                             wanted = real_results(graph, inputs),
                             got = compiled(shapes, inputs);
    CHECK(same(got[0], wanted[0]));
    CHECK(compiled.compilations() == compilations);
  };
  for (const int64_t rows : {13, 14, 7, 100, 1025, 2, 3000}) check(rows, 1);
  check(8, 2);  // rows and columns are one number there
  check(1, 3);  // an axis of one is no loop
  check(14, 3);
}

TEST_CASE("small: a mistake is shown on a small graph", "[small]") {
  std::vector<Rule> rules = sound_rules();
  rules.push_back(neutral(Op::Add, 0, true));
  const auto is_wrong = [&](const Graph& graph) {
    const std::vector<Array> inputs = numbers_for(graph, 7), wanted = interpret(graph, inputs),
                             got = interpret(rewrite(graph, rules), inputs);
    return !std::equal(wanted.begin(), wanted.end(), got.begin(), got.end(), same);
  };
  unsigned seed = 0;
  while (!is_wrong(Random(seed, 5).graph(25))) seed++;
  const Graph least = shrunk(Random(seed, 5).graph(25), is_wrong);
  INFO(print(least));
  CHECK(is_wrong(least));
  CHECK(operations(least) <= 4);
}

TEST_CASE("small: what is wrong is told with its line", "[small]") {
  const auto traced = [](const Function& function) {
    return message_of([&] { verify(trace(function, {{4, 3}, {5, 3}})); });
  };
  CHECK_THAT(traced([](const Tensors& in) { return Tensors{in[0] + in[1]}; }),
             ContainsSubstring("small_test.cpp:" + std::to_string(__LINE__ - 1)) &&
                 ContainsSubstring("expand of [5,3] cannot be [4,3]"));
  CHECK_THAT(traced([](const Tensors& in) { return Tensors{matmul(in[0], in[1])}; }),
             ContainsSubstring("matmul of [4,3] and [5,3] cannot be [4,3]"));
  CHECK_THAT(traced([](const Tensors& in) { return Tensors{sum(in[0], {2})}; }),
             ContainsSubstring("sum of [4,3] along [2]"));
  CHECK_THAT(traced([](const Tensors& in) {
               return Tensors{permute(in[0], {1, 1})};
             }),
             ContainsSubstring("permute of [4,3] along [1,1]"));
  CHECK_THAT(traced([](const Tensors& in) {
               return Tensors{reshape(in[0], {-3, -4})};
             }),
             ContainsSubstring("cannot be [-3,-4]"));

  CHECK_THAT(traced([](const Tensors&) { return Tensors{small::exp(2.0)}; }),
             ContainsSubstring("a number where a tensor is needed"));
  CHECK_THAT(traced([](const Tensors& in) { return Tensors{in[0] + Tensor{}}; }),
             ContainsSubstring("a tensor that no operation made"));
  Graph other;
  const Tensor elsewhere = {&other, other.add({Op::Input, {}, {4, 3}})};
  CHECK_THAT(traced([&](const Tensors& in) { return Tensors{in[0] * elsewhere}; }),
             ContainsSubstring("a tensor of another trace"));
  CHECK_THAT(traced([](const Tensors& in) { return Tensors{matmul(in[0], 2.0)}; }),
             ContainsSubstring("a number where a tensor is needed"));
  CHECK_THAT(traced([](const Tensors& in) { return Tensors{reshape(in[0], Shape(40, 1))}; }),
             ContainsSubstring("more than 30 axes"));

  const std::string text = print(Random(1).graph(12));
  CHECK_THAT(message_of([&] { parse(text + "more"); }), ContainsSubstring("text:"));
  for (size_t length = 0; length + 1 < text.size(); length++)
    CHECK_THAT(message_of([&] { parse(text.substr(0, length)); }), ContainsSubstring("text:"));
  for (size_t at = 0; at < text.size(); at++) {
    std::string changed = text;
    changed[at] = changed[at] == '9' ? 'x' : '9';
    message_of([&] { print(parse(changed)); });  // an Error or another graph
  }
  CHECK_THAT(message_of([&] { parse(std::string(100000, '%')); }),
             ContainsSubstring("text:1:"));

  const Graph graph = trace([](const Tensors& in) { return Tensors{exp(in[0])}; }, {{2, 2}});
  CHECK_THAT(message_of([&] { interpret(graph, {}); }), ContainsSubstring("%0 needs a [2,2]"));
  const Executable compiled(loop_per_op(graph, false), false);
  const std::vector<Array> three = {{1, 2, 3}};
  CHECK_THAT(message_of([&] { compiled(three); }), ContainsSubstring("needs a [2,2]"));
}
