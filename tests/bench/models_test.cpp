// The benchmark's models: small, compiled and interpreted alike, with the weights they say.
#include "tests/bench/gpu_measure.h"
#include "tests/bench/models_rows.h"
#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/process.h"

using namespace tiny_compile;
using namespace bench;

namespace {

std::vector<Tensor> inputs_of(const GpuRow& row) {
  std::vector<Tensor> inputs;
  for (const Input& input : row.inputs) inputs.push_back(make_input(input, cpu));
  return inputs;
}

// Compiled C++ has the interpreter's bits; the gradients have their weights' shapes.
void check_models(const std::vector<std::pair<std::string, NetworkMaker>>& networks) {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  for (const auto& [name, make] : networks) {
    INFO(name);
    const GpuRow row = make_model_row(name + "/gradients", true);
    const std::vector<Tensor> inputs = inputs_of(row);
    const auto got = row.prepare({.backend = "cpp"}, inputs).results();
    const auto want = row.prepare({.backend = "interpreter"}, inputs).results();
    REQUIRE(got.size() == make(true).weights.size() + 1);
    CHECK(got[0].shape().empty());
    for (size_t k = 0; k < got.size(); k++) {
      INFO("output " << k);
      CHECK(same_bits(got[k], want[k]));
      if (k > 0) CHECK(got[k].shape() == inputs[k - 1].shape());
    }
    CHECK_NOTHROW(LoadedRow({cpu, true}, name + "/forward", make_model_row).check_small());
  }
}

// The loss after a small step against the gradients falls by what they promise.
void check_slope(const std::string& name) {
  INFO(name);
  const GpuRow row = make_model_row(name + "/gradients", true);
  std::vector<Tensor> inputs = inputs_of(row);
  const auto at = [&] { return row.prepare({.backend = "interpreter"}, inputs).results(); };
  const auto before = at();
  double squares = 0;
  for (size_t k = 1; k < before.size(); k++)
    squares += (before[k] * before[k]).sum().item<double>();
  const double rate = 2e-3 / squares;  // so that the loss should fall by 0.002
  for (size_t k = 1; k < before.size(); k++) inputs[k - 1] = inputs[k - 1] - before[k] * rate;
  const double fallen = before[0].item<double>() - at()[0].item<double>();
  CHECK(fallen == Catch::Approx(2e-3).epsilon(0.1));
}

}  // namespace

TEST_CASE("models of images: compiled as interpreted", "[models]") {
  check_models(image_networks());
}

TEST_CASE("models of sequences: compiled as interpreted", "[models]") {
  check_models(sequence_networks());
}

TEST_CASE("a step down a model's gradients lowers its loss", "[models]") {
  for (const auto& [name, make] : image_networks()) check_slope(name);
  for (const auto& [name, make] : sequence_networks()) check_slope(name);
}

TEST_CASE("the benchmark of models has a class of PyTorch's for each", "[models]") {
  if (find_program("python3").empty()) SKIP("no python3");
  const ProcessResult said = run_process(
      {"python3", "-c",
       "import ast\n"
       "tree = ast.parse(open('tests/bench/models_torch.py').read())\n"
       "print(*sorted(n.name.lower() for n in tree.body if isinstance(n, ast.ClassDef)))"},
      "", 60);
  REQUIRE(said.exit_code == 0);
  for (const std::string& row : model_row_names())
    CHECK((" " + said.output + " ").find(row.substr(0, row.find('/'))) != std::string::npos);
}
