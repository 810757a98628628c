// Program text: what is printed parses back to an equal value; anything else is a tc::Error.
#include "tests/base/mutate.h"
#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// The programs of a random graph after each stage that makes one.
std::vector<Program> programs_of(uint64_t seed) {
  const Graph graph = random_graph(seed);
  std::vector<Program> result;
  for (const char* stage : {"lower", "fuse", "schedule", "plan_memory"})
    result.push_back(run_pipeline(until(default_pipeline(), stage), graph, false).program);
  return result;
}

constexpr const char* kSoftmax = R"(program softmax {
  input x: f32[64,1000]
  output y: f32[64,1000]
  kernel softmax rows(i0: 64) {
    r0: f32 = max(j0: 1000) load x[i0*1000 + j0]
    $1 = exp(sub(load x[i0*1000 + j0], r0))
    r1: f32 = sum(j0: 1000) $1
    store y[i0*1000 + j0] for (j0: 1000) = div($1, r1)
  }
  launch softmax
  return y
}
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kSoftmax;
  return text.replace(text.find(from), from.size(), to);
}

std::string message(const std::string& text) {
  try {
    parse_program(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a program reads as it prints", "[loops][parse]") {
  const Program program = parse_program(kSoftmax);
  CHECK(print(parse_program(print(program))) == print(program));
  CHECK(program.kernels[0].steps.size() == 3);
  CHECK(program.kernels[0].scalars.size() == 6);
}

TEST_CASE("every stage's program parses back to an equal value", "[loops][parse]") {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    for (const Program& program : programs_of(seed)) {
      const std::string text = print(program);
      INFO("seed " << seed << "\n" << text);
      const Program back = parse_program(text);
      if (print(back) != text) CHECK(print(back) == text);
      REQUIRE(back == program);
    }
  }
}

TEST_CASE("errors in a program's text say what is wrong and show where", "[loops][parse]") {
  CHECK_THAT(message(with("load x", "load z")), ContainsSubstring("no buffer 'z'"));
  CHECK_THAT(message(with("exp(", "expp(")), ContainsSubstring("'expp' is no value"));
  CHECK_THAT(message(with("r1: f32", "r2: f32")), ContainsSubstring("here r1"));
  CHECK_THAT(message(with("div($1, r1)", "div($1)")), ContainsSubstring("takes 2 operands"));
  CHECK_THAT(message(with("div($1, r1)", "div($2, r1)")), ContainsSubstring("no line above"));
  CHECK_THAT(message(with("y[i0*1000 + j0]", "y[i0*1000 + k0]")),
             ContainsSubstring("'k0' is no axis"));
  CHECK_THAT(message(with("y[i0*1000 + j0]", "y[i0*1001 + j0]")),
             ContainsSubstring("leaves the buffer's 64000 elements"));
  CHECK_THAT(message(with("launch softmax\n", "")), ContainsSubstring("is launched 0 times"));
  CHECK_THAT(message(with("launch softmax", "launch softmex")),
             ContainsSubstring("did you mean 'softmax'?"));
  CHECK_THAT(message(with("exp(", "expp(")), ContainsSubstring("^"));
}

TEST_CASE("100,000 mutated program texts parse and print back, or are tc::Errors",
          "[loops][parse]") {
  std::vector<std::string> corpus = {kSoftmax};
  for (uint64_t seed = 500; seed < 560; seed++) {
    for (const Program& program : programs_of(seed)) corpus.push_back(print(program));
  }
  std::mt19937_64 random(7);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100'000; i++) {
    const std::string text = tests::mutated(corpus, random);
    std::optional<Program> program;
    try {
      program = parse_program(text);
    } catch (const Error&) {
      refused++;
    }
    if (!program) continue;
    accepted++;
    if (!(parse_program(print(*program)) == *program)) FAIL(text);
  }
  CHECK(accepted > 3'000);
  CHECK(refused > 50'000);
}
