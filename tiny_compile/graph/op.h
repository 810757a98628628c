// The op table: every primitive of the Graph, one line each.
//
// The printer, the parser, the verifier, both interpreters and the code generators all read it,
// so a new pointwise op is one line here (and, once autodiff exists, its derivative rule).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tiny_compile/base/dtype.h"

namespace tiny_compile {

// Pointwise ops: X(name, arity, operand dtypes, result dtype, cost, float formula, integer
// formula). Costly: worth keeping rather than computing again.
// The formulas are C++ over the operands a, b, c. The very same tokens are compiled into the
// interpreter and pasted into generated C++ and CUDA, so that all three compute the same bits.
// A formula of 0 stands for "not defined on this kind"; bool uses the integer formula.
// clang-format off
#define TC_POINTWISE_OPS(X)                                                                   \
  X(add,          2, Number,  Same, Cheap,  a + b,                     tc_add(a, b))          \
  X(sub,          2, Number,  Same, Cheap,  a - b,                     tc_sub(a, b))          \
  X(mul,          2, Number,  Same, Cheap,  a * b,                     tc_mul(a, b))          \
  X(div,          2, Float,   Same, Cheap,  a / b,                     0)                     \
  X(floor_divide, 2, Number,  Same, Costly, tc_floor_divide(a, b),     tc_floor_divide(a, b)) \
  X(remainder,    2, Number,  Same, Costly, tc_remainder(a, b),        tc_remainder(a, b))    \
  X(pow,          2, Number,  Same, Costly, tc_pow(a, b),              tc_pow(a, b))          \
  X(minimum,      2, Number,  Same, Cheap,  tc_minimum(a, b),          tc_minimum(a, b))      \
  X(maximum,      2, Number,  Same, Cheap,  tc_maximum(a, b),          tc_maximum(a, b))      \
  X(logaddexp,    2, Float,   Same, Costly, tc_logaddexp(a, b),        0)                     \
  X(neg,          1, Number,  Same, Cheap,  tc_neg(a),                 tc_neg(a))             \
  X(abs,          1, Number,  Same, Cheap,  tc_abs(a),                 tc_abs(a))             \
  X(sign,         1, Number,  Same, Costly, tc_sign(a),                tc_sign(a))            \
  X(exp,          1, Float,   Same, Costly, tc_exp(a),                 0)                     \
  X(expm1,        1, Float,   Same, Costly, tc_expm1(a),               0)                     \
  X(log,          1, Float,   Same, Costly, tc_log(a),                 0)                     \
  X(log1p,        1, Float,   Same, Costly, tc_log1p(a),               0)                     \
  X(exp2,         1, Float,   Same, Costly, tc_exp2(a),                0)                     \
  X(log2,         1, Float,   Same, Costly, tc_log2(a),                0)                     \
  X(log10,        1, Float,   Same, Costly, tc_log10(a),               0)                     \
  X(sin,          1, Float,   Same, Costly, tc_sin(a),                 0)                     \
  X(cos,          1, Float,   Same, Costly, tc_cos(a),                 0)                     \
  X(tan,          1, Float,   Same, Costly, tc_tan(a),                 0)                     \
  X(asin,         1, Float,   Same, Costly, tc_asin(a),                0)                     \
  X(acos,         1, Float,   Same, Costly, tc_acos(a),                0)                     \
  X(atan,         1, Float,   Same, Costly, tc_atan(a),                0)                     \
  X(atan2,        2, Float,   Same, Costly, tc_atan2(a, b),            0)                     \
  X(tanh,         1, Float,   Same, Costly, tc_tanh(a),                0)                     \
  X(sigmoid,      1, Float,   Same, Costly, tc_sigmoid(a),             0)                     \
  X(erf,          1, Float,   Same, Costly, tc_erf(a),                 0)                     \
  X(erfinv,       1, Float,   Same, Costly, tc_erfinv(a),              0)                     \
  X(lgamma,       1, Float,   Same, Costly, tc_lgamma(a),              0)                     \
  X(digamma,      1, Float,   Same, Costly, tc_digamma(a),             0)                     \
  X(zeta,         2, Float,   Same, Costly, tc_zeta(a, b),             0)                     \
  X(gelu,         1, Float,   Same, Costly, tc_gelu(a),                0)                     \
  X(silu,         1, Float,   Same, Costly, tc_silu(a),                0)                     \
  X(softplus,     1, Float,   Same, Costly, tc_softplus(a),            0)                     \
  X(sqrt,         1, Float,   Same, Costly, tc_sqrt(a),                0)                     \
  X(rsqrt,        1, Float,   Same, Costly, tc_rsqrt(a),               0)                     \
  X(reciprocal,   1, Float,   Same, Costly, tc_reciprocal(a),          0)                     \
  X(floor,        1, Float,   Same, Costly, tc_floor(a),               0)                     \
  X(ceil,         1, Float,   Same, Costly, tc_ceil(a),                0)                     \
  X(round,        1, Float,   Same, Costly, tc_round(a),               0)                     \
  X(trunc,        1, Float,   Same, Costly, tc_trunc(a),               0)                     \
  X(eq,           2, Any,     Bool, Cheap,  a == b,                    a == b)                \
  X(ne,           2, Any,     Bool, Cheap,  a != b,                    a != b)                \
  X(lt,           2, Any,     Bool, Cheap,  a < b,                     a < b)                 \
  X(le,           2, Any,     Bool, Cheap,  a <= b,                    a <= b)                \
  X(gt,           2, Any,     Bool, Cheap,  a > b,                     a > b)                 \
  X(ge,           2, Any,     Bool, Cheap,  a >= b,                    a >= b)                \
  X(bitwise_and,  2, Bits,    Same, Cheap,  0,                         a & b)                 \
  X(bitwise_or,   2, Bits,    Same, Cheap,  0,                         a | b)                 \
  X(bitwise_xor,  2, Bits,    Same, Cheap,  0,                         a ^ b)                 \
  X(bitwise_not,  1, Bits,    Same, Cheap,  0,                         tc_not(a))             \
  X(shift_left,   2, Integer, Same, Cheap,  0,                         tc_shl(a, b))          \
  X(shift_right,  2, Integer, Same, Cheap,  0,                         tc_shr(a, b))          \
  X(popcount,     1, Integer, Same, Cheap,  0,                         tc_popcount(a))        \
  X(fma,          3, Float,   Same, Cheap,  tc_fma(a, b, c),           0)                     \
  X(where,        3, Where,   Same, Cheap,  a ? b : c,                 a ? b : c)             \
  X(cast,         1, Any,     Cast, Cheap,  0,                         0)                     \
  X(bitcast,      1, Any,     Cast, Cheap,  0,                         0)

// In place of these float formulas where operands are f16 or bf16: X(name, function of a).
#define TC_HALF_FORMULAS(X) \
  X(exp, tc_exp_half)         \
  X(log, tc_log_half)         \
  X(log1p, tc_log1p_half)     \
  X(sin, tc_sin_half)         \
  X(cos, tc_cos_half)         \
  X(erf, tc_erf_half)         \
  X(tanh, tc_tanh_half)       \
  X(sigmoid, tc_sigmoid_half) \
  X(gelu, tc_gelu_half)       \
  X(silu, tc_silu_half)       \
  X(softplus, tc_softplus_half)

// The other ops: X(name, inputs (-1: any number), class).
#define TC_OTHER_OPS(X)         \
  X(input,         0, Source)   \
  X(constant,      0, Source)   \
  X(iota,          0, Source)   \
  X(philox,        1, Source)   \
  X(reshape,       1, View)     \
  X(permute,       1, View)     \
  X(expand,        1, View)     \
  X(slice,         1, View)     \
  X(flip,          1, View)     \
  X(window,        1, View)     \
  X(sum,           1, Reduction)\
  X(prod,          1, Reduction)\
  X(max,           1, Reduction)\
  X(min,           1, Reduction)\
  X(argmax,        1, Reduction)\
  X(argmin,        1, Reduction)\
  X(any,           1, Reduction)\
  X(all,           1, Reduction)\
  X(sum_exp,       1, Reduction)\
  X(cumsum,        1, Scan)     \
  X(cumprod,       1, Scan)     \
  X(logcumsumexp,  1, Scan)     \
  X(cummax,        1, Scan)     \
  X(cummin,        1, Scan)     \
  X(argsort,       1, Sort)     \
  X(argsort_descending,  1, Sort)     \
  X(matmul,        2, Matmul)   \
  X(gather,        2, Indexed)  \
  X(scatter,       3, Scatter)  \
  X(scatter_add,   3, Scatter)  \
  X(scatter_prod,  3, Scatter)  \
  X(scatter_max,   3, Scatter)  \
  X(scatter_min,   3, Scatter)  \
  X(concat,       -1, Indexed)  \
  X(pad,           1, Indexed)  \
  X(call,         -1, Call)     \
  X(checkpoint,   -1, Call)     \
  X(custom_vjp,   -1, Call)     \
  X(item,          1, Call)

// What the reductions among them are: X(name, operand dtypes, result, the pointwise op that combines two
// values, what changes nothing). Wide: i64 of integers and bool; Place: i64, where the value is. Of integers an
// infinity is the largest or the least that there is.
#define TC_REDUCTIONS(X)                                        \
  X(sum,     Any,    Wide,  add,         -0.0)                  \
  X(prod,    Any,    Wide,  mul,         1)                     \
  X(max,     Number, Same,  maximum,     -__builtin_inf())      \
  X(min,     Number, Same,  minimum,     __builtin_inf())       \
  X(argmax,  Number, Place, maximum,     -__builtin_inf())      \
  X(argmin,  Number, Place, minimum,     __builtin_inf())       \
  X(any,     Bool,   Same,  bitwise_or,  0)                     \
  X(all,     Bool,   Same,  bitwise_and, 1)                     \
  X(sum_exp, Float,  Same,  add,         -0.0)
// clang-format on

enum class Op : uint8_t {
#define X(name, ...) name,
  TC_POINTWISE_OPS(X) TC_OTHER_OPS(X)
#undef X
};

enum class OpClass {
  Pointwise,
  Source,
  View,
  Reduction,
  Scan,
  Sort,
  Matmul,
  Indexed,
  Scatter,
  Call
};

// Which operand dtypes a pointwise op takes. Number: floats and integers; Bits: integers
// and bool; Where: a bool, then two of any one dtype; Bool: some reductions. Operands otherwise
// share one dtype and one shape.
enum class Domain { Any, Number, Float, Integer, Bits, Where, Bool };
enum class Result { Same, Bool, Cast };  // Cast: written on the node
enum class Cost { Cheap, Costly };       // of floats

struct OpInfo {
  const char* name;
  int arity;  // -1: any number
  OpClass op_class;
  Domain domain;  // pointwise only, as are the following
  Result result;
  Cost cost;
  const char* float_formula;  // "a + b"; "0" where undefined
  const char* integer_formula;
};

enum class ReducedTo { Same, Wide, Place };

struct ReductionInfo {
  Op op;
  Domain domain;
  ReducedTo result;
  Op pairwise;
  double identity;
};

constexpr int kOpCount = 0
#define X(...) +1
    TC_POINTWISE_OPS(X) TC_OTHER_OPS(X)
#undef X
    ;

const OpInfo& info(Op op);
const ReductionInfo& reduction_info(Op reduction);
std::optional<Op> op_from(std::string_view name);

inline bool is_pointwise(Op op) { return info(op).op_class == OpClass::Pointwise; }
inline bool is_costly(Op op) { return info(op).cost == Cost::Costly; }
inline bool is_view(Op op) { return info(op).op_class == OpClass::View; }
inline bool is_reduction(Op op) { return info(op).op_class == OpClass::Reduction; }
inline bool is_scan(Op op) { return info(op).op_class == OpClass::Scan; }
inline bool is_sort(Op op) { return info(op).op_class == OpClass::Sort; }
inline bool is_scatter(Op op) { return info(op).op_class == OpClass::Scatter; }

// The pointwise op that combines two values of a reduction: add of sum, bitwise_or of any.
inline Op pairwise(Op reduction) { return reduction_info(reduction).pairwise; }

// Reductions of floats by the contract's tree: each step combines two values. Not those that give
// places, and not sum_exp, whose chunks have maxima of their own.
std::vector<Op> tree_reductions();

// Whether it has no result of no elements: a maximum or minimum, and where it is.
inline bool needs_an_element(Op op) {
  return is_reduction(op) && (pairwise(op) == Op::maximum || pairwise(op) == Op::minimum);
}

// The pointwise op that a scan or a scatter combines two values with: add of cumsum and
// scatter_add. None of cummax, cummin (which compare, and give places) and scatter (which sets).
std::optional<Op> combiner(Op op);

bool accepts(Domain domain,
             DType dtype);  // whether a (non-condition) operand may have the dtype

// A reduction is a tree over each of these many elements, then one over the results: reduce.cpp.
inline constexpr int64_t kChunk = 1024;

// A scan goes over groups of this many elements, then over the groups' totals: scan.cpp.
inline constexpr int64_t kGroup = 16;

// The dtype of a reduction's result, PyTorch's: sum/prod of integers and bool give i64, argmax
// and argmin i64, any and all bool, the others the operand's.
DType reduction_result(Op op, DType operand);

// Of a scan: i64, places, for cummax and cummin, else the operand's.
DType scan_result(Op op, DType operand);

// The formula pasted into generated code for an op whose operands have this dtype.
const char* formula(Op op, DType operand);

}  // namespace tiny_compile
