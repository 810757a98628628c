// Question: which ops are there, and what does each do?
//
//   | op     | class  | operands | result | attributes            | meaning                |
//   | slice  | View   | any      | same   | axis start stop step  | elements start, ...    |
//
// Everything but the sentences comes from the op table and attributes_of, so that a new
// pointwise op is listed, with its formula, before anyone writes a word about it.
#include "tiny_compile/graph/op_reference.h"

#include <algorithm>
#include <array>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {
namespace {

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

const char* class_name(OpClass op_class) {
  switch (op_class) {
    case OpClass::Pointwise: return "Pointwise";
    case OpClass::Source: return "Source";
    case OpClass::View: return "View";
    case OpClass::Reduction: return "Reduction";
    case OpClass::Scan: return "Scan";
    case OpClass::Sort: return "Sort";
    case OpClass::Matmul: return "Matmul";
    case OpClass::Indexed: return "Indexed";
    case OpClass::Scatter: return "Scatter";
    case OpClass::Call: return "Call";
  }
  return "?";
}

const char* domain_name(Domain domain) {
  switch (domain) {
    case Domain::Number: return "number";
    case Domain::Float: return "float";
    case Domain::Integer: return "integer";
    case Domain::Bits: return "integer or bool";
    case Domain::Bool: return "bool";
    default: return "any";
  }
}

// "tc_floor_divide(a, b)" => "floor_divide(a, b)"
std::string formula_text(Op op) {
  const OpInfo& table = info(op);
  std::string text = table.float_formula;
  if (text == "0") text = table.integer_formula;
  if (text == "a | b") return "a \\| b";  // a bare bar would end the table's cell
  return text.substr(text.rfind("tc_", 0) == 0 ? 3 : 0);
}

std::string result_name(Op op) {
  switch (op) {
    case Op::input:
    case Op::constant: return "its type";
    case Op::iota: return "i64";
    case Op::philox: return "u32";
    case Op::call:
    case Op::checkpoint:
    case Op::custom_vjp: return "tuple";
    case Op::item: return "that result's";
    default: break;
  }
  if (is_reduction(op)) {
    const ReductionInfo& reduction = reduction_info(op);
    return reduction.domain == Domain::Bool       ? "bool"
           : reduction.result == ReducedTo::Wide  ? "same (integer: i64)"
           : reduction.result == ReducedTo::Place ? "i64"
                                                  : "same";
  }
  if (is_scan(op)) return scan_result(op, DType::f32) == DType::i64 ? "i64" : "same";
  if (is_sort(op)) return "i64";
  const Result result = info(op).result;
  return result == Result::Bool ? "bool" : result == Result::Cast ? "its type" : "same";
}

std::string attributes_text(Op op) {
  std::vector<std::string> parts;
  for (const AttrForm& form : attributes_of(op)) {
    parts.push_back(form.required ? name(form.key) : str("(", name(form.key), ")"));
  }
  if (op == Op::constant || op == Op::pad) parts.push_back("value");
  return join(parts, " ");
}

std::string line(const Row& row, const Row& widths, char fill) {
  std::string result = "|";
  for (size_t i = 0; i < kColumns; i++) {
    result += fill + row[i] + std::string(widths[i].size() - row[i].size(), fill) + fill + "|";
  }
  return result + "\n";
}

}  // namespace

std::string op_meaning(Op op) {
  switch (op) {
    case Op::floor_divide: return "a / b rounded down";
    case Op::remainder: return "a - b * floor_divide(a, b): has the sign of b";
    case Op::pow: return "a to the power of b";
    case Op::minimum: return "the lesser of a and b; NaN if either is";
    case Op::maximum: return "the greater of a and b; NaN if either is";
    case Op::fma: return "a * b + c, rounded once";
    case Op::exp2: return "2 to the power of a";
    case Op::log2: return "the logarithm of a to base 2";
    case Op::log10: return "the logarithm of a to base 10";
    case Op::atan2: return "the angle of the point (b, a), from -pi to pi";
    case Op::erfinv: return "the x with erf(x) = a";
    case Op::lgamma: return "log(|gamma(a)|)";
    case Op::digamma: return "the derivative of lgamma";
    case Op::zeta: return "Hurwitz's: the sum of (b + k)^-a over k >= 0, a > 1";
    case Op::logaddexp: return "log(exp(a) + exp(b))";
    case Op::sigmoid: return "1 / (1 + exp(-a))";
    case Op::gelu: return "a * (1 + erf(a / sqrt(2))) / 2";
    case Op::silu: return "a / (1 + exp(-a))";
    case Op::softplus: return "log(1 + exp(a))";
    case Op::round: return "the nearest integer, halves to even";
    case Op::bitwise_not: return "all bits flipped; of a bool: not a";
    case Op::shift_left: return "a << b; 0 where b is the width or more";
    case Op::shift_right: return "a >> b; 0 or the sign where b is the width or more";
    case Op::popcount: return "the number of bits set";
    case Op::cast:
      return "a rounded once to the result's dtype; integers saturate, NaN gives 0";
    case Op::bitcast: return "the same bits as a dtype of the same size; NaN as the quiet one";
    case Op::input: return "an argument of the graph, row-major but for strides";
    case Op::constant: return "every element is value";
    case Op::iota: return "start, start + 1, start + 2, ...; from 0 without start";
    case Op::philox: return "random bits: a function of the key, the draw and the position";
    case Op::reshape: return "the same elements in the same order, another shape";
    case Op::permute: return "result axis i is operand axis axes[i]";
    case Op::expand: return "axes of size 1 repeated, leading axes added";
    case Op::slice: return "elements start, start + step, ... below stop of the axis";
    case Op::flip: return "the listed axes reversed";
    case Op::window:
      return "every size elements in a row of the axis, step apart, as a last axis";
    case Op::sum: return "the sum over the axes; of nothing 0";
    case Op::prod: return "the product over the axes; of nothing 1";
    case Op::max: return "the greatest over the axes; NaN if any is";
    case Op::min: return "the least over the axes; NaN if any is";
    case Op::argmax: return "where the first greatest is, counted along the axes as listed";
    case Op::argmin: return "where the first least is, counted along the axes as listed";
    case Op::any: return "whether one is true";
    case Op::all: return "whether none is false";
    case Op::sum_exp: return "the sum of exp(x - m), m the maximum clamped to finite";
    case Op::matmul:
      return "[...,M,K] x [...,K,N] => [...,M,N]: the sum over k of a[m,k] * b[k,n]";
    case Op::gather: return "result[i,j] = data[index[i,j],j] (axis 0)";
    case Op::scatter:
      return "data, then data[index[i,j],j] = source[i,j] (axis 0); the last wins";
    case Op::scatter_add: return "data, then data[index[i,j],j] += source[i,j] (axis 0)";
    case Op::scatter_prod: return "data, then data[index[i,j],j] *= source[i,j] (axis 0)";
    case Op::scatter_max: return "data, then the greater of data[index[i,j],j] and source[i,j]";
    case Op::scatter_min: return "data, then the lesser of data[index[i,j],j] and source[i,j]";
    case Op::concat: return "the operands one after the other along the axis";
    case Op::pad: return "low and high elements of value added to each axis; negative: cropped";
    case Op::cumsum: return "running sums along the axis";
    case Op::cumprod: return "running products along the axis";
    case Op::logcumsumexp: return "running log(sum(exp(x))) along the axis";
    case Op::cummax: return "where the last greatest so far is; NaN beats all";
    case Op::cummin: return "where the last least so far is; NaN beats all";
    case Op::argsort:
      return "where the least of the axis is, the next, ...; equals in order, NaN last";
    case Op::argsort_descending:
      return "where the greatest of the axis is, the next, ...; equals in order, NaN first";
    case Op::call: return "the results of the graph it holds on the operands, as a tuple";
    case Op::checkpoint: return "a call whose inside is computed again for its derivative";
    case Op::custom_vjp:
      return "a call; from operands, results and their cotangents its second graph has those "
             "of "
             "the operands";
    case Op::item: return "result number index of a call";
    default: return formula_text(op);
  }
}

std::string op_operands(Op op) {
  const OpInfo& table = info(op);
  if (table.domain == Domain::Where) return "bool, any, any";
  if (is_reduction(op)) return domain_name(reduction_info(op).domain);
  switch (op) {
    case Op::philox: return "u64[2]";
    case Op::cumsum:
    case Op::cumprod:
    case Op::cummax:
    case Op::cummin: return "number";
    case Op::logcumsumexp: return "float";
    case Op::matmul: return "number, number";
    case Op::gather: return "any, i64 or i32";
    case Op::scatter: return "any, i64 or i32, any";
    case Op::scatter_add:
    case Op::scatter_prod:
    case Op::scatter_max:
    case Op::scatter_min: return "number, i64 or i32, number";
    case Op::concat:
    case Op::call:
    case Op::checkpoint:
    case Op::custom_vjp: return "any...";
    case Op::item: return "tuple";
    default: break;
  }
  const std::vector<std::string> operands(static_cast<size_t>(table.arity),
                                          domain_name(table.domain));
  return join(operands, ", ");
}

std::string op_reference() {
  std::vector<Row> rows = {{"op", "class", "operands", "result", "attributes", "meaning"}};
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    rows.push_back({info(op).name, class_name(info(op).op_class), op_operands(op),
                    result_name(op), attributes_text(op), op_meaning(op)});
  }
  Row widths;  // the longest cell of each column
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; i++) {
      if (row[i].size() > widths[i].size()) widths[i] = row[i];
    }
  }
  std::string result = line(rows[0], widths, ' ') + line(Row{}, widths, '-');
  for (size_t i = 1; i < rows.size(); i++) result += line(rows[i], widths, ' ');
  return result;
}

}  // namespace tiny_compile
