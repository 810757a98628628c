#include "lessons/tools/check.h"
#include "exercise.h"

#include <algorithm>
#include <limits>

#include "tiny_compile/codegen/prelude.h"
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
  input x: f32[31,257]
  input g: f32[31]
  output y: f32[31,257]
  kernel gated rows(i0: 31, i1: 257) {
    store y[i0*257 + i1] = mul(load x[i0*257 + i1], sigmoid(load g[i0]))
  }
  launch gated
  return y
)";

const char* kTurned = R"(
  input x: f32[5,3,7]
  output y: f32[3,7,5]
  kernel transposed rows(i0: 3, i1: 7, i2: 5) {
    store y[i0*35 + i1*5 + i2] = exp(load x[i2*21 + i0*7 + i1])
  }
  launch transposed
  return y
)";

const char* kTwoStores = R"(
  input x: f32[77]
  output y: f32[77]
  output z: f32[77]
  kernel both rows(i0: 77) {
    $0 = load x[i0]
    store y[i0] = mul($0, f32 3.0)
    store z[i0] = maximum($0, f32 0.0)
  }
  launch both
  return y, z
)";

const char* kMasked = R"(
  input x: f32[50]
  output y: f32[64]
  kernel padded rows(i0: 64) {
    store y[i0] = add(load x[i0] if lt(index[i0], i64 50) else 7.0, f32 1.0)
  }
  launch padded
  return y
)";

const char* kTwoKernels = R"(
  input x: f32[130]
  input w: f32[130]
  temp t: f32[130]
  output y: f32[130]
  kernel first rows(i0: 130) {
    store t[i0] = mul(load x[i0], load x[i0])
  }
  kernel second rows(i0: 130) {
    store y[i0] = where(lt(load t[i0], f32 0.5), load t[i0], load w[i0])
  }
  launch first
  launch second
  return y
)";

const char* kOnePoint = R"(
  input x: f32[]
  output y: f32[]
  kernel one rows() {
    store y[0] = tanh(load x[0])
  }
  launch one
  return y
)";

const char* kOpenCl = R"(
typedef unsigned uint;
static unsigned long tc_item, tc_group_size;
static unsigned long get_global_id(uint) { return tc_item; }
static unsigned long get_local_id(uint) { return tc_item % tc_group_size; }
static unsigned long get_group_id(uint) { return tc_item / tc_group_size; }
static unsigned long get_local_size(uint) { return tc_group_size; }
#define __kernel static
#define __global
#define restrict __restrict
)";

// Every function that an op's formula names.
Calls all_functions() {
  Calls calls;
  for (int op = 0; op < kOpCount; op++)
    fill_formula(calls, info(static_cast<Op>(op)).float_formula, {});
  return calls;
}

// What the text would be on a device, as a library of functions that run one work item each.
class OpenClDevice {
 public:
  explicit OpenClDevice(const Program& program)
      : program_(program), source_(exercise::emit_opencl(program)) {
    std::string text = str("#define TC_FN static inline\n#define TC_FAIL(code)\n",
                           prelude_for(all_functions(), false), kOpenCl, source_.text);
    for (size_t k = 0; k < source_.kernels.size(); k++) {
      std::vector<std::string> arguments;
      for (size_t b = 0; b < source_.kernels[k].buffers.size(); b++)
        arguments.push_back(str("(float*)buffers[", b, "]"));
      text += str("extern \"C\" void run_", k,
                  "(void* const* buffers, long item, long size) {\n  tc_item = item;\n  "
                  "tc_group_size = size;\n  ",
                  source_.kernels[k].function, "(", join(arguments, ", "), ");\n}\n");
    }
    library_ = build_cpp(text, default_toolchain()).library;
    for (const Buffer& buffer : program.buffers)
      memory_.emplace_back(static_cast<size_t>(buffer.size.constant()), kUnset);
  }

  const Source& source() const { return source_; }
  Walled<float>& memory(size_t buffer) { return memory_[buffer]; }

  void run_item(size_t k, int64_t item) {
    const KernelEntry& entry = source_.kernels[k];
    std::vector<void*> buffers;
    for (int b : entry.buffers) buffers.push_back(memory_[static_cast<size_t>(b)].data());
    reinterpret_cast<void (*)(void* const*, long, long)>(
        library_->symbol(str("run_", k).c_str()))(buffers.data(), item, entry.block);
  }
  void run() {
    for (size_t k = 0; k < source_.kernels.size(); k++) {
      for (int64_t item = 0;
           item < source_.kernels[k].grid.constant() * source_.kernels[k].block; item++)
        run_item(k, item);
    }
  }

  static constexpr float kUnset = -12345.0f;

 private:
  Program program_;
  Source source_;
  std::shared_ptr<SharedLibrary> library_;
  std::vector<Walled<float>> memory_;
};

Sizes shape_of(const Buffer& buffer) {
  Sizes shape;
  for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
  return shape;
}

// Random numbers, and those that are none, in the device's inputs too.
std::vector<Tensor> fill_inputs(const Program& program, OpenClDevice& device) {
  manual_seed(5);
  std::vector<Tensor> inputs;
  for (size_t b = 0; b < program.buffers.size(); b++) {
    if (program.buffers[b].role != Role::Input) continue;
    std::vector<float> values = randn(shape_of(program.buffers[b])).to_vector<float>();
    const float special[] = {std::numeric_limits<float>::quiet_NaN(), -0.0f,
                             std::numeric_limits<float>::infinity(), 1e-42f};
    for (size_t i = 4; i < values.size(); i += 13) values[i] = special[i % 4];
    std::copy(values.begin(), values.end(), device.memory(b).data());
    inputs.push_back(from_vector<float>(values, shape_of(program.buffers[b])));
  }
  return inputs;
}

std::string other_results(const char* text) {
  const Program program = program_of(text);
  OpenClDevice device(program);
  const std::vector<Tensor> wanted = interpret(program, fill_inputs(program, device));
  device.run();
  for (size_t k = 0; k < wanted.size(); k++) {
    const size_t b = static_cast<size_t>(program.outputs[k]);
    Walled<float>& got = device.memory(b);
    if (!got.broken_wall().empty()) return got.broken_wall() + "\n" + device.source().text;
    const std::vector<float> values(got.data(), got.data() + got.size());
    const auto at = first_difference(wanted[k], from_vector<float>(values, wanted[k].shape()));
    if (at)
      return str(program.buffers[b].name, " differs from element ", *at, " on: yours is ",
                 values[static_cast<size_t>(*at)], "\n", device.source().text);
  }
  return "";
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at++) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end])))
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the gate of a row") { EXPECT(other_results(kGated)); }

TEST_CASE("three axes, read in another order") { EXPECT(other_results(kTurned)); }

TEST_CASE("two stores are both done") { EXPECT(other_results(kTwoStores)); }

TEST_CASE("a masked load reads nothing behind its buffer") { EXPECT(other_results(kMasked)); }

TEST_CASE("the second kernel reads what the first one wrote") {
  EXPECT(other_results(kTwoKernels));
}

TEST_CASE("a kernel without axes is one point") { EXPECT(other_results(kOnePoint)); }

TEST_CASE("the words are those of OpenCL C") {
  for (const char* program : {kGated, kTwoKernels}) {
    const std::string text = exercise::emit_opencl(program_of(program)).text;
    INFO(text);
    CHECK(text.find("__kernel void ") != std::string::npos);
    CHECK(has_word(text, "__global"));
    for (const char* word : {"long long", "extern", "auto", "__global__", "static_cast",
                             "blockIdx", "threadIdx", "__restrict"}) {
      INFO("OpenCL C has no " << word);
      CHECK(!has_word(text, word));
    }
  }
}

TEST_CASE("an argument is a buffer that the kernel uses") {
  const Source source = exercise::emit_opencl(program_of(kTwoKernels));
  REQUIRE(source.kernels.size() == 2);
  for (size_t k = 0; k < 2; k++) {
    std::vector<int> buffers = source.kernels[k].buffers;
    std::sort(buffers.begin(), buffers.end());
    // x, w, t, y are buffers 0, 1, 2, 3.
    const std::vector<int> wanted = k == 0 ? std::vector<int>{0, 2} : std::vector<int>{1, 2, 3};
    INFO("kernel " << k);
    CHECK(buffers == wanted);
  }
  CHECK(source.kernels[0].function != source.kernels[1].function);
}

TEST_CASE("the groups are as many as needed") {
  const auto grid = [](const char* text) {
    const KernelEntry entry = exercise::emit_opencl(program_of(text)).kernels.at(0);
    CHECK(entry.block == exercise::kGroup);
    return entry.grid.constant();
  };
  CHECK(grid(kGated) == (31 * 257 + 63) / 64);
  CHECK(grid(kMasked) == 1);
  CHECK(grid(kTwoStores) == 2);
  CHECK(grid(kOnePoint) == 1);
}

TEST_CASE("work items beyond the end do nothing") {
  const Program program = program_of(kTwoStores);
  OpenClDevice device(program);
  fill_inputs(program, device);
  for (int64_t item = 77; item < 128; item++) device.run_item(0, item);
  for (size_t b = 0; b < program.buffers.size(); b++) {
    EXPECT(device.memory(b).broken_wall());
    if (program.buffers[b].role == Role::Input) continue;
    for (size_t i = 0; i < 77; i++) REQUIRE(device.memory(b)[i] == OpenClDevice::kUnset);
  }
}

TEST_CASE("neighbouring work items take neighbouring elements") {
  const Program program = program_of(kGated);
  OpenClDevice device(program);
  fill_inputs(program, device);
  for (size_t item : {size_t{0}, size_t{1}, size_t{256}, size_t{257}, size_t{5000}}) {
    CHECK(device.memory(2)[item] == OpenClDevice::kUnset);
    device.run_item(0, static_cast<int64_t>(item));
    INFO("work item " << item << " should write element " << item);
    CHECK(std::memcmp(&device.memory(2)[item], &OpenClDevice::kUnset, sizeof(float)) != 0);
  }
}
