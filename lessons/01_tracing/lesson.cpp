// Lesson 01: how does running write code down?   build/lessons/01 [part]
#include "lessons/tools/lesson.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// Square roots by Newton's method.
Tensor root(Tensor x) {
  Tensor guess = x;
  for (int step = 0; step < 3; step++) {
    Tensor other = x / guess;
    Tensor sum = guess + other;
    guess = sum * 0.5;
  }
  return guess;
}

Tensor weigh(Tensor counts, Tensor weights) {
  Tensor product = counts * weights;
  return product - 1;
}

Tensor halve_large(Tensor x) {
  Tensor total = x.sum();
  Tensor is_large = total > 10;
  if (is_large) return x * 0.5;
  return x;
}

Tensor halve_long(Tensor x) {
  if (x.size(0) > 10) return x * 0.5;
  return x;
}

Tensor softmax_of_rows(Tensor x) { return softmax(x, -1); }

void print_graph(const Graph& graph) { std::printf("%s", print(graph).c_str()); }

void show_graph() {
  print_graph(compile(root, {.name = "root"}).specialization(randn({5})).traced.graph);
}

// The same body, with a look at the handles while it runs.
Tensor root_step(Tensor x) {
  std::printf("x is      %s\n", x.str().c_str());
  Tensor other = x / x;
  std::printf("other is  %s\n", other.str().c_str());
  Tensor sum = x + other;
  std::printf("sum is    %s\n", sum.str().c_str());
  return sum * 0.5;
}

void show_handles() {
  std::printf("called with numbers:\n");
  const Tensor result = root_step(tensor({4.0f, 9.0f}));
  std::printf("result is %s\n\ncalled while traced:\n", result.str().c_str());
  (void)compile(root_step).specialization(tensor({4.0f, 9.0f}));
}

void show_calls() {
  int runs = 0;
  auto counted = compile(
      [&runs](Tensor x) {
        runs++;
        return root(x);
      },
      {.backend = "interpreter"});
  const Tensor x = tensor({1.0f, 4.0f, 9.0f});
  for (int call = 1; call <= 3; call++) {
    const std::string result = counted(x).str();
    std::printf("call %d: %s, your function has run %d time\n", call, result.c_str(), runs);
  }
}

void show_promotion() {
  const Tensor counts = zeros({3}, int64), weights = zeros({2, 1}, float16);
  print_graph(compile(weigh, {.name = "weigh"}).specialization(counts, weights).traced.graph);
}

void show_softmax() {
  print_graph(compile(softmax_of_rows, {.name = "softmax_of_rows"})
                  .specialization(randn({4, 1000}))
                  .traced.graph);
}

void show_branch() {
  std::printf("with numbers: %s\n", halve_large(tensor({8.0f, 4.0f})).str().c_str());
  try {
    compile(halve_large)(tensor({8.0f, 4.0f}));
  } catch (const Error& error) {
    std::printf("traced: %s\n", error.what());
  }
}

void show_sizes() {
  for (int64_t size : {5, 50})
    print_graph(
        compile(halve_long, {.name = "halve_long"}).specialization(zeros({size})).traced.graph);
}

void show_break() {
  int bonus = 0;
  auto add_bonus = [&bonus](Tensor x) { return x + bonus; };
  const auto hidden = compile(add_bonus, {.backend = "interpreter"});
  auto add_given = [](Tensor x, Tensor given) { return x + given; };
  const auto shown = compile(add_given, {.backend = "interpreter"});
  const Tensor x = tensor({10.0f});
  std::printf("bonus   eager          captured       passed\n");
  for (bonus = 1; bonus <= 3; bonus++) {
    const std::string eager = add_bonus(x).str(), captured = hidden(x).str(),
                      passed = shown(x, bonus).str();
    std::printf("%d       %-14s %-14s %s\n", bonus, eager.c_str(), captured.c_str(),
                passed.c_str());
  }
  bonus = 1;
  print_graph(compile(add_bonus, {.name = "captured"}).specialization(x).traced.graph);
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"graph", show_graph},
                     {"handles", show_handles},
                     {"calls", show_calls},
                     {"promotion", show_promotion},
                     {"softmax", show_softmax},
                     {"sizes", show_sizes},
                     {"branch", show_branch},
                     {"break", show_break}});
}
