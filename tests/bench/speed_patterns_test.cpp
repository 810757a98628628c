// The named patterns are what their names say, cover the grammar's classes, and are right before a
// GPU sees them.
#include "tests/bench/speed_patterns.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/bench/gpu_measure.h"
#include "tests/bench/speed_bind.h"
#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/runtime/process.h"

using namespace tiny_compile;
using namespace bench;

namespace {

// Of a pattern's inputs the first: "_f32_64x21x50176", "_f32_2^26".
std::string ending_of(const Input& input) {
  const int64_t first = input.shape[0];
  const int power = 63 - __builtin_clzll(static_cast<uint64_t>(first));
  const bool is_power = input.shape.size() == 1 && first == int64_t{1} << power;
  return str("_", name(input.dtype), "_", is_power ? str("2^", power) : join(input.shape, "x"));
}

// Sizes that are not the first input's: of rows, in and out; batch, length, width and words; how
// many tensors.
bool has_other_sizes(const std::string& family) {
  static const std::set<std::string> kOthers = {
      "thin_product", "batched_product",    "prologue_product", "epilogue_product",
      "embedding",    "embedding_gradient", "optimiser"};
  return kOthers.count(family) > 0;
}

bool goes_along(const Draw& draw, int64_t axis) {
  for (const Call& call : draw.calls) {
    if (call.integers == Sizes{axis}) return true;
  }
  return false;
}

std::vector<std::string> names_of_quarter(size_t quarter) {
  std::vector<std::string> names;
  const auto all = pattern_names();
  for (size_t k = quarter; k < all.size(); k += 4) names.push_back(all[k]);
  return names;
}

void check_bits(size_t quarter) {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  for (const std::string& name : names_of_quarter(quarter)) {
    INFO(name);
    const LoadedRow row({cpu, true}, name, draws_at(Scale::Small, false));
    CHECK_NOTHROW(row.check_small());
  }
}

void check_compiles(size_t quarter) {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  const auto make = draws_at(Scale::Gpu, true);
  for (const std::string& name : names_of_quarter(quarter)) {
    INFO(name);
    const GpuRow row = make(name, false);
    std::vector<Tensor> inputs;
    for (const Input& input : row.inputs) inputs.push_back(shape_only(input));
    const Source source = cuda_source(row.prepare({}, inputs).graph());
    CHECK_NOTHROW(compile_cuda(source.text, "sm_90"));
  }
}

}  // namespace

TEST_CASE("a pattern's name ends in the dtype and sizes of its input", "[speed]") {
  for (const std::string& name : pattern_names()) {
    INFO(name);
    const Draw one = pattern(name, Scale::Gpu);
    if (!has_other_sizes(one.family)) CHECK(name.ends_with(ending_of(one.inputs[0])));
  }
}

TEST_CASE("a pattern's name says along which axis it goes", "[speed]") {
  for (const std::string& name : pattern_names()) {
    INFO(name);
    const Draw one = pattern(name, Scale::Gpu);
    const int64_t rank = static_cast<int64_t>(one.inputs[0].shape.size());
    const auto says = [&](const char* word) { return name.find(word) != std::string::npos; };
    if (says("leading")) CHECK(goes_along(one, 0));
    if (says("middle")) CHECK((rank > 2 && goes_along(one, 1)));
    if (says("trailing")) CHECK(goes_along(one, rank - 1));
  }
}

TEST_CASE("a pattern whose name has a gradient in it returns gradients", "[speed]") {
  for (const std::string& name : pattern_names()) {
    INFO(name);
    const bool says = name.find("gradient") != std::string::npos ||
                      name.find("backward") != std::string::npos;
    CHECK(says == !pattern(name, Scale::Gpu).leaves.empty());
  }
}

TEST_CASE("names that count tensors count them", "[speed]") {
  const auto results = [](const char* name) {
    return pattern(name, Scale::Gpu).outputs.size();
  };
  CHECK(results("adamw_tensors_f32_150x256") == 3 * 150);
  CHECK(results("sgd_momentum_tensors_f32_160x512") == 2 * 160);
  CHECK(results("clip_and_adamw_tensors_of_gpt2_f32_148x768x50257") == 3 * 148);
  int64_t weights = 0;
  const Draw gpt2 = pattern("clip_and_adamw_tensors_of_gpt2_f32_148x768x50257", Scale::Gpu);
  for (size_t k = 0; k < 148; k++) weights += element_count(gpt2.inputs[k].shape);
  CHECK(weights == 124439808);  // GPT-2's
}

// `build/speed --patterns --print | sed -n 's/^# //p'` writes the file.
TEST_CASE("speed_patterns.txt lists each pattern's class, calls and inputs", "[speed]") {
  std::ifstream file("tests/bench/speed_patterns.txt");
  const auto make = draws_at(Scale::Gpu, true);
  std::string want;
  for (const std::string& name : pattern_names()) {
    std::getline(file, want);
    const GpuRow row = make(name, false);
    CHECK(want == str(name, ", ", row.family, ": ", row.what));
  }
  CHECK_FALSE(std::getline(file, want));
}

TEST_CASE(
    "patterns: more than 48, of each of the grammar's classes and scatters, in each dtype",
    "[speed]") {
  const auto names = pattern_names();
  CHECK(names.size() >= 48);
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  std::set<std::string> classes, dtypes, wanted = {"scatter"};
  for (const std::string& family : families()) wanted.insert(family);
  for (const std::string& one : names) {
    classes.insert(class_of_pattern(one));
    dtypes.insert(name(pattern(one, Scale::Gpu).inputs[0].dtype));
  }
  CHECK(classes == wanted);
  for (const char* dtype : {"f32", "bf16", "f16", "i8", "u8"}) CHECK(dtypes.count(dtype) == 1);
}

TEST_CASE("a small pattern calls the same words", "[speed]") {
  const auto words = [](const Draw& draw) {
    std::vector<std::string> list;
    for (const Call& call : draw.calls) list.push_back(call.word);
    for (const Input& input : draw.inputs) list.push_back(name(input.dtype));
    return list;
  };
  for (const std::string& one : pattern_names()) {
    INFO(one);
    const Draw small = pattern(one, Scale::Small);
    CHECK(words(small) == words(pattern(one, Scale::Gpu)));
    for (const Input& input : small.inputs) CHECK(element_count(input.shape) <= 100000);
  }
}

TEST_CASE("a name that is no pattern's and no seed is refused", "[speed]") {
  CHECK_FALSE(is_pattern("softmax"));
  CHECK_THROWS_WITH(draws_at(Scale::Small, false)("softmax", true),
                    Catch::Matchers::ContainsSubstring("no pattern's name"));
}

TEST_CASE("the Python text of the patterns is Python", "[speed]") {
  if (find_program("python3").empty()) SKIP("no python3");
  std::string all;
  for (const std::string& name : pattern_names())
    all += python(pattern(name, Scale::Gpu)) + "\n";
  const ProcessResult said =
      run_process({"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"}, all, 60);
  INFO(said.output);
  CHECK(said.exit_code == 0);
}

TEST_CASE("small patterns have the interpreter's bits (1)", "[speed]") { check_bits(0); }
TEST_CASE("small patterns have the interpreter's bits (2)", "[speed]") { check_bits(1); }
TEST_CASE("small patterns have the interpreter's bits (3)", "[speed]") { check_bits(2); }
TEST_CASE("small patterns have the interpreter's bits (4)", "[speed]") { check_bits(3); }
TEST_CASE("NVRTC takes the patterns (1)", "[speed][cuda]") { check_compiles(0); }
TEST_CASE("NVRTC takes the patterns (2)", "[speed][cuda]") { check_compiles(1); }
TEST_CASE("NVRTC takes the patterns (3)", "[speed][cuda]") { check_compiles(2); }
TEST_CASE("NVRTC takes the patterns (4)", "[speed][cuda]") { check_compiles(3); }
