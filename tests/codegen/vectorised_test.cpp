// Is the math of a generated kernel vector code? Each function's loop is compiled as a user's
// would be and its machine code read: some innermost loop must do packed arithmetic, nothing
// scalar, and call nothing.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

namespace {

using namespace tiny_compile;

constexpr double kPatience = 60;  // seconds

struct Instruction {
  uint64_t address = 0;
  std::string name;
  uint64_t target = 0;  // of a jump
};

// "    1123:\tvmulps %zmm0,%zmm1,%zmm2" of the lines after `<function>:`.
std::vector<Instruction> read_listing(const std::string& text, const std::string& function) {
  std::vector<Instruction> code;
  std::istringstream lines(text);
  bool inside = false;
  const std::regex form(R"(^\s*([0-9a-f]+):\s+(\S+)\s*([0-9a-f]*))");
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == ':' && line.find('<') != std::string::npos)
      inside = line.find("<" + function + ">") != std::string::npos;
    std::smatch parts;
    if (!inside || !std::regex_search(line, parts, form)) continue;
    Instruction one{std::stoull(parts[1], nullptr, 16), parts[2], 0};
    const std::string target = parts[3];
    if (one.name[0] == 'j' && !target.empty() && target.size() <= 15)
      one.target = std::stoull(target, nullptr, 16);
    code.push_back(one);
  }
  return code;
}

bool is_packed(const std::string& name) {
  static const std::regex form(
      "v?(add|sub|mul|div|sqrt|min|max|cmp\\w*|blendm|blendv|rndscale|round|"
      "fn?m(add|sub)\\d*)p[sd]|v?cvt\\w*p[sdh]\\w*|v?pmul\\w*|v?padd[dq]|v?psll[dq]|v?psrl[dq]|"
      "v?pxor[dq]?|vpternlog\\w*");
  return std::regex_match(name, form);
}
bool is_scalar(const std::string& name) {
  static const std::regex form("v?(add|sub|mul|div|sqrt|min|max|fn?m(add|sub)\\d*)s[sd]");
  return std::regex_match(name, form);
}

// A jump back with no other jump back between, packed arithmetic and nothing against it.
bool has_vector_loop(const std::vector<Instruction>& code, const std::string& must_have) {
  for (size_t end = 0; end < code.size(); end++) {
    if (!code[end].target || code[end].target > code[end].address) continue;
    bool packed = false, spoiled = false, found = must_have.empty();
    for (size_t at = end; at-- > 0 && code[at].address >= code[end].target;) {
      const std::string& name = code[at].name;
      packed = packed || is_packed(name);
      spoiled = spoiled || is_scalar(name) || name.starts_with("call") ||
                (code[at].target && code[at].target <= code[at].address);
      found = found || name.find(must_have) != std::string::npos;
    }
    if (packed && !spoiled && found) return true;
  }
  return false;
}

std::string why_not() {
#if defined(__x86_64__)
  std::ifstream in("/proc/cpuinfo");
  std::stringstream text;
  text << in.rdbuf();
  if (text.str().find(" fma ") == std::string::npos) return "this CPU has no fma";
  if (find_program("objdump").empty()) return "no objdump here";
  if (std::getenv("TC_CXXFLAGS")) return "$TC_CXXFLAGS asks for other code";
  return "";
#else
  return "the patterns are x86's";
#endif
}

// The machine code of the only kernel of a function of x: f32[4096], or of another shape.
std::vector<Instruction> compile_and_read(const std::function<Tensor(Tensor)>& function,
                                          const Sizes& shape = {4096}) {
  const Tensor x = filled_tensor(Literal::of(DType::f32, 0.5), shape);
  const Traced traced =
      trace([&](std::span<const Tensor> inputs) { return std::vector{function(inputs[0])}; },
            std::span(&x, 1), "f");
  const Source source = run_pipeline(default_pipeline(), traced.graph, true).source;
  REQUIRE(source.kernels.size() == 1);
  CppToolchain toolchain = default_toolchain();
  std::string target =
      (std::filesystem::temp_directory_path() / "tc_vectorised_XXXXXX").string();
  const int file = mkstemp(target.data());
  REQUIRE(file >= 0);
  std::vector<std::string> argv = {toolchain.compiler};
  argv.insert(argv.end(), toolchain.flags.begin(), toolchain.flags.end());
  argv.insert(argv.end(), {"-o", target, "-"});
  const ProcessResult built = run_process(argv, source.text, kPatience);
  INFO(built.output);
  REQUIRE(built.exit_code == 0);
  const std::string listing =
      run_process({"/bin/sh", "-c",
                   "objdump -d --no-show-raw-insn '" + target + "' > '" + target + ".s'"},
                  "", kPatience)
          .output;
  std::ifstream in(target + ".s");
  std::stringstream text;
  text << in.rdbuf();
  std::filesystem::remove(target), std::filesystem::remove(target + ".s");
  return read_listing(text.str(), source.kernels[0].function);
}

void check(const std::string& name, const std::string& must_have,
           const std::function<Tensor(Tensor)>& function) {
  INFO(name);
  CHECK(has_vector_loop(compile_and_read(function), must_have));
}

}  // namespace

TEST_CASE("exponentials and logarithms are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("exp", "fmadd", [](Tensor x) { return exp(x); });
  check("expm1", "fmadd", [](Tensor x) { return expm1(x); });
  check("log", "fmadd", [](Tensor x) { return log(x); });
  check("log1p", "fmadd", [](Tensor x) { return log1p(x); });
  check("exp2", "fmadd", [](Tensor x) { return exp2(x); });
  check("log2", "fmadd", [](Tensor x) { return log2(x); });
  check("log10", "fmadd", [](Tensor x) { return log10(x); });
  check("logaddexp", "divps", [](Tensor x) { return logaddexp(x, x + 1.0); });
}

TEST_CASE("activations are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("tanh", "fmadd", [](Tensor x) { return tanh(x); });
  check("sigmoid", "fmadd", [](Tensor x) { return sigmoid(x); });
  check("erf", "fmadd", [](Tensor x) { return erf(x); });
  check("gelu", "fmadd", [](Tensor x) { return gelu(x); });
  check("silu", "fmadd", [](Tensor x) { return silu(x); });
  check("softplus", "fmadd", [](Tensor x) { return softplus(x); });
  check("gelu_tanh", "fmadd", [](Tensor x) { return gelu(x, "tanh"); });
}

TEST_CASE("the inverses of sin, cos and tan are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("asin", "sqrtps", [](Tensor x) { return asin(x); });
  check("acos", "sqrtps", [](Tensor x) { return acos(x); });
  check("atan", "divps", [](Tensor x) { return atan(x); });
  check("atan2", "divps", [](Tensor x) { return atan2(x, x + 1.0); });
}

TEST_CASE("erfinv, lgamma and digamma are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("erfinv", "sqrtps", [](Tensor x) { return erfinv(x); });
  check("lgamma", "fmadd", [](Tensor x) { return lgamma(x); });
  check("digamma", "divpd", [](Tensor x) { return digamma(x); });
}

TEST_CASE("a bit cast is vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("bitcast", "cmp", [](Tensor x) { return x.view(DType::i32); });
}

TEST_CASE("sin, cos and tan are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("sin", "fmadd", [](Tensor x) { return sin(x); });
  check("cos", "fmadd", [](Tensor x) { return cos(x); });
  check("tan", "divps", [](Tensor x) { return tan(x); });
}

TEST_CASE("roots, casts and choices are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("sqrt", "sqrtps", [](Tensor x) { return sqrt(x); });
  check("rsqrt", "sqrtps", [](Tensor x) { return rsqrt(x); });
  check("cast to i32", "cvt", [](Tensor x) { return x.to(DType::i32); });
  check("cast to f64", "cvt", [](Tensor x) { return x.to(DType::f64); });
  check("cast to bf16", "", [](Tensor x) { return x.to(DType::bf16); });
  check("fma", "fmadd", [](Tensor x) { return fma(x, x + 1.0, x); });
  check("where", "cmp", [](Tensor x) { return where(x > 0.0, x + 1.0, x * 2.0); });
}

TEST_CASE("random numbers are vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  check("dropout", "pmul", [](Tensor x) { return dropout(x, 0.5); });
}

TEST_CASE("functions that keep the sign of a zero do so in vector code", "[vectorised]") {
  if (!why_not().empty()) SKIP(why_not());
  const std::vector<Tensor (*)(const Operand&)> odd = {log1p, expm1, sin,  tan,
                                                       asin,  atan,  tanh, erf};
  const Tensor zeros = from_vector<float>(std::vector<float>(37, -0.0f), {37});
  for (size_t k = 0; k < odd.size(); k++) {
    INFO(k);
    const auto f = [&](const Tensor& x) { return odd[k](x); };
    CHECK(same_bits(compile(f)(zeros), zeros));
    CHECK(same_bits(f(zeros), zeros));
  }
}

TEST_CASE("what stands behind a product is vector code", "[vectorised]") {
  if (const std::string why = why_not(); !why.empty()) {
    WARN("skipped: " << why);
    return;
  }
  const auto code = compile_and_read(
      [](Tensor x) {
        const Tensor y = matmul(x, x);
        return gelu(y) * erf(y) + exp(y * -0.5) * y;
      },
      {128, 128});
  const auto count = [&](const char* packed_or_scalar) {
    return std::count_if(code.begin(), code.end(), [&](const Instruction& one) {
      return one.name.find("div") != std::string::npos && one.name.ends_with(packed_or_scalar);
    });
  };
  CHECK(count("ps") > 0);
  CHECK(count("ps") >= count("ss"));  // a panel's last columns have a scalar loop of their own
}
