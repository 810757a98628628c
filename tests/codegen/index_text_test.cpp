// Indices whose own text means something else in C, or nothing.
#include "tests/catch.h"
#include "tests/codegen/emit_programs.h"
#include "tests/fuzz/harness.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/nvrtc.h"

using namespace tiny_compile;

namespace {

// The first elements again and again, then all in order, then back.
constexpr const char* kClamped = R"(program f {
    input x: f32[8]
    output y: f32[12]
    kernel clamped rows(i0: 12) {
      store y[i0] = load x[min(max(i0 - 3, 0), 7, 14 - i0)]
    }
    launch clamped
    return y
  })";

}  // namespace

TEST_CASE("an index may be the least and the greatest of some", "[codegen][index]") {
  use_no_cache();
  Program program = parse_program(kClamped);
  const Source source = emit_cpp(lower_to_tiles(program));
  INFO(source.text);
  const BuiltLibrary built = build_cpp(source.text, default_toolchain());
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7},
                           clamped = {0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 4, 3};
  const std::vector<Tensor> inputs = {from_vector(values)};
  const Tensor wanted = from_vector(clamped);
  REQUIRE(same_bits(interpret(program, inputs)[0], wanted));
  REQUIRE(same_bits(run_guarded(program, source, *built.library, inputs)[0], wanted));

  program = for_machine(std::move(program), default_machine(Target::Cuda));
  const Source cuda = emit_cuda(program);
  INFO(cuda.text);
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(cuda.text, "sm_90").size() > 4);
}
