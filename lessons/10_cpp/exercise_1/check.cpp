#include "lessons/tools/check.h"
#include "exercise.h"

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Program program_of(const std::string& text) {
  return parse_program("program f {\n" + text + "}\n");
}

const char* kGated = R"(
  input x: f32[1000,257]
  input g: f32[1000]
  output y: f32[1000,257]
  kernel gated rows(i0: 1000, i1: 257) {
    store y[i0*257 + i1] = mul(load x[i0*257 + i1], sigmoid(load g[i0]))
  }
  launch gated
  return y
)";

const char* kColumns = R"(
  input x: f32[31,257]
  input c: f32[257]
  output y: f32[31,257]
  kernel scaled rows(i0: 31, i1: 257) {
    store y[i0*257 + i1] = mul(load x[i0*257 + i1], exp(load c[i1]))
  }
  launch scaled
  return y
)";

const char* kOneNumber = R"(
  input x: f32[31,257]
  input s: f32[]
  output y: f32[31,257]
  kernel scaled rows(i0: 31, i1: 257) {
    store y[i0*257 + i1] = mul(load x[i0*257 + i1], exp(load s[0]))
  }
  launch scaled
  return y
)";

// A row's weight, in columns below 200 only.
const char* kMasked = R"(
  input x: f32[31,257]
  input w: f32[31]
  output y: f32[31,257]
  kernel some rows(i0: 31, i1: 257) {
    store y[i0*257 + i1] = mul(load x[i0*257 + i1], load w[i0] if lt(index[i1], i64 200) else 1.0)
  }
  launch some
  return y
)";

// "exp_2 stands inside 2 loops, 1 will do": of the first scalar whose name begins so.
std::string stands_in(const char* text, const std::string& name, int wanted) {
  const Program program = program_of(text);
  const Kernel& kernel = program.kernels[0];
  Calls calls;
  const ScalarWriter scalars(program, kernel, calls);
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    if (scalars.name(id).rfind(name, 0) != 0) continue;
    const int loops = exercise::loops_around(kernel, id);
    if (loops == wanted) return "";
    return str(scalars.definition(id), "  stands inside ", loops, " of your loops; ", wanted,
               " is right\n", print(program, kernel));
  }
  return "the kernel has no " + name;
}

// Compiles the nested loops, runs them and compares with the interpreter.
std::string other_bits_of(const char* text) {
  const Program program = program_of(text);
  std::vector<Tensor> inputs;
  manual_seed(3);
  for (const Buffer& buffer : program.buffers) {
    Sizes shape;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    if (buffer.role == Role::Input) inputs.push_back(randn(shape));
  }
  const Tensor wanted = interpret(program, inputs)[0];
  const BuiltLibrary built = build_cpp(exercise::nested_loops(program), default_toolchain());
  Walled<float> result(static_cast<size_t>(wanted.numel()));
  std::vector<std::vector<float>> data;
  std::vector<void*> buffers;
  for (const Tensor& input : inputs) data.push_back(input.to_vector<float>());
  for (std::vector<float>& values : data) buffers.push_back(values.data());
  buffers.push_back(result.data());
  reinterpret_cast<void (*)(void* const*)>(built.library->symbol("run"))(buffers.data());
  const std::vector<float> got(result.data(), result.data() + result.size());
  const Tensor mine = from_vector<float>(got, wanted.shape());
  if (first_difference(wanted, mine))
    return str("the loops give other bits:\n", exercise::nested_loops(program));
  return result.broken_wall();
}

}  // namespace

TEST_CASE("the gate of a row is outside the loop over columns") {
  EXPECT(stands_in(kGated, "load_1", 1));
  EXPECT(stands_in(kGated, "sigmoid_", 1));
}

TEST_CASE("what reads a column stays in the loop over columns") {
  EXPECT(stands_in(kGated, "load_0", 2));
  EXPECT(stands_in(kGated, "mul_", 2));
}

TEST_CASE("a value of the columns alone is inside both loops") {
  EXPECT(stands_in(kColumns, "load_1", 2));
  EXPECT(stands_in(kColumns, "exp_", 2));
}

TEST_CASE("what no axis changes stands before all loops") {
  EXPECT(stands_in(kOneNumber, "load_1", 0));
  EXPECT(stands_in(kOneNumber, "exp_", 0));
}

TEST_CASE("a mask counts") {
  EXPECT(stands_in(kMasked, "index_", 2));
  EXPECT(stands_in(kMasked, "lt_", 2));
  const Program program = program_of(kMasked);
  const Kernel& kernel = program.kernels[0];
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    if (kernel.scalars[static_cast<size_t>(id)].mask < 0) continue;
    INFO("a load that happens in some columns only has to know the column");
    CHECK(exercise::loops_around(kernel, id) == 2);
  }
}

TEST_CASE("the loops give the bits of the interpreter") {
  for (const char* text : {kGated, kColumns, kOneNumber, kMasked}) EXPECT(other_bits_of(text));
}

TEST_CASE("a sigmoid a row, not one an element") {
  const Program program = program_of(kGated);
  const Kernel& kernel = program.kernels[0];
  int64_t times = 0;
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    if (kernel.scalars[static_cast<size_t>(id)].op != Op::sigmoid) continue;
    times = 1;
    for (int a = 0; a < exercise::loops_around(kernel, id); a++)
      times *= kernel.axes[static_cast<size_t>(a)].extent.constant();
  }
  score("sigmoids evaluated", times, 1000);
  CHECK(times == 1000);
}
