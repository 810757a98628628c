// A source defines what its kernels say they call; what a user named after a helper, or a file,
// brings nothing along.
#include "tiny_compile/codegen/calls.h"

#include <cctype>
#include <iterator>
#include <sstream>

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// y = x + x, where every name that a user may choose is `name`.
Program doubled(const std::string& name, Target target) {
  Program program = parse_program(
      str("program ", name, " {\n  input ", name, ": f32[4]\n  output y: f32[4]\n  kernel ",
          name, " rows(i0: 4) {\n    store y[i0] = add(load ", name, "[i0], load ", name,
          "[i0])\n  }\n  launch ", name, "\n  return y\n}\n"));
  program = for_machine(std::move(program), default_machine(target));
  program.kernels[0].where = {{name + ".cpp", 3}};
  return program;
}

Source emitted(const Program& program) { return emit(lower_to_tiles(program)); }

// With "plain" for each `name`.
std::string without(std::string text, const std::string& name) {
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
    text.replace(at, name.size(), "plain");
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The words of a text that begin with tc_, comments aside.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.size(), line.find("//")));
    for (size_t at = 0; (at = line.find("tc_", at)) != std::string::npos;) {
      size_t end = at;
      while (end < line.size() && is_word(line[end])) end++;
      if (at == 0 || !is_word(line[at - 1])) words.insert(line.substr(at, end - at));
      at = end;
    }
  }
  return words;
}

std::set<std::string> names_in(const char* blanks_between) {
  std::istringstream words(blanks_between);
  return {std::istream_iterator<std::string>(words), {}};
}

// Of these words, those that are defined somewhere else than in the helper: other helpers and
// functions of the prelude.
std::set<std::string> called_by(const CudaHelper& helper) {
  std::set<std::string> called;
  for (const std::string& word : words_of(helper.text)) {
    Calls one;
    one.doubles = true;
    one(word);
    if (!prelude_for(one, true).empty() && !helper.for_doubles) called.insert(word);
    for (const auto& helpers : {cuda_compute_helpers(), cuda_memory_helpers()}) {
      for (const CudaHelper& other : helpers) {
        if (other.name == word && word != helper.name) called.insert(word);
      }
    }
  }
  return called;
}

}  // namespace

TEST_CASE("a name that a user chose calls nothing", "[codegen][calls]") {
  const std::vector<std::string> helpers = {
      "tc_erf",  "tc_exp",       "tc_block_sum", "tc_expect",   "tc_clamp",
      "tc_best", "tc_node",      "tc_pack",      "tc_in_range", "tc_cluster_barrier",
      "double",  "tc_sum_float", "tc_stream"};
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    const Source plain = emitted(doubled("plain", target));
    for (const std::string& name : helpers) {
      const std::string text = emitted(doubled(name, target)).text;
      INFO(text);
      CHECK(without(text, name) == without(plain.text, name));
    }
  }
}

TEST_CASE("what a kernel calls is in its source's calls", "[codegen][calls]") {
  const Graph graph = parse_graph(
      "graph g(%0 x: f64[4,2000]) {\n  %1: f64[4,2000] = erf %0\n"
      "  %2: f64[4,1] = sum %1 {axes=[1], keepdim=1}\n  return %2\n}\n");
  const Source source = run_pipeline(default_pipeline(), graph, true, Target::Cuda).source;
  CHECK(source.calls.has("tc_erf"));
  CHECK(source.calls.has("tc_read"));
  CHECK(source.calls.doubles);
  CHECK_FALSE(source.calls.has("tc_exp_below"));
  REQUIRE_THAT(source.text, ContainsSubstring("tc_erf(double x)"));
}

// The text is searched here alone: what is printed and not said would not compile.
TEST_CASE("every call in a random graph's source is said", "[codegen][calls]") {
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    for (uint64_t seed = 0; seed < 200; seed++) {
      const Graph graph = random_graph(seed);
      const Source source = run_pipeline(default_pipeline(), graph, true, target).source;
      if (source.kernels.empty()) continue;
      const size_t kernels = source.text.find(" " + source.kernels[0].function + "(");
      if (kernels == std::string::npos) continue;
      for (const std::string& word : words_of(source.text.substr(kernels))) {
        Calls one;
        one.doubles = true;
        one(word);
        INFO("seed " << seed << ": " << word);
        CHECK((prelude_for(one, false).empty() || source.calls.has(word)));
      }
    }
  }
}

TEST_CASE("a helper of CUDA says what it calls", "[codegen][calls]") {
  for (const auto& helpers : {cuda_compute_helpers(), cuda_memory_helpers()}) {
    for (const CudaHelper& helper : helpers) {
      if (helper.for_doubles) continue;
      INFO(helper.name);
      std::set<std::string> said = names_in(helper.calls);
      said.erase(helper.name);  // an overload of a function of the prelude
      std::set<std::string> called = called_by(helper);
      called.erase(helper.name);
      CHECK(called == said);
    }
  }
}
