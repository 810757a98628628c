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

Staged made_for(const Machine& machine) {
  return run_pipeline(default_pipeline(), parse_graph(kSoftmax), true, machine);
}

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

TEST_CASE("a schedule is within its machine, and what it does not say is the machine's",
          "[machine]") {
  const Program large = made_for(parse_machine("h200")).program,
                small = made_for(parse_machine("rtx4090")).program;
  CHECK(large.kernels[0].schedule->cluster == 8);
  CHECK(small.kernels[0].schedule->cluster == 1);
  CHECK(small.kernels[0].schedule->shared == 92);
  CHECK_THAT(print(small), ContainsSubstring("    schedule rows\n"));
  CHECK(for_machine(large, small.machine) == small);
  CHECK(for_machine(small, large.machine) == large);
  // What was asked for stays, and is refused where there is less.
  Program asked = large;
  asked.kernels[0].schedule->cluster = 4;
  verify(asked);
  CHECK_THROWS_WITH(verify(for_machine(asked, small.machine)),
                    ContainsSubstring("schedule cluster=4: rtx4090 has no clusters"));
}

TEST_CASE("kernels without a schedule are emitted for the machine, too", "[machine]") {
  const Pipeline pipeline = until(default_pipeline(), "fuse");
  for (const auto& [name, clusters] : {std::pair{"h200", true}, {"a100", false}}) {
    const Staged all = run_pipeline(pipeline, parse_graph(kSoftmax), true, parse_machine(name));
    CHECK((all.source.text.find("__cluster_dims__") != std::string::npos) == clusters);
  }
}

TEST_CASE("texts are the same on every machine that does not say what it is", "[machine]") {
  CHECK(default_machine(Target::Cuda) == parse_machine("h200"));
  CHECK(default_machine(Target::Cpp) == parse_machine("cpu:16"));
  CHECK(made_for(parse_machine("cpu:4")).source.text ==
        made_for(parse_machine("cpu:16")).source.text);
}

}  // namespace tiny_compile
