// Names of buffers, kernels and files that C would take for one another, or for something else.
#include "tests/catch.h"
#include "tests/codegen/emit_programs.h"
#include "tests/fuzz/harness.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/loops/interpreter.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kDotted = R"(program f {
    input x.y: f32[4]
    input x_y: f32[4]
    output y: f32[4]
    output z: f32[4]
    kernel a.b rows(i0: 4) {
      store y[i0] = sub(load x.y[i0], load x_y[i0])
    }
    kernel a_b rows(i0: 4) {
      store z[i0] = exp(sub(load x_y[i0], load x.y[i0]))
    }
    launch a.b
    launch a_b
    return y, z
  })";

}  // namespace

TEST_CASE("x.y and x_y, a.b and a_b are different names in C++", "[codegen][names]") {
  use_no_cache();
  const Program program = parse_program(kDotted);
  const Source source = emit_cpp(lower_to_tiles(program));
  const BuiltLibrary built = build_cpp(source.text, default_toolchain());
  std::vector<Tensor> inputs;
  for (float scale : {1.f, 2.f}) {
    inputs.push_back(empty_tensor(DType::f32, {4}));
    for (int i = 0; i < 4; i++)
      reinterpret_cast<float*>(inputs.back().bytes())[i] = scale * static_cast<float>(i + 1);
  }
  const std::vector<Tensor> want = interpret(program, inputs),
                            got = run_guarded(program, source, *built.library, inputs);
  INFO(source.text);
  REQUIRE(same_bits(want[0], got[0]));
  REQUIRE(same_bits(want[1], got[1]));
}

TEST_CASE("x.y and x_y, a.b and a_b are different names in CUDA", "[codegen][names]") {
  Program program = parse_program(kDotted);
  program = for_machine(std::move(program), default_machine(Target::Cuda));
  const Source source = emit_cuda(program);
  REQUIRE_THAT(source.text, ContainsSubstring("in1_x_y"));
  REQUIRE_THAT(source.text, ContainsSubstring("in_x_y"));
  REQUIRE_THAT(source.text, ContainsSubstring("k1_a_b"));
  REQUIRE(source.kernels[0].function != source.kernels[1].function);
}

TEST_CASE("an origin that ends in a backslash does not swallow the next line",
          "[codegen][names]") {
  Program program = parse_program(kDotted);
  program.kernels[0].where = {{"odd\\", 0}, {"a\nb.cpp", 3}};
  REQUIRE_THAT(emit_cpp(lower_to_tiles(program)).text,
               ContainsSubstring("// odd_, a_b.cpp:3\nextern"));
  REQUIRE_THAT(emit_cuda(program).text, ContainsSubstring("// odd_, a_b.cpp:3\n"));
}
