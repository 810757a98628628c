// Machines as values: presets, texts, and programs for one.
#include "tiny_compile/loops/machine.h"

#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile {
namespace {

using Catch::Matchers::ContainsSubstring;

const char* const kSoftmax = R"(graph g(%0 x: f32[64,50257]) {
  %1: f32[64,1] = max %0 {axes=[1], keepdim=1}
  %2: f32[64,50257] = expand %1
  %3: f32[64,50257] = sub %0, %2
  %4: f32[64,50257] = exp %3
  %5: f32[64,1] = sum %4 {axes=[1], keepdim=1}
  %6: f32[64,50257] = expand %5
  %7: f32[64,50257] = div %4, %6
  return %7
}
)";

Staged made_for(const Machine& machine, const std::string& graph = kSoftmax) {
  return run_pipeline(default_pipeline(), parse_graph(graph), true, machine);
}

size_t kernels_for(const std::string& machine, const std::string& graph) {
  return made_for(parse_machine(machine), graph).program.kernels.size();
}

std::string text_for(const std::string& machine, const std::string& graph) {
  return made_for(parse_machine(machine), graph).source.text;
}

std::string unary(const std::string& op, const std::string& shape) {
  return "graph g(%0 x: f32[" + shape + "]) {\n  %1: f32[" + shape + "] = " + op +
         " %0\n  return %1\n}\n";
}

// Updates to so many i32.
std::string histogram(int64_t targets) {
  const std::string t = std::to_string(targets);
  return "graph g(%0 x: i32[" + t + "], %1 k: i64[262144], %2 d: i32[262144]) {\n  %3: i32[" +
         t + "] = scatter_add %0, %1, %2 {axis=0}\n  return %3\n}\n";
}

const char* const kSmallGpu =
    "small multiprocessors=20 threads=1536 registers=65536 block_shared=101376 shared=102400 "
    "cluster=1";

const char* const kHalfOfH200 =
    "half multiprocessors=66 threads=2048 registers=65536 blocks=32 block_shared=232448 "
    "shared=233472 cluster=8 bandwidth=2400 clock=1830";

}  // namespace

TEST_CASE("a machine reads back, by its preset's name or with all its numbers", "[machine]") {
  for (const char* name : {"h200", "h100", "a100", "rtx4090", "cpu:1", "cpu:16"}) {
    const Machine machine = parse_machine(name);
    CHECK(str(machine) == name);
    CHECK(parse_machine(str(machine)) == machine);
    CHECK(as_preset(machine) == machine);
    Machine renamed = machine;
    renamed.name = "mine";
    CHECK(as_preset(renamed) == machine);
    CHECK(parse_machine(str(renamed)) == renamed);
  }
  Machine half = parse_machine("h200");
  half.multiprocessors = 66;  // named h200, but not it
  CHECK_THAT(str(half), ContainsSubstring("h200 multiprocessors=66 threads=2048"));
  CHECK(parse_machine(str(half)) == half);
  CHECK(as_preset(half) == half);
  CHECK(this_cpu() == this_cpu());
  CHECK(parse_machine(str(this_cpu())) == this_cpu());
  CHECK(target_of(this_cpu()) == Target::Cpp);
  CHECK(parse_machine("mine cores=3").l2 == parse_machine("cpu:3").l2);
}

TEST_CASE("what is no machine is refused with what there is", "[machine]") {
  for (const char* text :
       {"", "h300", "cpu", "cpu:0", "cpu:07", "cpu:-1", "cpu:99999", "cpu:1x"})
    CHECK_THROWS_WITH(parse_machine(text),
                      ContainsSubstring("there are h200, h100, a100, rtx4090 and cpu:N"));
  CHECK_THROWS_WITH(parse_machine("mine cores=x"), ContainsSubstring("cores=x is no number"));
  CHECK_THROWS_WITH(parse_machine("mine wheels=4"), ContainsSubstring("has no 'wheels'"));
  CHECK_THROWS_WITH(parse_machine("mine l2=4"), ContainsSubstring("neither"));
  CHECK_THROWS_WITH(parse_machine("mine cores=4 vector=128"),
                    ContainsSubstring("vector: 16, 32 or 64"));
  CHECK_THROWS_WITH(parse_machine("mine multiprocessors=4"), ContainsSubstring("threads"));
  CHECK_THROWS_WITH(parse_machine("h200 multiprocessors=4 cores=2"), ContainsSubstring("both"));
  CHECK_THROWS_WITH(
      parse_machine("mine multiprocessors=4 threads=1024 registers=65536 blocks=8"),
      ContainsSubstring("blocks: 16 at least"));
}

TEST_CASE("a program's machine is printed where it is not the usual one", "[machine]") {
  for (const auto& [name, head] :
       {std::pair{"h200", "program g on cuda {"},
        {"a100", "program g on cuda for a100 {"},
        {"cpu:16", "program g {"},
        {"cpu:4", "program g for cpu:4 {"},
        {"l4 multiprocessors=58 threads=1536 registers=65536 block_shared=101376 cluster=1",
         "program g on cuda for l4 multiprocessors=58 threads=1536 registers=65536 "
         "blocks=16 block_shared=101376 cluster=1 {"}}) {
    const Program program = made_for(parse_machine(name)).program;
    const std::string text = print(program);
    INFO(text);
    CHECK_THAT(text, ContainsSubstring(head));
    CHECK(parse_program(text) == program);
    CHECK(print(parse_program(text)) == text);
  }
}

TEST_CASE("a program is for a machine of its target", "[machine]") {
  std::string text = print(made_for(parse_machine("a100")).program);
  const auto with = [&](const std::string& head) {
    return "program g" + head + text.substr(text.find(" {"));
  };
  CHECK_THROWS_WITH(parse_program(with(" on cuda for cpu:4")), ContainsSubstring("no GPU"));
  CHECK_THROWS_WITH(parse_program(with(" for a100")), ContainsSubstring("is a GPU"));
  CHECK_THROWS_WITH(parse_program(with(" on cuda for h300")),
                    ContainsSubstring("no machine 'h300': there are h200"));
  Program program = parse_program(text);
  program.target = Target::Cpp;
  CHECK_THROWS_WITH(verify(program), ContainsSubstring("a100, is not its target's"));
}

TEST_CASE("a schedule is within its machine", "[machine]") {
  const auto rows_for = [](const char* name) {
    Program program = run_pipeline(until(default_pipeline(), "fuse"), parse_graph(kSoftmax),
                                   true, parse_machine(name))
                          .program;
    program.kernels[0].schedule = Schedule{};
    return program;
  };
  const Program large = rows_for("h200"), small = rows_for("rtx4090");
  CHECK_THAT(print(small), ContainsSubstring("    schedule rows\n"));
  CHECK(for_machine(large, small.machine) == small);
  CHECK(for_machine(small, large.machine) == large);
  // What was asked for stays, and is refused where there is less.
  const Graph columns = parse_graph(
      "graph g(%0 x: f32[4000,256]) {\n  %1: f32[256] = sum %0 {axes=[0]}\n  return %1\n}\n");
  const Program shared =
      run_pipeline(until(default_pipeline(), "schedule"), columns, true, large.machine).program;
  CHECK_THAT(print(shared), ContainsSubstring("loop cluster "));
  CHECK_THROWS_WITH(verify(for_machine(shared, small.machine)),
                    ContainsSubstring("rtx4090 has no clusters"));
}

TEST_CASE("what keeps a machine busy follows from what it has", "[machine]") {
  const Machine h200 = parse_machine("h200"), rtx4090 = parse_machine("rtx4090"),
                cpu4 = parse_machine("cpu:4");
  CHECK(blocks_to_fill(h200) == 128);
  CHECK(threads_to_fill(h200) == 128 * 2048);
  CHECK(threads_to_fill(rtx4090) < threads_to_fill(h200) * 3 / 4);
  CHECK(blocks_to_fill(parse_machine("one multiprocessors=1 threads=1024 registers=65536 "
                                     "block_shared=65536 cluster=1")) == 1);
  CHECK(rows_to_fill(h200) == rows_to_fill(parse_machine("cpu:16")));
  CHECK(rows_to_fill(cpu4) == 128);
  CHECK(blocks_held(h200, 256, 64) == 4);     // by registers
  CHECK(blocks_held(rtx4090, 512, 32) == 3);  // by threads
  CHECK(blocks_held(rtx4090, 32, 16) == 24);  // by their number
  CHECK(blocks_held(h200, 1024, 255) == 1);   // and its registers spill
  CHECK(shared_of_each(h200, 8) == 24 << 10);
  CHECK(shared_of_each(rtx4090, 6) == 12 << 10);
  CHECK(shared_of_each(h200, 1) <= h200.block_shared);
  CHECK(near_bytes(cpu4) == 2 << 20);
  CHECK(near_bytes(parse_machine("cpu:64")) == 3 << 19);
}

TEST_CASE("a long sum is split where its rows leave the machine idle", "[machine][split]") {
  const std::string sums =
      "graph g(%0 x: f32[300,65536]) {\n"
      "  %1: f32[300] = sum %0 {axes=[1]}\n  return %1\n}\n";
  CHECK(kernels_for("h200", sums) == 2);
  CHECK(kernels_for("rtx4090", sums) == 2);
  CHECK(kernels_for(kSmallGpu, sums) == 1);
  CHECK(kernels_for("cpu:16", sums) == 2);
  CHECK(kernels_for("cpu:4", sums) == 1);
}

TEST_CASE("a thread has one point until each multiprocessor has a warp", "[machine]") {
  const std::string alone = "block*64 + thread";
  CHECK_THAT(text_for("h200", unary("neg", "4096")), ContainsSubstring(alone));
  CHECK_THAT(text_for("a100", unary("neg", "4096")), !ContainsSubstring(alone));
  CHECK_THAT(text_for("a100", unary("neg", "3200")), ContainsSubstring(alone));
}

TEST_CASE("a thread has several packs as soon as all threads have", "[machine]") {
  const std::string packs = "turn < 2";
  CHECK_THAT(text_for("h200", unary("gelu", "2000,1024")), !ContainsSubstring(packs));
  CHECK_THAT(text_for(kHalfOfH200, unary("gelu", "2000,1024")), ContainsSubstring(packs));
  CHECK_THAT(text_for("h200", unary("gelu", "2048,1024")), ContainsSubstring(packs));
  // Where memory takes longer than the arithmetic, packs would only cost.
  CHECK_THAT(text_for("rtx4090", unary("gelu", "2048,1024")), !ContainsSubstring(packs));
}

TEST_CASE("a histogram is made in shared memory that all blocks can have", "[machine]") {
  const std::string sums = " int sums[";
  CHECK_THAT(text_for("h200", histogram(6000)), ContainsSubstring(sums));
  CHECK_THAT(text_for("rtx4090", histogram(6000)), !ContainsSubstring(sums));
  CHECK_THAT(text_for("rtx4090", histogram(3000)), ContainsSubstring(sums));
}

TEST_CASE("a row has as many lanes as keep all threads busy", "[machine][layouts]") {
  const std::string less_the_largest = R"(graph g(%0 x: f32[28000,256]) {
  %1: f32[28000,1] = max %0 {axes=[1], keepdim=1}
  %2: f32[28000,256] = expand %1
  %3: f32[28000,256] = sub %0, %2
  return %3
}
)";
  const auto lanes = [&](const char* machine) {
    const Program program = made_for(parse_machine(machine), less_the_largest).program;
    return extent_of(program.kernels[0].schedule->loops.at(0), Level::Lane);
  };
  CHECK(lanes("h200") == 16);
  CHECK(lanes("rtx4090") == 8);
}

TEST_CASE("a warp has all of a row of two chunks whose last is short", "[machine][layouts]") {
  const auto schedule = [](const std::string& row) {
    const std::string graph = "graph g(%0 x: f32[4096," + row +
                              "]) {\n  %1: f32[4096,1] = max %0 {axes=[1], keepdim=1}\n" +
                              "  %2: f32[4096," + row + "] = expand %1\n  %3: f32[4096," + row +
                              "] = sub %0, %2\n  return %3\n}\n";
    return *made_for(parse_machine("h200"), graph).program.kernels[0].schedule;
  };
  CHECK(str(schedule("1280").loops.at(0)) == "register 16 · lane 32 · vector 4");
  CHECK(str(schedule("1281").loops.at(0)) == "register 64 · lane 32");
  CHECK(str(schedule("2048").loops.at(0)) == "warp 2 · register 8 · lane 32 · vector 4");
}

TEST_CASE("a product has units for all cores, and no more than that needs", "[machine]") {
  const std::string product =
      "graph g(%0 x: f32[960,512], %1 y: f32[512,1024]) {\n"
      "  %2: f32[960,1024] = matmul %0, %1\n  return %2\n}\n";
  const auto units = [&](const char* machine) {
    return made_for(parse_machine(machine), product).source.kernels[0].units.constant();
  };
  CHECK(units("cpu:16") >= 64);
  CHECK(units("cpu:4") >= 16);
  CHECK(units("cpu:4") < units("cpu:16"));
}

TEST_CASE("texts are the same on every machine that does not say what it is", "[machine]") {
  CHECK(default_machine(Target::Cuda) == parse_machine("h200"));
  CHECK(default_machine(Target::Cpp) == parse_machine("cpu:16"));
  CHECK(made_for(parse_machine("cpu:4")).source.text ==
        made_for(parse_machine("cpu:16")).source.text);
}

}  // namespace tiny_compile
