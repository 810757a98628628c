#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Number;
using exercise::Numbers;
using exercise::record;

namespace {

std::string records(const std::function<Number(Numbers)>& f, int inputs,
                    const std::string& header, const std::string& body) {
  Graph want = graph_of(header, body);
  want.name = "recorded";
  const Graph got = record(f, inputs);
  if (const std::optional<Problem> problem = find_problem(got))
    return "what you recorded is no sound graph: " + problem->message + "\n" + print(got);
  return got == want ? "" : "yours:\n" + print(got) + "wanted:\n" + print(want);
}

}  // namespace

TEST_CASE("operators become nodes") {
  EXPECT(records([](Numbers x) { return x[0] * x[0] - x[1]; }, 2, "%0 x0: f32[], %1 x1: f32[]",
                 "%2: f32[] = mul %0, %0; %3: f32[] = sub %2, %1; return %3"));
  EXPECT(records([](Numbers x) { return sqrt(x[0]) / x[0]; }, 1, "%0 x0: f32[]",
                 "%1: f32[] = sqrt %0; %2: f32[] = div %1, %0; return %2"));
}

TEST_CASE("a number becomes a constant") {
  EXPECT(records([](Numbers x) { return x[0] + 2; }, 1, "%0 x0: f32[]",
                 "%1: f32[] = constant {value=2.0}; %2: f32[] = add %0, %1; return %2"));
  EXPECT(records([](Numbers x) { return 2 / x[0]; }, 1, "%0 x0: f32[]",
                 "%1: f32[] = constant {value=2.0}; %2: f32[] = div %1, %0; return %2"));
}

TEST_CASE("each use of a number is a constant of its own") {
  EXPECT(records(
      [](Numbers x) {
        const Number two = 2;
        const Number doubled = two * x[0];
        return doubled - two;
      },
      1, "%0 x0: f32[]",
      "%1: f32[] = constant {value=2.0}; %2: f32[] = mul %1, %0;"
      "%3: f32[] = constant {value=2.0}; %4: f32[] = sub %2, %3; return %4"));
}

TEST_CASE("numbers alone are computed at once") {
  CHECK((Number(2) * Number(3) + 1).value == 7.0f);
  CHECK((Number(2) * Number(3)).recording == nullptr);
  EXPECT(records([](Numbers x) { return x[0] + Number(2) * Number(3); }, 1, "%0 x0: f32[]",
                 "%1: f32[] = constant {value=6.0}; %2: f32[] = add %0, %1; return %2"));
}

TEST_CASE("a loop leaves its rounds behind") {
  const Graph graph = record(
      [](Numbers x) {
        Number guess = x[0];
        for (int step = 0; step < 4; step++) guess = (guess + x[0] / guess) * 0.5f;
        return guess;
      },
      1);
  CHECK(graph.size() == 1 + 4 * 4);
  const std::vector<Tensor> inputs = {filled_tensor(Literal::of(DType::f32, 9), {})};
  CHECK(interpret(graph, inputs)[0].item<float>() == Approx(3.0).epsilon(0.01));
}

TEST_CASE("an input may be the result") {
  EXPECT(records([](Numbers x) { return x[1]; }, 2, "%0 x0: f32[], %1 x1: f32[]", "return %1"));
}

TEST_CASE("a plain number may be the result") {
  EXPECT(records([](Numbers) { return Number(3); }, 1, "%0 x0: f32[]",
                 "%1: f32[] = constant {value=3.0}; return %1"));
}

TEST_CASE("numbers of two recordings do not meet") {
  auto nested = [](Numbers outer) {
    record([&](Numbers inner) { return inner[0] + outer[0]; }, 1);
    return outer[0];
  };
  CHECK_THROWS_AS(record(nested, 1), Error);
  auto returned = [](Numbers outer) {
    record([&](Numbers) { return outer[0]; }, 1);
    return outer[0];
  };
  CHECK_THROWS_AS(record(returned, 1), Error);
}

TEST_CASE("two recordings one in the other keep their nodes apart") {
  Graph inner;
  const Graph outer = record(
      [&](Numbers x) {
        const Number twice = x[0] + x[0];
        inner = record([](Numbers y) { return y[0] * y[0]; }, 1);
        return twice - x[0];
      },
      1);
  CHECK(outer.size() == 3);
  CHECK(inner.size() == 2);
}
