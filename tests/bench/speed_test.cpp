// Speed fuzzing's draws: the same for the same seed, of every class, as Python and as C++.
#include <map>
#include <set>

#include "tests/bench/gpu_measure.h"
#include "tests/bench/speed_bind.h"
#include "tests/bench/speed_patterns.h"
#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/process.h"

using namespace tiny_compile;
using namespace bench;

namespace {

const char* const kRecordScript = R"PY(
import sys
sys.path.insert(0, "tests/bench")
import speed_chart

def row(seed, mine, eager, default, family="norm", kernels=1):
    times = {"tiny_compile": {"ms": mine, "kernels": kernels}, "eager": {"ms": eager, "kernels": 1},
             "default": {"ms": default, "kernels": 1}}
    return {"seed": seed, "class": family, "text": "t", "bytes": 1e8, "operations": 1e8, "tiny": False,
            "floor_ms": 0.05, "contestants": times}

first = {"seeds": "a", "command": "1", "rows": [row("1", 1, 2, 1), row("2", 1, 9, 9)]}
second = {"seeds": "b", "command": "2", "rows": [row("2", 0.1, 0.4, 0.2, kernels=3),
    row("3", 0.1, 0.1, 0.05, "thin_product"), {"seed": "4", "error": "off"}]}
whole = speed_chart.join([first, second])
assert [r["seed"] for r in whole["rows"]] == ["1", "2", "3", "4"] and whole["command"] == "1; 2"
text = "\n".join(speed_chart.summary(whole))
for line in ["seeds: a; b: 4 draws, 1 failed", "geometric mean 1.000, median 1.000; at least 0.9 in 2 of 3",
             "against torch.compile alone: 1.000 of 3", "median 0.275 of 2 draws", "failed: 4: off",
             "0.50 thin_product 3: 0.1000 ms for 0.0500 (torch.compile); a product; t",
             "0.50 of its floor, 3 kernels for 1"]:
    assert line in text, (line, text)
speed_chart.save(whole, sys.argv[1])
)PY";

const char* const kLabelScript = R"PY(
import sys
sys.path.insert(0, "tests/bench")
from speed_peers import label_of, without_paths

assert label_of("0123456789abcdef") == "0123456"
for text, want in [("--record=/tmp/out/part1.json --shard=2/10", "--record=part1.json --shard=2/10"),
                   ('default: File "/opt/a b/x.py", in /usr/lib', 'default: File "a b/x.py", in lib'),
                   ("tests/bench/a.py, 3 / 4, https://b.org/c", "tests/bench/a.py, 3 / 4, https://b.org/c")]:
    assert without_paths(text) == want, without_paths(text)
)PY";

std::string text_of(const Draw& draw) {
  std::string text = draw.family + "\n" + draw.what + "\n" + python(draw);
  for (const Input& input : draw.inputs)
    text += str(name(input.dtype), " ", join(input.shape, ","), " ", join(input.strides, ","),
                "\n");
  return text;
}

bool fails_to_agree(uint64_t seed) {
  const std::string name = str(seed);
  try {
    const LoadedRow row({cpu, true}, name, draws_at(Scale::Small, false));
    row.check_small();
    return false;
  } catch (const std::exception& error) {
    UNSCOPED_INFO(name << ": " << error.what());
    return true;
  }
}

void check_seeds(uint64_t first, uint64_t last) {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  std::vector<uint64_t> failed;
  for (uint64_t seed = first; seed <= last; seed++) {
    if (fails_to_agree(seed)) failed.push_back(seed);
  }
  CHECK(failed.empty());
}

}  // namespace

TEST_CASE("the same seed draws the same function", "[speed]") {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    const std::string text = text_of(draw(seed, Scale::Gpu));
    CHECK(text == text_of(draw(seed, Scale::Gpu)));
    CHECK(text != text_of(draw(seed + 1000, Scale::Gpu)));
  }
}

TEST_CASE("a draw calls the same words at each scale", "[speed]") {
  const auto words = [](const Draw& draw) {
    std::vector<std::string> list = {draw.family};
    for (const Call& call : draw.calls) list.push_back(call.word);
    for (const Input& input : draw.inputs) list.push_back(name(input.dtype));
    return list;
  };
  for (uint64_t seed = 1; seed <= 300; seed++) {
    INFO(seed);
    const auto full = words(draw(seed, Scale::Gpu));
    CHECK(full == words(draw(seed, Scale::Cpu)));
    CHECK(full == words(draw(seed, Scale::Small)));
  }
}

TEST_CASE("a draw reads each of its inputs", "[speed]") {
  for (uint64_t seed = 1; seed <= 1000; seed++) {
    INFO(seed);
    const Draw one = draw(seed, Scale::Gpu);
    std::set<Value> used = {-1 - one.cotangent};
    for (const Call& call : one.calls) used.insert(call.operands.begin(), call.operands.end());
    for (size_t k = 0; k < one.inputs.size(); k++)
      CHECK(used.count(-1 - static_cast<Value>(k)) == 1);
  }
}

TEST_CASE("300 seeds draw every class, 3000 and the patterns call every word", "[speed]") {
  std::set<std::string> drawn, called;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    const Draw one = draw(seed, Scale::Small);
    if (seed <= 300) drawn.insert(one.family);
    for (const Call& call : one.calls) called.insert(call.word);
  }
  for (const std::string& name : pattern_names()) {
    for (const Call& call : pattern(name, Scale::Small).calls) called.insert(call.word);
  }
  for (const std::string& family : families()) CHECK(drawn.count(family) == 1);
  for (const std::string& word : all_words()) {
    INFO(word);
    CHECK(called.count(word) == 1);
  }
}

TEST_CASE("most draws move 16 to 512 MB on a GPU, none above 3 GB", "[speed]") {
  int usual = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    INFO(seed);
    const double bytes = row_of(draw(seed, Scale::Gpu), true).bytes;
    CHECK(bytes < 3e9);
    usual += bytes > 8e6 && bytes < 1e9;
  }
  CHECK(usual > 200);
}

TEST_CASE("a floor counts what is read once and what is written", "[speed]") {
  Builder b(1, Scale::Small);
  const Value x = b.input(DType::bf16, {64, 100});
  b.returns({b.call("sum", {x}, {0}), b.call("exp", {x})});
  const GpuRow row = row_of(std::move(b).finish(), false);
  CHECK(row.bytes == 2 * 64 * 100 + 2 * 100 + 2 * 64 * 100);
}

TEST_CASE("seeds of a commit: of its first seven digits, each once, none a small number",
          "[speed]") {
  std::set<uint64_t> seeds;
  for (uint64_t k = 0; k < 200; k++) seeds.insert(seed_of("11690a4f4992d16e", k));
  CHECK(seeds.size() == 200);
  CHECK(*seeds.begin() > 100000);
  CHECK(*seeds.rbegin() < uint64_t{1} << 48);
  CHECK(seed_of("11690a4", 3) == seed_of("11690a4f4992d16e", 3));
  CHECK(seed_of("11690a4", 3) != seed_of("11690a5", 3));
  CHECK_THROWS_WITH(seed_of("HEAD", 0), Catch::Matchers::ContainsSubstring("no commit's hash"));
}

TEST_CASE("a third of the seeds has max-autotune", "[speed]") {
  int chosen = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) chosen += has_max_autotune(seed);
  CHECK(chosen > 900);
  CHECK(chosen < 1100);
}

TEST_CASE("draws as Python: what a reader sees", "[speed]") {
  Builder b(1, Scale::Small);
  const Value x = b.input(DType::f32, {4, 8}), bias = b.input(DType::f32, {8});
  const Value y = b.call("gelu", {b.call("add", {x, bias})});
  b.differentiate({x, bias}, y, DType::f32, {4, 8});
  CHECK(python(std::move(b).finish()) == R"(def f(x0, x1):
    v0 = x0 + x1
    v1 = F.gelu(v0)
    return v1

def call(f, x0, x1, x2):
    x0 = x0.detach().requires_grad_()
    x1 = x1.detach().requires_grad_()
    y = f(x0, x1)
    return (y.detach(), *torch.autograd.grad(y, (x0, x1,), x2))
)");
}

TEST_CASE("the Python text of 500 draws is Python", "[speed]") {
  if (find_program("python3").empty()) SKIP("no python3");
  std::string all;
  for (uint64_t seed = 1; seed <= 500; seed++) all += python(draw(seed, Scale::Gpu)) + "\n";
  const ProcessResult said =
      run_process({"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"}, all, 60);
  INFO(said.output);
  CHECK(said.exit_code == 0);
}

TEST_CASE("shards of a record are joined and summed up", "[speed]") {
  if (find_program("python3").empty()) SKIP("no python3");
  const tests::Scratch scratch;
  const ProcessResult said =
      run_process({"python3", "-c", kRecordScript, scratch.path("record")}, "", 60);
  INFO(said.output);
  CHECK(said.exit_code == 0);
}

TEST_CASE("a record names the commit that was given, and no folder of its machine", "[speed]") {
  if (find_program("python3").empty()) SKIP("no python3");
  const ProcessResult said = run_process({"python3", "-c", kLabelScript}, "", 60);
  INFO(said.output);
  CHECK(said.exit_code == 0);
}

TEST_CASE("small draws have the interpreter's bits: 1 to 20", "[speed]") { check_seeds(1, 20); }
TEST_CASE("small draws have the interpreter's bits: 21 to 40", "[speed]") {
  check_seeds(21, 40);
}
TEST_CASE("small draws have the interpreter's bits: 41 to 60", "[speed]") {
  check_seeds(41, 60);
}
