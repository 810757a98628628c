// Which scalars of a kernel does a value's text mean?
//
//   place     := '[' index {'; at' k '=' value '<' limit} ']'
//   value     := '$' n | 'r' n | dtype literal | op ['<' dtype '>'] '(' values ')'
//              | ('load' name | 'index') place ['if' value 'else' literal]
//              | 'philox<' n '>(' value ',' value ')[' index ']'
//
// A place's at0, at1, ... are values, so values and places are read together. Equal texts are
// one scalar, because a ScalarTable adds them.
#include "tiny_compile/loops/parse_value.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 48;
constexpr int kDeepest = 200;  // values in values; each is a level of this parser's recursion

}  // namespace

int ValueParser::look_up(const Names& names, const char* what) {
  skip_blanks();
  const size_t start = at_;
  const std::string_view found = word();
  const auto at = names.find(found);
  if (at != names.end()) return at->second;
  std::vector<std::string> known;
  for (const auto& [name, id] : names) known.push_back(name);
  error(start, str("no ", what, " '", found, "' is declared above", suggestion(found, known)));
}

int ValueParser::buffer() { return look_up(buffers_, "buffer"); }

int64_t ValueParser::size() { return bounded(0, kMostElements, "a size"); }

Expr ValueParser::extent() {
  skip_blanks();
  const size_t start = at_;
  const Expr found = parse_expr(text_, at_, [&](std::string_view name, size_t position) {
    return size_symbol(name, position);
  });
  const Interval bounds = found.bounds();
  const bool is_size =
      bounds.high >= 0 && (!found.is_constant() || bounds.high <= kMostElements);
  if (!is_size) error(start, str("a size must be in 0..", kMostElements, ", not ", found));
  return found;
}

Expr ValueParser::size_symbol(std::string_view name, size_t position) const {
  const auto found = sizes_.find(name);
  if (found != sizes_.end()) return found->second;
  error(position, str("unknown size '", name, "'; declare it in the header: program ",
                      program_.name, "[", name, ": 1..4096] {"));
}

DType ValueParser::dtype() {
  skip_blanks();
  const size_t start = at_;
  const std::optional<DType> found = dtype_from(word());
  if (!found) error(start, "expected a dtype, such as f32");
  return *found;
}

Expr ValueParser::symbol(std::string_view name, size_t position,
                         const std::vector<Expr>& limits) const {
  for (const Axis& axis : kernel_->axes) {
    if (axis.name == name) return axis.symbol();
  }
  for (size_t k = 0; k < limits.size(); k++) {
    if (name == str("at", k)) return Expr::index(indirect(k), max(limits[k], 1));
  }
  const auto size = sizes_.find(name);
  if (size != sizes_.end()) return size->second;
  error(position, str("'", name, "' is no axis of this loop and no place chosen by data"));
}

// The places are declared behind the index that names them, so it is read twice.
ValueParser::Place ValueParser::place() {
  Place result;
  expect('[', "this (an element is written x[i0*4 + j0])");
  const size_t start = at_;
  at_ = std::min(text_.find_first_of(";]\n", at_), text_.size());
  while (accept(';')) {
    const size_t name = at_;
    if (!accept_word(str("at", result.limits.size()))) error(name, "expected at0, at1, ...");
    expect('=', "the place's name");
    result.operands.push_back(value());
    expect('<', "the place's value");
    result.limits.push_back(extent());
  }
  const size_t end = at_;
  at_ = start;
  result.index = parse_expr(text_, at_, [&](std::string_view name, size_t position) {
    return symbol(name, position, result.limits);
  });
  skip_blanks();
  if (!next_is(';') && !next_is(']')) error(at_, "expected ']' after the index");
  at_ = end;
  expect(']', "the index");
  return result;
}

int ValueParser::value() {
  if (++depth_ > kDeepest) error(at_, "values nest too deeply; give one a name, $0 = ...");
  const int result = value_here();
  depth_--;
  return result;
}

int ValueParser::value_here() {
  skip_blanks();
  const size_t start = at_;
  if (accept('$')) {
    const auto named = values_.find(number());
    if (named == values_.end()) error(start, "this value has no line above");
    return named->second;
  }
  const std::string_view found = word();
  if (found == "load") return load();
  if (found == "index") return place_scalar(ScalarKind::Index, DType::i64);
  if (found == "philox") return philox();
  if (const std::optional<int> step = register_of(found)) return register_value(*step, start);
  if (const std::optional<DType> dtype = dtype_from(found))
    return table_->constant(literal(*dtype));
  if (const std::optional<Op> op = op_from(found); op && is_pointwise(*op)) return apply(*op);
  error(start, str("'", found, "' is no value: $0, r0, load, index, philox, a pointwise op, ",
                   "or a constant such as f32 0.5"));
}

Literal ValueParser::literal(DType dtype) {
  skip_blanks();
  const size_t start = at_;
  at_ = std::min(text_.find_first_of(" ,();]\n", at_), text_.size());
  try {
    return parse_literal(dtype, text_.substr(start, at_ - start));
  } catch (const Error& literal_error) {
    error(start, literal_error.what());
  }
}

int ValueParser::load() {
  const int source = buffer();
  return place_scalar(ScalarKind::Load, program_.buffers[source].type.dtype, source);
}

int ValueParser::place_scalar(ScalarKind kind, DType dtype, int source) {
  Scalar scalar;
  scalar.kind = kind;
  scalar.dtype = dtype;
  scalar.buffer = source;
  const Place where = place();
  scalar.index = where.index;
  scalar.operands = where.operands;
  scalar.limits = where.limits;
  if (kind == ScalarKind::Load) scalar.value = Literal{dtype, 0};
  if (accept_word("if")) {
    scalar.mask = value();
    if (!accept_word("else")) error(at_, "expected 'else' and what stands for it");
    scalar.value = literal(dtype);
  }
  return table_->add(std::move(scalar));
}

int ValueParser::philox() {  // philox<3>($0, $1)[i0]
  Scalar scalar;
  scalar.kind = ScalarKind::Philox;
  scalar.dtype = DType::u32;
  expect('<', "philox");
  scalar.value = Literal::of_integer(DType::i64, number());
  expect('>', "the draw");
  expect('(', "the draw");
  scalar.operands.push_back(value());
  expect(',', "the seed");
  scalar.operands.push_back(value());
  expect(')', "the counter");
  scalar.index = place().index;
  return table_->add(std::move(scalar));
}

std::optional<int> ValueParser::register_of(std::string_view word) {
  if (word.size() < 2 || word.size() > 8 || word[0] != 'r') return std::nullopt;
  int number = 0;
  for (char c : word.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

int ValueParser::register_value(int step, size_t start) {
  const int steps = static_cast<int>(kernel_->steps.size());
  if (step >= steps || !makes_register(kernel_->steps[step]))
    error(start, "no step above makes this register");
  Scalar scalar;
  scalar.kind = ScalarKind::Register;
  scalar.step = step;
  scalar.dtype = kernel_->steps[step].dtype;
  return table_->add(std::move(scalar));
}

int ValueParser::apply(Op op) {
  const size_t start = at_;
  std::optional<DType> target;
  if (info(op).result == Result::Cast) {
    expect('<', "the op (written cast<f32>(...) or bitcast<f32>(...))");
    target = dtype();
    expect('>', "the dtype");
  }
  std::vector<int> operands;
  expect('(', "the op");
  do {
    operands.push_back(value());
  } while (accept(','));
  expect(')', "the operands");
  if (static_cast<int>(operands.size()) != info(op).arity)
    error(start, str(info(op).name, " takes ", info(op).arity, " operands"));
  const DType dtype = info(op).result == Result::Bool ? DType::boolean
                      : target                        ? *target
                                                      : kernel_->scalars[operands.back()].dtype;
  return table_->apply(op, dtype, std::move(operands));
}

}  // namespace tiny_compile
