#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/catch.h"
#include "tests/graph/hand_case.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/npy.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

// A graph of one output and what it should be, in NumPy over its inputs a, b, c. Without a
// tolerance (a NumPy expression of the expected r as well) every element must be equal.
struct Check {
  std::string graph, expected, tolerance = {};
};

// Where random inputs lie; every third is a whole number.
struct Range {
  double low = -8, high = 8;
};

// Reads DIR/cases.txt, a line "<inputs>\t<expected>\t<tolerance>" for each case.
const char* const kScript = R"(
import math, os, sys
try: import numpy as np
except ImportError: sys.exit(77)
np.seterr(all='ignore')
folder = sys.argv[1]
erf = np.vectorize(math.erf, otypes=['f8'])
erfc = np.vectorize(math.erfc, otypes=['f8'])
lgamma = np.vectorize(lambda x: np.inf if x <= 0 and x == int(x) else math.lgamma(x), otypes=['f8'])
def wide(x): return x.astype('f8')
def ulp(r, dtype): return np.spacing(np.abs(r).astype(dtype)).astype('f8')
def windows(x, size, step, axis):
    starts = range(0, x.shape[axis] - size + 1, step)
    parts = [np.moveaxis(np.take(x, range(s, s + size), axis), axis, -1) for s in starts]
    return np.stack(parts, axis)
def scattered(x, index, source, axis):
    out = x.copy()
    for at in np.ndindex(index.shape):
        to = list(at); to[axis] = index[at]
        out[tuple(to)] += source[at]
    return out
for number, line in enumerate(open(os.path.join(folder, 'cases.txt'))):
    count, expected, tolerance = line.rstrip('\n').split('\t')
    names = dict(globals())
    for i in range(int(count)):
        names['abc'[i]] = np.load(os.path.join(folder, f'{number}_{i}.npy'))
    r = names['r'] = np.asarray(eval(expected, names))
    np.save(os.path.join(folder, f'{number}_r.npy'), np.ascontiguousarray(r).reshape(r.shape))
    if tolerance:
        t = np.broadcast_to(np.asarray(eval(tolerance, names), 'f8'), r.shape)
        np.save(os.path.join(folder, f'{number}_t.npy'), np.ascontiguousarray(t).reshape(r.shape))
)";

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    path = (std::filesystem::temp_directory_path() / "tc_numpy_XXXXXX").string();
    if (!mkdtemp(path.data())) fail("no temporary folder ", path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

Tensor random_tensor(const Type& type, Range range, std::mt19937_64& random) {
  Sizes shape;
  for (const Expr& size : type.shape) shape.push_back(size.constant());
  const Tensor result = empty_tensor(type.dtype, shape);
  std::uniform_real_distribution<double> real(range.low, range.high);
  const size_t width = size_of(type.dtype);
  for (int64_t i = 0; i < result.numel(); i++) {
    const double x = real(random);
    const Literal value = type.dtype == boolean ? Literal::of(boolean, x > 0)
                          : i % 3 == 0          ? Literal::of(type.dtype, std::round(x))
                                                : Literal::of(type.dtype, x);
    std::memcpy(result.bytes() + static_cast<size_t>(i) * width, &value.bits, width);
  }
  return result;
}

// The first element that is further from the expected one than allowed, or "".
std::string difference(const Tensor& actual, const Tensor& expected,
                       const std::optional<Tensor>& tolerance) {
  if (actual.shape() != expected.shape())
    return str("shape ", join(actual.shape(), ","), ", not ", join(expected.shape(), ","));
  if (!tolerance && actual.dtype() != expected.dtype())
    return str("dtype ", actual.dtype(), ", not ", expected.dtype());
  const std::vector<Literal> found = literals(actual.dtype(), text_of(actual)),
                             wanted = literals(expected.dtype(), text_of(expected));
  const std::vector<double> allowed =
      tolerance ? tolerance->to_vector<double>() : std::vector<double>(found.size());
  for (size_t i = 0; i < found.size(); i++) {
    const double x = found[i].as_double(), y = wanted[i].as_double();
    const bool both_nan = x != x && y != y;
    const bool is_exact = is_float(actual.dtype()) ? x == y : found[i].bits == wanted[i].bits;
    if (both_nan || is_exact || (tolerance && std::fabs(x - y) <= allowed[i])) continue;
    return str("element ", i, " is ", found[i].str(), ", not ", wanted[i].str());
  }
  return "";
}

// Interprets every graph on random inputs, asks NumPy once for all of them, and compares.
void compare(const std::vector<Check>& checks, Range range = {}) {
  if (find_program("python3").empty()) SKIP("no python3");
  const TemporaryFolder folder;
  std::mt19937_64 random(17);
  std::ofstream cases(folder.path + "/cases.txt");
  std::vector<Tensor> actual;
  for (size_t number = 0; number < checks.size(); number++) {
    INFO(checks[number].graph);
    const Graph graph = parse_graph(checks[number].graph);
    std::vector<Tensor> inputs;
    for (int id : graph.inputs()) {
      inputs.push_back(random_tensor(graph[id].type, range, random));
      save_npy(str(folder.path, "/", number, "_", inputs.size() - 1, ".npy"), inputs.back());
    }
    cases << inputs.size() << "\t" << checks[number].expected << "\t"
          << checks[number].tolerance << "\n";
    actual.push_back(interpret(graph, inputs)[0]);
  }
  cases.close();
  std::ofstream(folder.path + "/check.py") << kScript;
  const ProcessResult result =
      run_process({"python3", folder.path + "/check.py", folder.path}, "", 120);
  if (result.exit_code == 77) SKIP("no numpy");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  for (size_t number = 0; number < checks.size(); number++) {
    const std::string name = str(folder.path, "/", number);
    INFO(checks[number].graph << "\nagainst " << checks[number].expected);
    std::optional<Tensor> tolerance;
    if (!checks[number].tolerance.empty()) tolerance = load_npy(name + "_t.npy");
    CHECK(difference(actual[number], load_npy(name + "_r.npy"), tolerance) == "");
  }
}

// op on tensors of one shape: f32[33,7] and the like.
std::string pointwise(const std::string& op, int arity, const std::string& type,
                      const std::string& result) {
  std::vector<std::string> parameters, ids;
  for (int i = 0; i < arity; i++) {
    parameters.push_back(str("%", i, " x", i, ": ", type));
    ids.push_back(str("%", i));
  }
  return str("graph f(", join(parameters, ", "), ") {\n %", arity, ": ", result, " = ", op, " ",
             join(ids, ", "), "\n return %", arity, "\n}");
}

const char* const kShapes[] = {"[]", "[0]", "[1]", "[7]", "[33,7]", "[1,0,3]", "[7,33,2]"};

// unary("f32[7]", "f32[7]", "flip {axes=[0]}")
std::string unary(const std::string& type, const std::string& result, const std::string& op) {
  const size_t space = op.find(' ');
  return str("graph f(%0 x: ", type, ") {\n %1: ", result, " = ", op.substr(0, space), " %0",
             space == std::string::npos ? "" : op.substr(space), "\n return %1\n}");
}

}  // namespace

TEST_CASE("NumPy agrees on float arithmetic and comparisons, bit for bit", "[numpy]") {
  const std::pair<const char*, const char*> ops[] = {
      {"add", "a + b"},
      {"sub", "a - b"},
      {"mul", "a * b"},
      {"div", "a / b"},
      {"minimum", "np.minimum(a, b)"},
      {"maximum", "np.maximum(a, b)"},
      {"floor_divide", "np.floor_divide(a, b)"},
      {"remainder", "np.remainder(a, b)"},
  };
  const std::pair<const char*, const char*> unary_ops[] = {
      {"neg", "-a"},           {"abs", "np.abs(a)"},     {"sign", "np.sign(a)"},
      {"sqrt", "np.sqrt(a)"},  {"floor", "np.floor(a)"}, {"ceil", "np.ceil(a)"},
      {"round", "np.rint(a)"}, {"trunc", "np.trunc(a)"}, {"reciprocal", "np.reciprocal(a)"},
  };
  std::vector<Check> checks;
  for (const char* dtype : {"f32", "f64", "f16"}) {
    for (const char* shape : kShapes) {
      const std::string type = str(dtype, shape);
      for (const auto& [op, expected] : ops)
        checks.push_back({pointwise(op, 2, type, type), expected});
      for (const auto& [op, expected] : unary_ops)
        checks.push_back({pointwise(op, 1, type, type), expected});
      for (const char* op : {"eq ==", "ne !=", "lt <", "le <=", "gt >", "ge >="})
        checks.push_back({pointwise(std::string(op, 2), 2, type, str("bool", shape)),
                          str("np.asarray(a ", op + 3, " b)")});
    }
  }
  // f16 divides and takes remainders in f32 and rounds once here; NumPy rounds each step
  std::erase_if(checks, [](const Check& check) {
    const bool is_half = check.graph.find("f16") != std::string::npos;
    return is_half && (check.graph.find("floor_divide") != std::string::npos ||
                       check.graph.find("remainder") != std::string::npos);
  });
  compare(checks);
}

TEST_CASE("NumPy agrees on integer arithmetic, wrapping included", "[numpy]") {
  const std::pair<const char*, const char*> ops[] = {
      {"add", "a + b"},
      {"sub", "a - b"},
      {"mul", "a * b"},
      {"minimum", "np.minimum(a, b)"},
      {"maximum", "np.maximum(a, b)"},
      {"bitwise_and", "a & b"},
      {"bitwise_or", "a | b"},
      {"bitwise_xor", "a ^ b"},
  };
  std::vector<Check> checks, divisions;
  for (const char* dtype : {"i8", "u8", "i32", "u32", "i64", "u64"}) {
    for (const char* shape : kShapes) {
      const std::string type = str(dtype, shape);
      for (const auto& [op, expected] : ops)
        checks.push_back({pointwise(op, 2, type, type), expected});
      checks.push_back({pointwise("neg", 1, type, type), "np.negative(a)"});
      checks.push_back({pointwise("abs", 1, type, type), "np.abs(a)"});
      checks.push_back({pointwise("sign", 1, type, type), "np.sign(a)"});
      checks.push_back({pointwise("bitwise_not", 1, type, type), "~a"});
      checks.push_back(
          {pointwise("popcount", 1, type, type),
           "np.vectorize(lambda v: bin(int(v) & (2**(8 * a.itemsize) - 1)).count('1'), "
           "otypes=[a.dtype])(a)"});
      checks.push_back({pointwise("lt", 2, type, str("bool", shape)), "np.asarray(a < b)"});
      divisions.push_back({pointwise("floor_divide", 2, type, type), "a // b"});
      divisions.push_back({pointwise("remainder", 2, type, type), "a % b"});
    }
  }
  compare(checks, {-3e9, 3e9});
  compare(checks, {-99, 99});
  compare(divisions, {1, 120});
}

TEST_CASE("NumPy agrees on division by negative numbers", "[numpy]") {
  std::vector<Check> checks;
  for (const char* type : {"i32[33,7]", "i64[33]", "i8[33]"}) {
    const std::string dtype(type, std::string(type).find('['));
    const auto graph = [&](const char* op, bool flip) {
      return str("graph f(%0 x: ", type, ", %1 y: ", type, ") {\n %2: ", type,
                 " = neg %0\n %3: ", type, " = ", op, flip ? " %1, %2" : " %2, %1",
                 "\n return %3\n}");
    };
    for (const bool flip : {false, true}) {
      checks.push_back({graph("floor_divide", flip), flip ? "b // -a" : "-a // b"});
      checks.push_back({graph("remainder", flip), flip ? "b % -a" : "-a % b"});
    }
  }
  compare(checks, {-120, -1});
}

TEST_CASE("NumPy agrees on shifts, powers, where and casts", "[numpy]") {
  std::vector<Check> checks;
  for (const char* shape : kShapes) {
    for (const char* dtype : {"u8", "i32", "u32", "i64", "u64"}) {
      const std::string type = str(dtype, shape);
      checks.push_back({pointwise("shift_left", 2, type, type), "a << b"});
      checks.push_back({pointwise("shift_right", 2, type, type), "a >> b"});
      checks.push_back({pointwise("pow", 2, type, type), "a ** b"});
      checks.push_back({str("graph f(%0 c: bool", shape, ", %1 x: ", type, ", %2 y: ", type,
                            ") {\n %3: ", type, " = where %0, %1, %2\n return %3\n}"),
                        "np.where(a, b, c)"});
    }
    for (const char* from : {"f32", "f64", "f16", "i8", "u8", "i32", "i64", "u64", "bool"}) {
      for (const char* to : {"f32 f4", "f64 f8", "f16 f2", "i8 i1", "u8 u1", "i32 i4", "u32 u4",
                             "i64 i8", "u64 u8", "bool ?"}) {
        const std::string name(to, std::string(to).find(' '));
        checks.push_back({pointwise("cast", 1, str(from, shape), name + shape),
                          str("a.astype('", to + name.size() + 1, "')")});
      }
    }
  }
  for (const char* shape : kShapes) {
    checks.push_back(
        {pointwise("bitcast", 1, str("f32", shape), str("i32", shape)), "a.view('i4')"});
    checks.push_back(
        {pointwise("bitcast", 1, str("i64", shape), str("f64", shape)), "a.view('f8')"});
    checks.push_back(
        {pointwise("bitcast", 1, str("i8", shape), str("u8", shape)), "a.view('u1')"});
  }
  compare(checks, {0, 7});
}

TEST_CASE("NumPy's f64 functions are within 4 ulp of f32", "[numpy]") {
  const std::pair<const char*, const char*> ops[] = {
      {"exp", "np.exp(wide(a))"},
      {"expm1", "np.expm1(wide(a))"},
      {"log", "np.log(wide(a))"},
      {"log1p", "np.log1p(wide(a))"},
      {"exp2", "np.exp2(wide(a))"},
      {"log2", "np.log2(wide(a))"},
      {"log10", "np.log10(wide(a))"},
      {"sin", "np.sin(wide(a))"},
      {"cos", "np.cos(wide(a))"},
      {"tan", "np.tan(wide(a))"},
      {"asin", "np.arcsin(wide(a))"},
      {"acos", "np.arccos(wide(a))"},
      {"atan", "np.arctan(wide(a))"},
      {"lgamma", "lgamma(wide(a))"},
      {"tanh", "np.tanh(wide(a))"},
      {"sigmoid", "1 / (1 + np.exp(-wide(a)))"},
      {"rsqrt", "1 / np.sqrt(wide(a))"},
      {"erf", "erf(wide(a))"},
      {"gelu", "wide(a) * erfc(-wide(a) / math.sqrt(2)) / 2"},
      {"silu", "wide(a) / (1 + np.exp(-wide(a)))"},
      {"softplus", "np.logaddexp(wide(a), 0)"},
  };
  std::vector<Check> checks;
  for (const char* shape : kShapes) {
    const std::string type = str("f32", shape);
    for (const auto& [op, expected] : ops) {
      checks.push_back({pointwise(op, 1, type, type), expected, "4 * ulp(r, 'f4')"});
    }
    checks.push_back(
        {pointwise("pow", 2, type, type), "np.power(wide(a), wide(b))", "4 * ulp(r, 'f4')"});
    checks.push_back({pointwise("atan2", 2, type, type), "np.arctan2(wide(a), wide(b))",
                      "4 * ulp(r, 'f4')"});
    checks.push_back(
        {pointwise("logaddexp", 2, type, type), "np.logaddexp(wide(a), wide(b))",
         "4 * ulp(np.maximum(np.abs(r), np.abs(np.maximum(wide(a), wide(b)))), 'f4')"});
  }
  compare(checks);
  compare(checks, {0.001, 20});
  // f64 against f64: both may be off by some ulps
  for (Check& check : checks) {
    for (size_t at = 0; (at = check.graph.find("f32", at)) != std::string::npos;)
      check.graph.replace(at, 3, "f64");
    const bool is_lgamma = check.expected == "lgamma(wide(a))";
    // Python's own is good to an absolute error only where lgamma crosses 0, at 1 and 2.
    check.tolerance =
        is_lgamma ? "16 * ulp(np.maximum(np.abs(r), 1), 'f8')" : "16 * ulp(r, 'f8')";
  }
  compare(checks, {0.001, 8});
}

TEST_CASE("NumPy agrees on reductions", "[numpy]") {
  struct Form {
    const char *shape, *axes, *kept;
  };
  const Form forms[] = {{"[7]", "0", "[1]"},
                        {"[33,7]", "0", "[1,7]"},
                        {"[33,7]", "1", "[33,1]"},
                        {"[7,33,3]", "1", "[7,1,3]"},
                        {"[7,3,33]", "2,0", "[1,3,1]"}};
  std::vector<Check> checks;
  for (const auto& [shape, axes, kept] : forms) {
    const bool several = std::string(axes).size() > 1;
    const std::string axis = str("(", axes, ",)"),
                      keep = str(" {axes=[", axes, "], keepdim=1}");
    const auto add = [&, shape = shape, kept = kept](
                         const std::string& op, const std::string& dtype,
                         const std::string& result, const std::string& expected,
                         const std::string& tolerance = "") {
      checks.push_back({unary(dtype + shape, result + kept, op + keep), expected, tolerance});
    };
    const std::string of = str("axis=", axis, ", keepdims=True)");
    for (const char* dtype : {"i8", "u8", "i32", "u32", "i64", "bool"}) {
      add("sum", dtype, "i64", "np.sum(a.astype('i8'), " + of);
      add("prod", dtype, "i64", "np.prod(a.astype('i8'), " + of);
    }
    add("sum", "u64", "u64", "np.sum(a, " + of);
    for (const char* dtype : {"f32", "f64", "f16", "i8", "u32", "u64"}) {
      add("max", dtype, dtype, "np.max(a, " + of);
      add("min", dtype, dtype, "np.min(a, " + of);
      if (several) continue;
      add("argmax", dtype, "i64", str("np.expand_dims(np.argmax(a, ", axes, "), ", axes, ")"));
      add("argmin", dtype, "i64", str("np.expand_dims(np.argmin(a, ", axes, "), ", axes, ")"));
    }
    add("any", "bool", "bool", "np.any(a, " + of);
    add("all", "bool", "bool", "np.all(a, " + of);
    for (const char* dtype : {"f32 f4", "f64 f8", "f16 f2"}) {
      const std::string name(dtype, 3), eps = str("np.finfo('", dtype + 4, "').eps");
      add("sum", name, name, "np.sum(wide(a), " + of,
          str("4 * ", eps, " * np.sum(np.abs(wide(a)), ", of));
      add("sum_exp", name, name, str("np.sum(np.exp(wide(a) - np.max(wide(a), ", of, "), ", of),
          str("16 * ", eps, " * np.abs(r)"));
    }
    if (!several)  // of 231 factors it would overflow
      add("prod", "f32", "f32", "np.prod(wide(a), " + of, "40 * ulp(r, 'f4')");
  }
  for (const char* dtype : {"f32", "f64", "i64"}) {  // nothing sums to 0 and multiplies to 1
    checks.push_back(
        {unary(str(dtype, "[7,0]"), str(dtype, "[7]"), "sum {axes=[1]}"), "np.sum(a, axis=1)"});
    checks.push_back({unary(str(dtype, "[7,0]"), str(dtype, "[7]"), "prod {axes=[1]}"),
                      "np.prod(a, axis=1)"});
    checks.push_back(
        {unary(str(dtype, "[0,7]"), str(dtype, "[0]"), "max {axes=[1]}"), "np.max(a, axis=1)"});
  }
  checks.push_back({unary("f32[5000]", "f32[]", "sum {axes=[0]}"), "np.sum(wide(a))",
                    "4e-7 * np.sum(np.abs(wide(a)))"});
  compare(checks);
}

TEST_CASE("NumPy agrees on matrix products", "[numpy]") {
  struct Product {
    const char *a, *b, *result;
  };
  const Product products[] = {
      {"[1,1]", "[1,1]", "[1,1]"},       {"[7,33]", "[33,7]", "[7,7]"},
      {"[33,7]", "[7,1]", "[33,1]"},     {"[1,33]", "[33,33]", "[1,33]"},
      {"[7,0]", "[0,3]", "[7,3]"},       {"[0,7]", "[7,3]", "[0,3]"},
      {"[3,7,5]", "[3,5,2]", "[3,7,2]"}, {"[2,0,1,7]", "[2,0,7,1]", "[2,0,1,1]"}};
  std::vector<Check> checks;
  for (const auto& [a, b, result] : products) {
    const auto graph = [&, a = a, b = b, result = result](const char* dtype) {
      return str("graph f(%0 a: ", dtype, a, ", %1 b: ", dtype, b, ") {\n %2: ", dtype, result,
                 " = matmul %0, %1\n return %2\n}");
    };
    for (const char* dtype : {"i8", "u8", "i32", "u32", "i64", "u64"})
      checks.push_back({graph(dtype), "np.matmul(a, b)"});
    for (const char* dtype : {"f32 f4", "f64 f8", "f16 f2"})
      checks.push_back({graph(std::string(dtype, 3).c_str()), "np.matmul(wide(a), wide(b))",
                        str("(2 + a.shape[-1]) * np.finfo('", dtype + 4,
                            "').eps * np.matmul(np.abs(wide(a)), np.abs(wide(b)))")});
  }
  compare(checks);
}

TEST_CASE("NumPy agrees on views", "[numpy]") {
  std::vector<Check> checks;
  for (const std::string dtype : {"f32", "f16", "i8", "u64", "bool"}) {
    const auto add = [&](const char* from, const char* to, const char* op,
                         const char* expected) {
      checks.push_back({unary(dtype + from, dtype + to, op), expected});
    };
    add("[33,7]", "[7,33]", "reshape", "a.reshape(7, 33)");
    add("[0,7]", "[7,0,2]", "reshape", "a.reshape(7, 0, 2)");
    add("[]", "[1,1]", "reshape", "a.reshape(1, 1)");
    add("[33,7]", "[7,33]", "permute {axes=[1,0]}", "a.T");
    add("[7,1,33]", "[1,33,7]", "permute {axes=[1,2,0]}", "a.transpose(1, 2, 0)");
    add("[7,1]", "[3,7,33]", "expand", "np.broadcast_to(a, (3, 7, 33))");
    add("[1]", "[0]", "expand", "np.broadcast_to(a, (0,))");
    add("[33,7]", "[8,7]", "slice {axis=0, start=2, stop=33, step=4}", "a[2:33:4]");
    add("[33,7]", "[33,3]", "slice {axis=1, start=1, stop=7, step=2}", "a[:, 1:7:2]");
    add("[33,7]", "[33,0]", "slice {axis=1, start=4, stop=4, step=1}", "a[:, 4:4]");
    add("[33,7]", "[33,7]", "flip {axes=[0]}", "a[::-1]");
    add("[33,7]", "[33,7]", "flip {axes=[1,0]}", "a[::-1, ::-1]");
    add("[33]", "[16,3]", "window {axis=0, step=2, size=3}", "windows(a, 3, 2, 0)");
    add("[33,7]", "[9,7,7]", "window {axis=0, step=3, size=7}", "windows(a, 7, 3, 0)");
    add("[2,7,3]", "[2,6,3,2]", "window {axis=1, step=1, size=2}", "windows(a, 2, 1, 1)");
  }
  checks.push_back({R"(graph chain(%0 x: f32[33,7]) {
 %1: f32[7,33] = permute %0 {axes=[1,0]}
 %2: f32[7,33] = flip %1 {axes=[1]}
 %3: f32[7,11] = slice %2 {axis=1, start=0, stop=33, step=3}
 %4: f32[3,11,3] = window %3 {axis=0, step=2, size=3}
 %5: f32[99] = reshape %4
 return %5
})",
                    "windows(a.T[:, ::-1][:, ::3], 3, 2, 0).reshape(99)"});
  compare(checks);
}

TEST_CASE("NumPy agrees on gather, scatter_add, concat, pad and cumsum", "[numpy]") {
  std::vector<Check> checks;
  for (const char* index : {"i64", "i32"}) {
    for (const std::string dtype : {"f32", "i32", "u8", "f64"}) {
      checks.push_back(
          {str("graph f(%0 x: ", dtype, "[7,33], %1 i: ", index, "[5,33]) {\n %2: ", dtype,
               "[5,33] = gather %0, %1 {axis=0}\n return %2\n}"),
           "np.take_along_axis(a, b.astype('i8'), 0)"});
      checks.push_back({str("graph f(%0 x: ", dtype, "[7,7], %1 i: ", index, "[7,33]) {\n %2: ",
                            dtype, "[7,33] = gather %0, %1 {axis=1}\n return %2\n}"),
                        "np.take_along_axis(a, b.astype('i8'), 1)"});
      checks.push_back({str("graph f(%0 x: ", dtype, "[7,7], %1 i: ", index,
                            "[33,7], %2 s: ", dtype, "[33,7]) {\n %3: ", dtype,
                            "[7,7] = scatter_add %0, %1, %2 {axis=0}\n return %3\n}"),
                        "scattered(a, b, c, 0)"});
      checks.push_back({str("graph f(%0 x: ", dtype, "[3,7], %1 i: ", index,
                            "[2,7], %2 s: ", dtype, "[2,7]) {\n %3: ", dtype,
                            "[3,7] = scatter_add %0, %1, %2 {axis=1}\n return %3\n}"),
                        "scattered(a, b, c, 1)"});
    }
  }
  for (const std::string dtype : {"f32", "f16", "i8", "u64", "bool"}) {
    checks.push_back({str("graph f(%0 a: ", dtype, "[7,1], %1 b: ", dtype,
                          "[7,33], %2 c: ", dtype, "[7,0]) {\n %3: ", dtype,
                          "[7,34] = concat %0, %1, %2 {axis=1}\n"
                          " return %3\n}"),
                      "np.concatenate([a, b, c], 1)"});
    const std::string one = dtype == "bool" ? "true" : "1";
    checks.push_back({unary(dtype + "[33,7]", dtype + "[36,8]",
                            str("pad {low=[1,0], high=[2,1], value=", one, "}")),
                      "np.pad(a, ((1, 2), (0, 1)), constant_values=1)"});
    checks.push_back({unary(dtype + "[33,7]", dtype + "[30,9]",
                            str("pad {low=[-2,3], high=[-1,-1], value=", one, "}")),
                      "np.pad(a[2:-1, :-1], ((0, 0), (3, 0)), constant_values=1)"});
  }
  for (const std::string dtype : {"i8", "i32", "u32", "i64", "u64"}) {
    for (const char* axis : {"0", "1"})
      checks.push_back(
          {unary(dtype + "[7,33]", dtype + "[7,33]", str("cumsum {axis=", axis, "}")),
           str("np.cumsum(a, ", axis, ", dtype=a.dtype)")});
  }
  // Ours goes by groups of 16, NumPy's one by one: each of 33 additions may round otherwise.
  for (const std::string dtype : {"f32 f4", "f64 f8"}) {
    const std::string type = dtype.substr(0, 3);
    checks.push_back({unary(type + "[7,33]", type + "[7,33]", "cumsum {axis=1}"),
                      "np.cumsum(a, 1)",
                      "33 * ulp(np.cumsum(np.abs(a), 1), '" + dtype.substr(4) + "')"});
  }
  compare(checks, {0, 6.4});
}
