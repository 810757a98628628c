// tc::Size: what code does with sizes that are no numbers yet.
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tiny_compile.h"
#include "tiny_compile/trace/admits.h"
#include "tiny_compile/trace/tracer.h"

#include "tests/loops/symbolic_stages.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Inputs = std::span<const Tensor>;

const Expr n = Expr::symbol({"n", SymbolKind::Size}, 1, 4096);

Traced traced(const std::function<Tensor(Inputs)>& function, const std::vector<Type>& inputs,
              std::optional<int64_t> example = {}) {
  std::optional<SymbolValues> values;
  if (example) values = SymbolValues{{{"n", SymbolKind::Size}, *example}};
  return trace_symbolic([&](Inputs x) { return std::vector<Tensor>{function(x)}; }, inputs, "f",
                        values);
}

const Type kX = {DType::f32, {n, 8}}, kY = {DType::f32, {n, 8}}, kW = {DType::f32, {8, 8}},
           kI = {DType::i64, {n}}, kImage = {DType::f32, {n, 1, 4, 4}},
           kKernel = {DType::f32, {2, 1, 3, 3}}, kRow = {DType::f32, {8}},
           kLong = {DType::f32, {n + 2}},
           kShort = {DType::f32, {Expr::symbol(n.symbol(), 1, 1000), 3}},
           kSquare = {DType::f32, {n, n}}, kWide = {DType::f32, {1, 1, 3, n}},
           kAnyKernel = {DType::f32, {2, 1, 3, n}}, kLarge = {DType::f32, {1, 1, 9, 9}},
           kQueries = {DType::f32, {1, 3, 4}}, kKeys = {DType::f32, {1, n, 4}},
           kHeads = {DType::f32, {n, 3, 4}};

struct Case {
  std::string name;  // of the function, and what is special
  std::vector<Type> inputs;
  std::function<Tensor(Inputs)> function;
  int64_t largest = 4096;  // at 4096, n * n dots are 6 s in an interpreter, n * n ones 0.8 s
};

std::string function_name(const Case& one) { return one.name.substr(0, one.name.find(' ')); }

#define UNARY(name) {#name, {kX}, [](Inputs x) { return tiny_compile::name(x[0]); }},
#define BINARY(name) {#name, {kX, kY}, [](Inputs x) { return tiny_compile::name(x[0], x[1]); }},

const std::vector<Case> kPointwise = {
    UNARY(exp)            //
    UNARY(expm1)          //
    UNARY(log)            //
    UNARY(log1p)          //
    UNARY(exp2)           //
    UNARY(log2)           //
    UNARY(log10)          //
    UNARY(sin)            //
    UNARY(cos)            //
    UNARY(tan)            //
    UNARY(asin)           //
    UNARY(acos)           //
    UNARY(atan)           //
    UNARY(tanh)           //
    UNARY(sigmoid)        //
    UNARY(erf)            //
    UNARY(erfinv)         //
    UNARY(lgamma)         //
    UNARY(digamma)        //
    UNARY(sqrt)           //
    UNARY(rsqrt)          //
    UNARY(reciprocal)     //
    UNARY(floor)          //
    UNARY(ceil)           //
    UNARY(round)          //
    UNARY(trunc)          //
    UNARY(abs)            //
    UNARY(sign)           //
    UNARY(square)         //
    UNARY(isnan)          //
    UNARY(isinf)          //
    UNARY(isfinite)       //
    UNARY(logical_not)    //
    UNARY(relu)           //
    UNARY(silu)           //
    UNARY(softplus)       //
    BINARY(atan2)         //
    BINARY(zeta)          //
    BINARY(minimum)       //
    BINARY(maximum)       //
    BINARY(logaddexp)     //
    BINARY(pow)           //
    BINARY(remainder)     //
    BINARY(floor_divide)  //
    BINARY(logical_and)   //
    BINARY(logical_or)    //
};

const std::vector<Case> kComposites = {
    {"+ of two", {kX, kY}, [](Inputs x) { return x[0] + x[1]; }},
    {"+ of an expanded row", {kX, kRow}, [](Inputs x) { return x[0] * x[1]; }},
    {"+ of a number", {kX}, [](Inputs x) { return x[0] - 1; }},
    {"* of a size", {kX}, [](Inputs x) { return x[0] * x[0].size(0); }},
    {"/ of all elements", {kX}, [](Inputs x) { return x[0] / (x[0].numel() + 1); }},
    {"- of a size that may be negative",
     {kX},
     [](Inputs x) { return x[0] + (x[0].size(0) - 100); }},
    {"polygamma", {kX}, [](Inputs x) { return polygamma(1, x[0]); }},
    {"bitcast", {kX}, [](Inputs x) { return bitcast(x[0], DType::i32); }},
    {"gelu", {kX}, [](Inputs x) { return gelu(x[0]); }},
    {"gelu tanh", {kX}, [](Inputs x) { return gelu(x[0], "tanh"); }},
    {"gelu_backward", {kX, kY}, [](Inputs x) { return gelu_backward(x[0], x[1]); }},
    {"where", {kX, kY}, [](Inputs x) { return where(x[0] > x[1], x[0], 0.0); }},
    {"fma", {kX, kY}, [](Inputs x) { return fma(x[0], x[1], -0.5); }},
    {"popcount", {kI}, [](Inputs x) { return popcount(x[0]); }},
    {"leaky_relu", {kX}, [](Inputs x) { return leaky_relu(x[0]); }},
    {"clamp", {kX}, [](Inputs x) { return clamp(x[0], -1, 1); }},
    {"masked_fill", {kX, kY}, [](Inputs x) { return masked_fill(x[0], x[1] > 0.5, 3); }},
    {"sum", {kX}, [](Inputs x) { return x[0].sum(0); }},
    {"sum of all", {kX}, [](Inputs x) { return x[0].sum(); }},
    {"prod", {kX}, [](Inputs x) { return x[0].prod({0}); }},
    {"max", {kX}, [](Inputs x) { return x[0].max({0}); }},
    {"min", {kX}, [](Inputs x) { return x[0].min({1}); }},
    {"argmax", {kX}, [](Inputs x) { return x[0].argmax(0); }},
    {"argmin", {kX}, [](Inputs x) { return x[0].argmin(); }},
    {"any", {kX}, [](Inputs x) { return (x[0] > 0.5).any({0}); }},
    {"all", {kX}, [](Inputs x) { return (x[0] > 0.5).all({0}); }},
    {"sum_exp", {kX}, [](Inputs x) { return sum_exp(x[0], {0}); }},
    {"mean of n", {kX}, [](Inputs x) { return x[0].mean(0); }},
    {"mean of all", {kX}, [](Inputs x) { return x[0].mean(); }},
    {"mean of bf16", {kX}, [](Inputs x) { return x[0].to(DType::bf16).mean(); }},
    {"mean of f64", {kX}, [](Inputs x) { return x[0].to(DType::f64).mean(0); }},
    {"var of rows", {kX}, [](Inputs x) { return var(x[0], 1); }},
    {"var of a bounded axis", {kShort}, [](Inputs x) { return var(x[0], 0); }, 1000},
    {"var of n", {kX}, [](Inputs x) { return var(x[0], 0); }},
    {"var of n across", {kX}, [](Inputs x) { return var(x[0].t(), {1}, 0, true); }},
    {"var_mean", {kX}, [](Inputs x) { return var_mean(x[0], 0, 0).second; }},
    {"std of all", {kX}, [](Inputs x) { return tiny_compile::std(x[0]); }},
    {"std of rows", {kX}, [](Inputs x) { return tiny_compile::std(x[0], {1}); }},
    {"norm", {kX}, [](Inputs x) { return norm(x[0]); }},
    {"norm of a power", {kX}, [](Inputs x) { return norm(x[0], 3, {0}); }},
    {"cumsum", {kX}, [](Inputs x) { return cumsum(x[0], 0); }},
    {"cumprod", {kX}, [](Inputs x) { return cumprod(x[0], 0); }},
    {"logcumsumexp", {kX}, [](Inputs x) { return logcumsumexp(x[0], 0); }},
    {"cummax", {kX}, [](Inputs x) { return cummax(x[0], 0).first; }},
    {"cummin", {kX}, [](Inputs x) { return cummin(x[0], 1).first; }},
    {"reshape with -1",
     {kX},
     [](Inputs x) {
       return x[0].reshape({x[0].size(0), -1, 2});
     }},
    {"reshape to one axis", {kX}, [](Inputs x) { return x[0].reshape({-1}); }},
    {"reshape with 2*n",
     {kX},
     [](Inputs x) {
       return x[0].reshape({x[0].size(0) * 2, 4});
     }},
    {"permute",
     {kX},
     [](Inputs x) {
       return permute(x[0], {1, 0});
     }},
    {"transpose", {kX}, [](Inputs x) { return x[0].transpose(0, 1).exp(); }},
    {"expand",
     {kX},
     [](Inputs x) {
       return x[0].unsqueeze(0).expand({3, -1, -1});
     }},
    {"expand to n",
     {kX, kRow},
     [](Inputs x) {
       return x[1].expand({x[0].size(0), 8}) * 2;
     }},
    {"slice of half", {kX}, [](Inputs x) { return x[0].slice(0, 0, (x[0].size(0) + 1) / 2); }},
    {"slice of every other", {kX}, [](Inputs x) { return x[0].slice(0, {}, {}, 2); }},
    {"slice of at most 5", {kX}, [](Inputs x) { return x[0].slice(0, {}, 5); }},
    {"select of the last", {kX}, [](Inputs x) { return x[0].select(0, -1); }},
    {"flip", {kX}, [](Inputs x) { return x[0].flip({0}); }},
    {"unfold of a whole axis", {kLong}, [](Inputs x) { return x[0].unfold(0, 3, 1) * 2; }},
    {"squeeze", {kX}, [](Inputs x) { return x[0].unsqueeze(1).squeeze(1); }},
    {"unsqueeze", {kX}, [](Inputs x) { return unsqueeze(x[0], 1); }},
    {"flatten", {kX}, [](Inputs x) { return x[0].flatten(); }},
    {"contiguous", {kX}, [](Inputs x) { return contiguous(x[0].t()); }},
    {"concat",
     {kX, kY},
     [](Inputs x) {
       return concat({x[0], x[1], x[0]});
     }},
    {"cat along 1",
     {kX, kY},
     [](Inputs x) {
       return cat({x[0], x[1]}, 1);
     }},
    {"stack",
     {kX, kY},
     [](Inputs x) {
       return stack({x[0], x[1]}, 1);
     }},
    {"roll of n", {kX}, [](Inputs x) { return roll(x[0], {3}, {0}); }},
    {"roll of all", {kX}, [](Inputs x) { return roll(x[0], {-2}); }},
    {"split of a number", {kX}, [](Inputs x) { return split(x[0], 3, 1)[2]; }},
    {"pad",
     {kX},
     [](Inputs x) {
       return pad(x[0], {1, 1, 2, 0}, 3);
     }},
    {"tril", {kX}, [](Inputs x) { return tril(x[0], -1); }},
    {"triu", {kX}, [](Inputs x) { return triu(x[0], 2); }},
    {"matmul", {kX, kW}, [](Inputs x) { return matmul(x[0], x[1]); }},
    {"matmul along n", {kX}, [](Inputs x) { return matmul(x[0].t(), x[0]); }},
    {"matmul of a vector", {kX, kRow}, [](Inputs x) { return matmul(x[0], x[1]); }},
    {"outer", {kI, kRow}, [](Inputs x) { return outer(x[0], x[1]); }},
    {"gather",
     {kX, kI},
     [](Inputs x) { return gather(x[0], 1, remainder(x[1], 8).unsqueeze(1)); }},
    {"index_select",
     {kW, kI},
     [](Inputs x) { return index_select(x[0], 0, remainder(x[1], 8)); }},
    {"embedding", {kI, kW}, [](Inputs x) { return embedding(remainder(x[0], 8), x[1]); }},
    {"scatter",
     {kW, kI, kX},
     [](Inputs x) {
       return scatter(x[0], 0, remainder(x[1], 8).unsqueeze(1).expand({-1, 8}), x[2]);
     }},
    {"scatter_add",
     {kW, kI, kX},
     [](Inputs x) {
       return scatter_add(x[0], 0, remainder(x[1], 8).unsqueeze(1).expand({-1, 8}), x[2]);
     }},
    {"scatter_reduce",
     {kW, kI, kX},
     [](Inputs x) {
       return scatter_reduce(x[0], 0, remainder(x[1], 8).unsqueeze(1).expand({-1, 8}), x[2],
                             "amax");
     }},
    {"one_hot", {kI}, [](Inputs x) { return one_hot(x[0], 4); }},
    {"as_index", {kI}, [](Inputs x) { return as_index(x[0]); }},
    {"full",
     {kX},
     [](Inputs x) {
       return full({x[0].size(0), 3}, 2) + 1;
     }},
    {"zeros",
     {kX},
     [](Inputs x) {
       return zeros({x[0].size(0), 3}) + 1;
     }},
    {"ones",
     {kX},
     [](Inputs x) {
       return ones({3, x[0].size(0) * 2 - 1}) + 1;
     }},
    {"zeros_like", {kX}, [](Inputs x) { return zeros_like(x[0]) + x[0]; }},
    {"ones_like", {kX}, [](Inputs x) { return ones_like(x[0]) * x[0]; }},
    {"full_like", {kX}, [](Inputs x) { return full_like(x[0], 3) * x[0]; }},
    {"arange", {kX}, [](Inputs x) { return arange(x[0].size(0)) * 2; }},
    {"arange with a step",
     {kX},
     [](Inputs x) { return arange(3, x[0].size(0) * 2 + 3, 4) + 1; }},
    {"arange from a size",
     {kX},
     [](Inputs x) { return arange(x[0].size(0), x[0].size(0) + 5) + 1; }},
    {"linspace of a number", {kX}, [](Inputs x) { return linspace(0, 1, 8) * x[0]; }},
    {"eye", {kX}, [](Inputs x) { return eye(x[0].size(0)).sum(0); }, 1024},
    {"rand",
     {kX},
     [](Inputs x) {
       return rand({x[0].size(0), 3});
     }},
    {"randn",
     {kX},
     [](Inputs x) {
       return randn({x[0].size(0), 3});
     }},
    {"randint", {kX}, [](Inputs x) { return randint(0, 9, {x[0].size(0)}); }},
    {"rand_like", {kX}, [](Inputs x) { return rand_like(x[0]); }},
    {"randn_like", {kX}, [](Inputs x) { return randn_like(x[0]) + x[0]; }},
    {"softmax of n", {kX}, [](Inputs x) { return softmax(x[0], 0); }},
    {"softmax of rows", {kX}, [](Inputs x) { return softmax(x[0], 1); }},
    {"log_softmax", {kX}, [](Inputs x) { return log_softmax(x[0], 1); }},
    {"finite_max", {kX}, [](Inputs x) { return finite_max(x[0], {1}); }},
    {"logsumexp", {kX}, [](Inputs x) { return logsumexp(x[0], {1}); }},
    {"logsumexp of n", {kX}, [](Inputs x) { return logsumexp(x[0], {0}); }},
    {"layer_norm", {kX}, [](Inputs x) { return layer_norm(x[0], {8}); }},
    {"layer_norm of n", {kX}, [](Inputs x) { return layer_norm(x[0].t(), {x[0].size(0)}); }},
    {"rms_norm", {kX}, [](Inputs x) { return rms_norm(x[0], {8}); }},
    {"batch_norm",
     {kX, kRow, kRow},
     [](Inputs x) { return batch_norm(x[0], x[1], x[2] * x[2], {}, {}, 1e-5); }},
    {"linear", {kX, kW, kRow}, [](Inputs x) { return linear(x[0], x[1], x[2]); }},
    {"mse_loss", {kX, kY}, [](Inputs x) { return mse_loss(x[0], x[1]); }},
    {"nll_loss", {kX, kI}, [](Inputs x) { return nll_loss(x[0], remainder(x[1], 8)); }},
    {"cross_entropy",
     {kX, kI},
     [](Inputs x) { return cross_entropy(x[0], remainder(x[1], 8)); }},
    {"dropout", {kX}, [](Inputs x) { return dropout(x[0], 0.25); }},
    {"scaled_dot_product_attention of n heads",
     {kHeads, kHeads, kHeads},
     [](Inputs x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, true); }},
    {"scaled_dot_product_attention of n keys",
     {kQueries, kKeys, kKeys},
     [](Inputs x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
    {"scaled_dot_product_attention of n keys and n queries",
     {kX, kY},
     [](Inputs x) {
       return scaled_dot_product_attention(x[0].unsqueeze(0), x[1].unsqueeze(0),
                                           x[1].unsqueeze(0), {}, true);
     },
     64},
    {"conv2d", {kImage, kKernel}, [](Inputs x) { return conv2d(x[0], x[1], {}, 2, 1); }},
    {"conv2d of n columns",
     {kWide, kKernel},
     [](Inputs x) { return conv2d(x[0], x[1], {}, 1, 1); }},
    {"max_pool2d", {kImage}, [](Inputs x) { return max_pool2d(x[0], 2); }},
    {"avg_pool2d", {kImage}, [](Inputs x) { return avg_pool2d(x[0], 3, 2, 1, false); }},
    {"avg_pool2d of n columns", {kWide}, [](Inputs x) { return avg_pool2d(x[0], 3, 1, 1); }},
    {"einsum",
     {kX, kW},
     [](Inputs x) {
       return einsum("ni,ij->nj", {x[0], x[1]});
     }},
    {"einsum along n",
     {kX, kY},
     [](Inputs x) {
       return einsum("ni,nj->ij", {x[0], x[1]});
     }},
    {"einsum of a broadcast",
     {kX, kRow},
     [](Inputs x) {
       return einsum("...i,i->...", {x[0], x[1]});
     }},
};

// What asks for a number, so that a symbolic size is an error without an example.
const std::vector<Case> kNumbersOnly = {
    {"var, of which the longer axis is cut",
     {kX},
     [](Inputs x) {
       return var(reshape(x[0], {x[0].size(0), 4, 2}), {0, 2});
     }},
    {"split", {kX}, [](Inputs x) { return split(x[0], 3)[0]; }},
    {"linspace", {kX}, [](Inputs x) { return linspace(0, 1, x[0].size(0)); }},
    {"unfold", {kX}, [](Inputs x) { return x[0].unfold(0, x[0].size(0), 1); }},
    {"squeeze", {kX}, [](Inputs x) { return x[0].squeeze(); }},
    {"select", {kX}, [](Inputs x) { return x[0].select(0, 4); }},
    {"narrow", {kX}, [](Inputs x) { return x[0].narrow(0, 0, 4); }},
    {"einsum", {kSquare}, [](Inputs x) { return einsum("nn->n", {x[0]}); }},
    {"scaled_dot_product_attention",
     {kX},
     [](Inputs x) { return scaled_dot_product_attention(x[0].t(), x[0].t(), x[0].t()); }},
    {"linear_cross_entropy",
     {kX},
     [](Inputs x) {
       return linear_cross_entropy(x[0], x[0], x[0].select(1, 0).to(DType::i64));
     }},
    {"conv2d", {kLarge, kAnyKernel}, [](Inputs x) { return conv2d(x[0], x[1]); }},
    {"max_pool2d", {kWide}, [](Inputs x) { return max_pool2d(x[0], 2); }},
    {"pad",
     {kX},
     [](Inputs x) {
       return pad(x[0], {x[0].size(0), 0});
     }},
};

Type with_numbers(const Type& type, int64_t number) {
  return {type.dtype, substitute(type.shape, {{n.symbol(), number}})};
}

// Of the symbolic trace and of the trace of numbers, on the same inputs.
void check_trace(const Case& one) {
  CAPTURE(one.name);
  const Traced symbolic = traced(one.function, one.inputs);
  CHECK(symbolic.guards.empty());
  std::vector<int64_t> numbers;
  for (const int64_t number : {1, 2, 37, 1024, 4096})
    if (number <= one.largest) numbers.push_back(number);
  CAPTURE(print(symbolic.graph));
  for (const int64_t number : numbers) {
    CAPTURE(number);
    std::vector<Type> types;
    for (const Type& type : one.inputs) types.push_back(with_numbers(type, number));
    const Traced plain = traced(one.function, types);
    const std::vector<Tensor> inputs = seeded_inputs(plain.graph, 7, {});
    check_bits(interpret(plain.graph, inputs), interpret(symbolic.graph, inputs));
  }
  if (!symbols(symbolic.graph).empty()) check_stages(symbolic.graph, numbers);
}

// None where the function throws for this number, as max does for 0.
std::optional<Traced> traced_if_valid(const Case& one, const std::vector<Type>& types,
                                      int64_t number) {
  std::vector<Type> numbers;
  for (const Type& type : types) numbers.push_back(with_numbers(type, number));
  try {
    return traced(one.function, numbers);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The functions that a header declares, those that give tensors.
std::set<std::string> declared_in(const std::string& header) {
  std::ifstream in(header);
  REQUIRE(in);
  std::set<std::string> names;
  for (std::string line; std::getline(in, line);) {
    for (const std::string result :
         {"Tensor ", "std::pair<Tensor, Tensor> ", "std::vector<Tensor> "}) {
      const size_t open = line.find('(');
      if (line.starts_with(result) && open != std::string::npos)
        names.insert(line.substr(result.size(), open - result.size()));
    }
  }
  return names;
}

}  // namespace

TEST_CASE("each pointwise function keeps a symbolic size", "[sizes]") {
  for (const Case& one : kPointwise) check_trace(one);
}

TEST_CASE("each composite of a symbolic size has the bits of numbers", "[sizes]") {
  for (const Case& one : kComposites) check_trace(one);
}

TEST_CASE("the identity of n rows is right at 4096 too", "[sizes]") {
  const Traced symbolic = traced([](Inputs x) { return eye(x[0].size(0)).sum(0); }, {kX});
  const Program program = plan_memory(schedule(fuse(lower(symbolic.graph))));
  check_bits({ones({4096})}, interpret(program, std::vector{zeros({4096, 8})}));
}

// Where what a function does depends on whether n is 0, it has to be known.
TEST_CASE("functions have the bits of numbers where n may be 0", "[sizes]") {
  std::vector<Case> cases = kPointwise;
  cases.insert(cases.end(), kComposites.begin(), kComposites.end());
  int undecided = 0, ran = 0;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    std::vector<Type> types = one.inputs;
    for (Type& type : types)
      type.shape = substitute(type.shape, {{n.symbol(), Expr::symbol(n.symbol(), 0, 4096)}});
    std::optional<Traced> symbolic;
    try {
      symbolic = traced(one.function, types);
    } catch (const Error& error) {
      undecided++;
      CHECK_THAT(error.what(), ContainsSubstring("must be known, and the size is symbolic"));
      continue;
    }
    CHECK(symbolic->guards.empty());
    const Program program = plan_memory(schedule(fuse(lower(symbolic->graph))));
    for (const int64_t number : {0, 1, 37}) {
      CAPTURE(number);
      std::optional<Traced> plain = traced_if_valid(one, types, number);
      if (!plain) continue;  // the maximum of nothing
      ran += number == 0;
      const std::vector<Tensor> inputs = seeded_inputs(plain->graph, 7, {});
      const std::vector<Tensor> wanted = interpret(plain->graph, inputs);
      check_bits(wanted, interpret(symbolic->graph, inputs));
      if (!symbols(symbolic->graph).empty()) check_bits(wanted, interpret(program, inputs));
    }
  }
  CHECK(undecided <= 12);
  CHECK(ran >= static_cast<int>(cases.size()) - 20);
}

TEST_CASE("each function of the headers has a symbolic case", "[sizes]") {
  std::set<std::string> known = {"tensor"};  // of values, without sizes
  for (const std::vector<Case>* cases : {&kPointwise, &kComposites})
    for (const Case& one : *cases) known.insert(function_name(one));
  for (const std::string header : {"functions.h", "nn.h", "einsum.h", "creation.h"}) {
    const std::set<std::string> declared = declared_in("tiny_compile/trace/" + header);
    CHECK(declared.size() > 0);
    for (const std::string& name : declared) {
      CAPTURE(name);
      CHECK(known.count(name) == 1);
    }
  }
}

TEST_CASE("what cannot be symbolic is an error at the user's line", "[sizes]") {
  for (const Case& one : kNumbersOnly) {
    CAPTURE(one.name);
    CHECK_THROWS_WITH(traced(one.function, one.inputs),
                      ContainsSubstring("sizes_test.cpp:") && ContainsSubstring("n"));
    Traced pinned;
    REQUIRE_NOTHROW(pinned = traced(one.function, one.inputs, 8));
    CHECK_FALSE(pinned.guards.empty());
    const std::vector<Tensor> inputs = seeded_inputs(
        substitute(traced(one.function, one.inputs, 8).graph, {{n.symbol(), 8}}), 7, {});
    CHECK(admits(pinned, inputs));
  }
}

TEST_CASE("a function without inputs is traced", "[sizes]") {
  const TensorFunction three = [](Inputs) { return std::vector<Tensor>{full({2}, 3)}; };
  CHECK(print(trace(three, {}, "f").graph) == print(trace_symbolic(three, {}, "f").graph));
}

TEST_CASE("a window that may not fit is guarded, or an error at the user's line", "[sizes]") {
  const int line = __LINE__ + 1;
  const auto windows = [](Inputs x) { return x[0].unfold(0, 3, 1); };
  CHECK_THROWS_WITH(traced(windows, {kX}),
                    ContainsSubstring(str("sizes_test.cpp:", line)) &&
                        ContainsSubstring("whether n < 3 must be known"));
  const Traced guarded = traced(windows, {kX}, 37);
  REQUIRE(guarded.guards.size() == 1);
  CHECK(guarded.guards[0].str() == "n >= 3");
  for (const int64_t number : {1, 2, 3, 37, 4096}) {
    CAPTURE(number);
    CHECK(admits(guarded, std::vector{zeros({number, 8})}) == (number >= 3));
  }
  CHECK_THROWS_WITH(traced(windows, {kX}, 2), ContainsSubstring("a window of 3 does not fit"));
}

TEST_CASE("a size that becomes a number pins the trace", "[sizes]") {
  const auto first_rows = [](Inputs x) {
    Tensor sum = x[0].select(0, 0);
    for (int64_t i = 1; i < static_cast<int64_t>(x[0].size(0)); i++)
      sum = sum + x[0].select(0, i);
    return sum;
  };
  const Traced pinned = traced(first_rows, {kX}, 3);
  CHECK(symbols(pinned.graph).empty());
  REQUIRE(pinned.guards.size() == 1);
  CHECK(pinned.guards[0].str() == "n == 3");
  CHECK(pinned.guards[0].admits({{n.symbol(), 3}}));
  CHECK_FALSE(pinned.guards[0].admits({{n.symbol(), 4}}));
  CHECK(print(pinned.graph).find("x0: f32[3,8]") != std::string::npos);
}

TEST_CASE("a loop up to a size is as long as the example", "[sizes]") {
  int64_t turns = 0;
  const auto counts = [&](Inputs x) {
    for (int64_t i = 0; i < x[0].size(0); i++) turns++;
    return x[0] + 1;
  };
  const Traced guarded = traced(counts, {kX}, 3);
  CHECK(turns == 3);
  const auto admits = [&](int64_t value) {
    return std::all_of(guarded.guards.begin(), guarded.guards.end(),
                       [&](const SizeGuard& guard) {
                         return guard.admits({{n.symbol(), value}});
                       });
  };
  CHECK(admits(3));
  CHECK_FALSE(admits(2));
  CHECK_FALSE(admits(4));
}

TEST_CASE("without an example a number is an error at the user's line", "[sizes]") {
  const int line = __LINE__ + 2;
  const auto asks = [](Inputs x) {
    const int64_t rows = x[0].size(0);
    return x[0] * static_cast<double>(rows);
  };
  CHECK_THROWS_WITH(traced(asks, {kX}), ContainsSubstring(str("sizes_test.cpp:", line)) &&
                                            ContainsSubstring("a number is needed for n"));
  const auto compares = [](Inputs x) { return x[0].size(0) > 64 ? x[0] : -x[0]; };
  CHECK_THROWS_WITH(traced(compares, {kX}), ContainsSubstring("whether 64 < n must be known"));
}

TEST_CASE("a comparison that the bounds decide needs no example", "[sizes]") {
  const Traced decided = traced(
      [](Inputs x) { return x[0].size(0) >= 1 && x[0].size(0) <= 4096 ? -x[0] : x[0]; }, {kX});
  CHECK(decided.guards.empty());
  const Traced guarded =
      traced([](Inputs x) { return x[0].size(0) > 64 ? x[0] : -x[0]; }, {kX}, 37);
  REQUIRE(guarded.guards.size() == 1);
  CHECK(guarded.guards[0].str() == "64 >= n");
  CHECK(symbols(guarded.graph).size() == 1);
}

TEST_CASE("outside a trace a size is a number", "[sizes]") {
  const Tensor x = zeros({4, 6});
  const int64_t rows = x.size(0);
  int64_t turns = 0;
  for (int64_t i = 0; i < x.size(0); i++) turns++;
  CHECK(rows == 4);
  CHECK(turns == 4);
  CHECK(x.size(0) / 2 == 2);
  CHECK(x.size(0) * 0.5 == 2.0);
  CHECK(zeros({x.size(0), 3}).shape() == Sizes{4, 3});
  CHECK(x.reshape({x.size(0), -1, 2}).shape() == Sizes{4, 3, 2});
}
