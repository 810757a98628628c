// Lesson 10: how does a loop become text?   build/lessons/10 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/element.h"

extern "C" void omp_set_num_threads(int);  // clang may come without omp.h

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// A row of x is let through as far as its gate is open.
Tensor gated(Tensor x, Tensor gate) {
  Tensor open = sigmoid(gate);
  return x * open;
}

Tensor unit_rows(Tensor x) {
  Tensor squares = (x * x).sum(-1, true);
  return x * rsqrt(squares);
}

Tensor bake(Tensor x) { return exp(x * (1.0 / 3)); }

std::vector<Tensor> gate_inputs() {
  manual_seed(1);
  return {randn({1000, 257}), randn({1000, 1})};
}

Graph gate_graph() {
  const std::vector<Tensor> in = gate_inputs();
  return compile(gated, {.name = "gated"}).specialization(in[0], in[1]).traced.graph;
}

Staged staged(const Graph& graph) { return run_pipeline(pipeline(), graph, true); }

// From the first kernel to the end.
std::string kernels_of(const std::string& text) {
  return text.substr(text.find("extern \"C\" void k_"));
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void show_kernel() {
  const Program program = staged(gate_graph()).program;
  std::printf("%s", print(program, program.kernels[0]).c_str());
}

void show_text() { std::printf("%s", kernels_of(staged(gate_graph()).source.text).c_str()); }

void show_entry() {
  for (const KernelEntry& kernel : staged(gate_graph()).source.kernels)
    std::printf("%s(buffers, begin, end): %lld units, at least %lld a thread\n",
                kernel.function.c_str(), static_cast<long long>(kernel.units.constant()),
                static_cast<long long>(kernel.grain.constant()));
}

// Every name that a definition before the kernels defines.
void show_prelude() {
  const std::string text = staged(gate_graph()).source.text;
  const std::string before = text.substr(0, text.find("extern \"C\" void k_"));
  std::printf("%zu lines, %zu of them before the kernel:\n", lines_of(text), lines_of(before));
  for (size_t at = 0; (at = before.find("\nTC_FN ", at)) != std::string::npos; at++)
    std::printf("  %s\n", before.substr(at + 1, before.find('(', at) - at - 1).c_str());
}

void show_rows() {
  const auto function = compile(unit_rows, {.name = "unit_rows"});
  const Staged all = staged(function.specialization(randn({1000, 257})).traced.graph);
  std::printf("%s\n%s", print(all.program, all.program.kernels[0]).c_str(),
              kernels_of(all.source.text).c_str());
}

// One line a kernel: how it will be run, who asked for it.
void show_family(const char* title, const Graph& graph) {
  const Staged all = staged(graph);
  for (size_t k = 0; k < all.program.kernels.size(); k++) {
    const Strategy strategy = schedule_of(all.program.kernels[k]).strategy;
    std::printf("%-12s %-10s %5lld units\n", title, name_of(strategy),
                static_cast<long long>(all.source.kernels[k].units.constant()));
  }
}

void show_families() {
  const Tensor x = randn({1000, 257}), square = randn({256, 256});
  const auto graph = [](const auto& function, const auto&... inputs) {
    return compile(function).specialization(inputs...).traced.graph;
  };
  show_family("exp(x)", graph([](Tensor a) { return exp(a); }, x));
  show_family("x.sum(-1)", graph([](Tensor a) { return a.sum(-1); }, x));
  show_family("x.sum(0)", graph([](Tensor a) { return a.sum(0); }, x));
  show_family("x.t() + y", graph([](Tensor a, Tensor b) { return a.t() + b; }, square, square));
  show_family("matmul(x, y)",
              graph([](Tensor a, Tensor b) { return matmul(a, b); }, square, square));
}

// Elements that differ, and by how many steps from one float to the next at most.
struct Difference {
  int64_t elements = 0;
  long long largest = 0;
};

Difference difference(const Tensor& lhs, const Tensor& rhs) {
  Difference result;
  const std::vector<float> a = lhs.to_vector<float>(), b = rhs.to_vector<float>();
  for (size_t i = 0; i < a.size(); i++) {
    const long long steps = std::abs(static_cast<long long>(std::bit_cast<int32_t>(a[i])) -
                                     static_cast<long long>(std::bit_cast<int32_t>(b[i])));
    result.elements += steps != 0;
    result.largest = std::max(result.largest, steps);
  }
  return result;
}

template <typename Function>
double median_microseconds(const Function& run) {
  std::vector<double> times(101);
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    run();
    time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
               .count();
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  return times[50];
}

// A text run in the place of the generated one: against the interpreter, and against the clock.
void measure(const char* title, const Program& program, Source source,
             const std::string& text) {
  source.text = text;
  const std::vector<Tensor> inputs = gate_inputs();
  const Built built = build(program, source);
  const Difference other = difference(interpret(program, inputs)[0], built.run(inputs)[0]);
  const double time = median_microseconds([&] { built.run(inputs); });
  std::printf("%-34s %6lld bits differ   %6.0f us  %6.1f GB/s\n", title,
              static_cast<long long>(other.elements), time,
              static_cast<double>(bytes_moved(program)) / time * 1e-3);
}

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  CHECK(text.find(before) != std::string::npos, "the text has no ", before);
  for (size_t at = 0; (at = text.find(before, at)) != std::string::npos; at += after.size())
    text.replace(at, before.size(), after);
  return text;
}

void show_run() {
  const Staged all = staged(gate_graph());
  measure("as generated", all.program, all.source, all.source.text);
}

// The same text, made worse by hand.
void show_hoist() {
  const Staged all = staged(gate_graph());
  const std::string text = all.source.text;
  const std::string gate =
      "    const float load_1 = in_x1[i0];\n"
      "    const float sigmoid_2 = tc_sigmoid(load_1);\n";
  const std::string loop = "j0 < 257; j0++) {\n";
  const std::string inside = replaced(replaced(text, gate, ""), loop, loop + gate);
  const std::string careful =
      replaced(replaced(inside, " __restrict", ""), "    #pragma GCC ivdep\n", "");
  measure("sigmoid before the loop over j0", all.program, all.source, text);
  measure("in it", all.program, all.source, inside);
  measure("in it, no __restrict, no ivdep", all.program, all.source, careful);
}

// 0x1.555556p-2f => 0.333333f, wherever a float is written.
std::string with_short_floats(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    char* end = nullptr;
    const double value = text.compare(at, 2, "0x") == 0 ? std::strtod(&text[at], &end) : 0;
    const size_t length = end ? static_cast<size_t>(end - &text[at]) : 1;
    if (end && text.substr(at, length).find('p') != std::string::npos) {
      char shorter[32];
      std::snprintf(shorter, sizeof shorter, "%g", value);
      const std::string word = shorter;
      result += word.find_first_of(".e") == std::string::npos ? word + ".0" : word;
    } else {
      result += text.substr(at, length);
    }
    at += length;
  }
  return result;
}

void show_break() {
  manual_seed(1);
  const Tensor x = randn({100'000});
  const Staged all = staged(compile(bake, {.name = "bake"}).specialization(x).traced.graph);
  const std::vector<Tensor> inputs = {x};
  const Tensor wanted = interpret(all.program, inputs)[0];
  const std::string text = all.source.text;
  const size_t kernel = text.find("extern \"C\" void k_");
  const std::string before = text.substr(0, kernel), after = text.substr(kernel);
  const auto show = [&](const char* title, const std::string& source_text) {
    Source source = all.source;
    source.text = source_text;
    const Difference other = difference(wanted, build(all.program, source).run(inputs)[0]);
    std::printf("%-24s %6lld of 100000 differ, by up to %lld ulp\n", title,
                static_cast<long long>(other.elements), other.largest);
  };
  show("hexadecimal", text);
  show("%g in the kernel", before + with_short_floats(after));
  show("%g in tc_exp as well", with_short_floats(text));
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  return show_parts(argc, argv,
                    {{"kernel", show_kernel},
                     {"text", show_text},
                     {"entry", show_entry},
                     {"prelude", show_prelude},
                     {"rows", show_rows},
                     {"families", show_families},
                     {"run", show_run},
                     {"hoist", show_hoist},
                     {"break", show_break}});
}
