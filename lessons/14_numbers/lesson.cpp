// Lesson 14: which bits are right?   build/lessons/14 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// The distance to the next larger float.
float gap_above(float x) { return std::nextafterf(x, INFINITY) - x; }

// Sums ----------------------------------------------------------------------------------------
std::vector<float> row_of(int64_t count) {
  manual_seed(14);
  return rand({count}).to_vector<float>();
}

float left_to_right(const std::vector<float>& x) {
  float sum = 0;
  for (float value : x) sum += value;
  return sum;
}

float right_to_left(const std::vector<float>& x) {
  float sum = 0;
  for (size_t i = x.size(); i-- > 0;) sum += x[i];
  return sum;
}

// What a vector loop does: lane k adds the elements k, k + lanes, k + 2 lanes, ...
float in_lanes(const std::vector<float>& x, size_t lanes) {
  std::vector<float> sums(lanes);
  for (size_t i = 0; i < x.size(); i++) sums[i % lanes] += x[i];
  return left_to_right(sums);
}

float exact(const std::vector<float>& x) {
  double sum = 0;
  for (float value : x) sum += double(value);
  return float(sum);
}

void show_order(const char* title, float sum, float right) {
  std::printf("%-26s %-16a %14.6f  %+7.0f ulp\n", title, double(sum), double(sum),
              double((sum - right) / gap_above(right)));
}

void show_orders() {
  const std::vector<float> x = row_of(1000003);
  const float right = exact(x);
  show_order("left to right", left_to_right(x), right);
  show_order("right to left", right_to_left(x), right);
  show_order("8 lanes", in_lanes(x, 8), right);
  show_order("16 lanes", in_lanes(x, 16), right);
  show_order("tiny_compile", from_vector(x).sum().item<float>(), right);
  show_order("exact, rounded once", right, right);
}

void show_gaps() {
  std::printf("%14s  %-18s %s\n", "x", "bits", "to the next float");
  for (float x : {0.001f, 1.0f, 1000.0f, 500006.0f, 16777216.0f})
    std::printf("%14g  %-18a %g\n", double(x), double(x), double(gap_above(x)));
}

// A row's sum, however it is asked for.
using Ask = std::function<Tensor(Tensor)>;

void show_bits(const char* title, const Ask& ask, const Tensor& x, int64_t row,
               const CompileOptions& options) {
  const Tensor sums = compile(ask, options)(x);
  std::printf("%-46s %a\n", title, sums.to_vector<double>()[size_t(row)]);
}

void show_same() {
  const Tensor row = from_vector(row_of(1000), Sizes{1, 1000});
  const Tensor rows = concat({rand({40, 1000}), row, rand({23, 1000})});
  const Ask last = [](Tensor x) { return x.sum(-1); };
  const Ask first = [](Tensor x) { return x.sum(0); };
  const Ask after = [](Tensor x) { return (x * 1 + 0).sum(-1); };
  const CompileOptions cpp = {.backend = "cpp", .pipeline = pipeline()};
  const CompileOptions plain = {.backend = "cpp", .pipeline = until(pipeline(), "fuse")};
  show_bits("alone, interpreted", last, row, 0, {.backend = "interpreter"});
  show_bits("alone, compiled", last, row, 0, cpp);
  show_bits("row 40 of 64", last, rows, 40, cpp);
  show_bits("row 40 of 64, a plain loop", last, rows, 40, plain);
  show_bits("column 40 of 64, which is strided", first, rows.t(), 40, cpp);
  show_bits("column 40 of 64, copied to be one", first, rows.t().contiguous(), 40, cpp);
  show_bits("fused behind two other ops", after, rows, 40, cpp);
}

// The tree of five elements, of which each level adds the upper half to the lower.
void show_tree() {
  std::vector<std::string> lanes = {"x0", "x1", "x2", "x3", "x4", "", "", ""};
  std::printf("flowchart TD\n");
  for (size_t half = 4; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; i++) {
      if (lanes[i + half].empty()) continue;  // the identity: x + -0 is x
      const std::string sum = str("s", half, "_", i);
      std::printf("  %s --> %s([\"+\"])\n  %s --> %s\n", lanes[i].c_str(), sum.c_str(),
                  lanes[i + half].c_str(), sum.c_str());
      lanes[i] = sum;
    }
  }
}

// Functions of a real number -------------------------------------------------------------------
using Real = float (*)(float);
using Judge = double (*)(double);

// Units in the last place of a float result.
double error_in_ulp(float value, double wanted) {
  const int exponent = wanted == 0 ? -125 : std::max(std::ilogb(wanted) + 1, -125);
  return std::fabs(double(value) - wanted) / std::ldexp(1.0, exponent - 24);
}

// The formula of the textbook.
float textbook_gelu(float x) { return 0.5f * x * (1.0f + prelude::tc_erf(x * 0.70710678f)); }

void show_histogram(const char* name, Real function, Judge judge) {
  constexpr int kSamples = 1 << 17;
  std::array<int, 5> counts{};
  double worst = 0, at = 0;
  for (int i = 0; i < kSamples; i++) {
    const float x = float(i - kSamples / 2) * 0x1p-13f + 0x1p-15f;  // -8 to 8
    if (name[0] == 'l' && x < 0) continue;                          // no log there
    const double error = error_in_ulp(function(x), judge(double(x)));
    counts[std::min(size_t(error * 2), counts.size() - 1)]++;
    if (error > worst) worst = error, at = double(x);
  }
  std::printf("%-14s", name);
  for (int count : counts) std::printf("%9d", count);
  std::printf("  %9.2f at %.3f\n", worst, at);
}

void show_ulps() {
  using namespace prelude;
  std::printf("%-14s%9s%9s%9s%9s%9s  %9s\n", "ulp", "to 0.5", "to 1", "to 1.5", "to 2", "more",
              "worst");
  const auto show = [](const char* name, Real function, Judge judge) {
    show_histogram(name, function, judge);
  };
  show(
      "1 / x", [](float x) { return 1 / x; }, [](double x) { return 1 / x; });
  show(
      "exp", [](float x) { return tc_exp(x); }, [](double x) { return tc_exp(x); });
  show(
      "log", [](float x) { return tc_log(x); }, [](double x) { return tc_log(x); });
  show(
      "tanh", [](float x) { return tc_tanh(x); }, [](double x) { return tc_tanh(x); });
  show(
      "gelu", [](float x) { return tc_gelu(x); }, [](double x) { return tc_gelu(x); });
  show("textbook gelu", textbook_gelu, [](double x) { return tc_gelu(x); });
}

// Whole turns taken off in float, as one does on paper.
float paper_sin(float x) {
  const float turns = std::round(x * 0.15915494f);
  return prelude::tc_sin(x - turns * 6.2831855f);
}

void show_angles() {
  std::printf("%10s %12s %12s %12s\n", "x", "on paper", "tc_sin", "f64");
  for (float x : {1.0f, 1000.0f, 1e6f, 1e9f, 1e22f})
    std::printf("%10g %12.7f %12.7f %12.7f\n", double(x), double(paper_sin(x)),
                double(prelude::tc_sin(x)), prelude::tc_sin(double(x)));
}

void show_halves() {
  using namespace prelude;
  std::printf("%10s %22s %22s\n", "f32", "bf16", "f16");
  for (float x : {1.0f / 3, 257.0f, 258.0f, 259.0f, 2049.0f, 65520.0f, 1e-6f}) {
    const tc_bf16 b = tc_to_bf16(x);
    const tc_f16 h = tc_to_f16(x);
    std::printf("%10.7g %13.7g (0x%04x) %13.7g (0x%04x)\n", double(x), double(tc_to_f32(b)),
                b.bits, double(tc_to_f32(h)), h.bits);
  }
}

// Contraction ----------------------------------------------------------------------------------
void show_fma() {
  const float a = 0.1f, ab = a * a;
  std::printf("a = 0.1f\na * a - a * a        %a\n", double(ab - ab));
  std::printf("fma(a, a, -(a * a))  %a\n", double(prelude::tc_fma(a, a, -ab)));
}

Tensor determinant(Tensor a, Tensor b, Tensor c, Tensor d) { return a * b - c * d; }

void count_zeros(const char* title) {
  manual_seed(1);
  const Tensor a = rand({1000}), b = rand({1000});
  const auto f = compile(determinant, {.backend = "cpp", .pipeline = pipeline()});
  const std::vector<float> values = f(a, b, a, b).to_vector<float>();
  std::printf("%-24s %4td of 1000 are 0\n", title,
              std::count(values.begin(), values.end(), 0.0f));
}

void show_break() {
  unsetenv("TC_CXXFLAGS");
  count_zeros("contraction off");
  setenv("TC_CXXFLAGS", "-ffp-contract=fast", 1);
  count_zeros("contraction on");
  unsetenv("TC_CXXFLAGS");
}

void show_draws() {
  manual_seed(3);
  const auto f = compile([](Tensor x) { return x * 0 + rand({4}); }, {.backend = "cpp"});
  std::printf("compiled  %s\n", f(zeros({4})).str().c_str());
  manual_seed(3);
  std::printf("at once   %s\n", rand({4}).str().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"orders", show_orders},
                     {"gaps", show_gaps},
                     {"same", show_same},
                     {"tree", show_tree},
                     {"ulps", show_ulps},
                     {"angles", show_angles},
                     {"halves", show_halves},
                     {"fma", show_fma},
                     {"break", show_break},
                     {"draws", show_draws}});
}
