// How does a scalar become text? $3 = exp($2) reads  const float exp_3 = tc_exp(sub_2);
//
// f16 and bf16 values are floats that the dtype can hold: loads widen, every op that may
// leave the dtype rounds once, stores narrow. Floats are written in hexadecimal, exact
// in every compiler.
#include "tiny_compile/codegen/scalar.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

bool is_identifier_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

std::string hex_float(double value, const char* suffix) {
  char text[64];
  std::snprintf(text, sizeof text, "%a%s", value, suffix);
  return value < 0 || (value == 0 && text[0] == '-') ? str("(", text, ")") : text;
}

// a * -1.0 and -0.0 - a are -a to the bit, NaN and zeros included. Written so, because g++
// would make an fnms of -fma(..), whose zero has the other sign. -1: the scalar is neither.
int negated_operand(const Kernel& kernel, const Scalar& scalar) {
  if (!is_float(scalar.dtype) || (scalar.op != Op::mul && scalar.op != Op::sub)) return -1;
  const int a = scalar.operands[0], b = scalar.operands[1];
  const auto is = [&](int id, double value) {
    const Scalar& operand = kernel.scalars[id];
    return operand.kind == ScalarKind::Constant && operand.value.is(value);
  };
  if (scalar.op == Op::sub) return is(a, -0.0) ? b : -1;
  return is(b, -1.0) ? a : is(a, -1.0) ? b : -1;
}

// What ends a line, or joins the next one to it, is no part of a comment's text.
std::string in_comment(std::string text) {
  const auto is_odd = [](char c) { return c == '\\' || static_cast<unsigned char>(c) < ' '; };
  std::replace_if(text.begin(), text.end(), is_odd, '_');
  return text;
}

}  // namespace

std::string fill_formula(Calls& calls, std::string_view formula,
                         const std::vector<std::string>& operands) {
  std::string result;
  for (size_t i = 0; i < formula.size();) {
    if (!is_identifier_char(formula[i])) {
      result += formula[i++];
      continue;
    }
    size_t end = i;
    while (end < formula.size() && is_identifier_char(formula[end])) end++;
    const std::string_view word = formula.substr(i, end - i);
    const bool operand =
        word.size() == 1 && word[0] >= 'a' && word[0] < 'a' + static_cast<int>(operands.size());
    if (word.starts_with("tc_")) calls(std::string(word));
    result += operand ? operands[word[0] - 'a'] : std::string(word);
    i = end;
  }
  return result;
}

std::string c_name(const std::string& prefix, const std::string& name) {
  std::string places, letters = name;
  for (size_t at = 0; at < letters.size(); at++) {
    if (letters[at] != '.') continue;
    letters[at] = '_';
    places += str(places.empty() ? "" : "_", at);
  }
  return prefix + places + "_" + letters;
}

std::string pointer_name(const Buffer& buffer) {
  return c_name(buffer.role == Role::Input    ? "in"
                : buffer.role == Role::Output ? "out"
                                              : "tmp",
                buffer.name);
}

const char* value_type(DType dtype) { return is_half(dtype) ? "float" : c_type(dtype); }

std::string literal_text(Calls& calls, const Literal& value) {
  const double real = is_float(value.dtype) ? value.as_double() : 0;
  const bool finite = real - real == 0;
  if (calls.cuda && real == 0 && std::signbit(real))
    return str(value.dtype == DType::f64 ? "(double)" : "", calls("tc_minus_zero"), "()");
  if (value.dtype == DType::f64) {
    return finite ? hex_float(real, "") : str(calls("tc_from_bits"), "(", value.bits, "ull)");
  }
  if (is_float(value.dtype)) {
    if (finite) return hex_float(real, "f");
    return str(calls("tc_from_bits"), "(", Literal::of(DType::f32, real).bits, "u)");
  }
  if (value.dtype == DType::boolean) return value.bits ? "true" : "false";
  const bool is_unsigned = category(value.dtype) == Category::Unsigned;
  if (is_unsigned)
    return str("(", c_type(value.dtype), ")", static_cast<uint64_t>(value.as_integer()), "ull");
  const int64_t number = value.as_integer();
  if (number == INT64_MIN) return "(-9223372036854775807ll - 1)";
  if (value.dtype == DType::i64)
    return number < 0 ? str("(", number, "ll)") : str(number, "ll");
  if (value.dtype == DType::i32 && number != INT32_MIN)
    return number < 0 ? str("(", number, ")") : str(number);
  return str("((", c_type(value.dtype), ")", number, "ll)");
}

std::string storage_type(Calls& calls, DType dtype) {
  return is_half(dtype) ? calls(c_type(dtype)) : c_type(dtype);
}

std::string to_storage(Calls& calls, DType dtype, const std::string& value) {
  if (dtype == DType::f16) return str(calls("tc_to_f16"), "(", value, ")");
  if (dtype == DType::bf16) return str(calls("tc_to_bf16"), "(", value, ")");
  return value;
}

std::string exact_storage(Calls& calls, DType dtype, const std::string& value) {
  return dtype == DType::bf16 ? str(calls("tc_exact_bf16"), "(", value, ")")
                              : to_storage(calls, dtype, value);
}

std::string rounded(Calls& calls, DType dtype, const std::string& value) {
  if (dtype == DType::f16) return str(calls("tc_round_f16"), "(", value, ")");
  if (dtype == DType::bf16) return str(calls("tc_round_bf16"), "(", value, ")");
  return value;
}

std::string from_storage(Calls& calls, DType dtype, const std::string& memory) {
  return is_half(dtype) ? str(calls("tc_to_f32"), "(", memory, ")") : memory;
}

// a op b, not rounded.
static std::string combined(Calls& calls, Op op, DType dtype, const std::string& a,
                            const std::string& b) {
  return fill_formula(calls, formula(op, dtype), {a, b});
}

std::string combine(Calls& calls, Op reduction, DType dtype, const std::string& a,
                    const std::string& b) {
  return combined(calls, pairwise(reduction), dtype, a, b);
}

std::string updated_value(Calls& calls, Op op, DType dtype, const std::string& a,
                          const std::string& b) {
  const std::optional<Op> both = combiner(op);
  return both ? rounded(calls, dtype, combined(calls, *both, dtype, a, b)) : b;
}

std::string updated(Calls& calls, Op op, DType dtype, const std::string& place,
                    const std::string& value) {
  const std::optional<Op> both = combiner(op);
  const std::string before = from_storage(calls, dtype, place);
  const std::string result =
      both ? to_storage(calls, dtype, combined(calls, *both, dtype, before, value))
           : exact_storage(calls, dtype, value);
  return str(place, " = ", result, ";");
}

std::string comment_of(const Kernel& kernel) {
  std::vector<std::string> places;
  for (const Location& where : kernel.where) {
    const std::string place =
        in_comment(Location{where.file.substr(where.file.rfind('/') + 1), where.line}.str());
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  if (places.empty()) return "";
  const bool many = places.size() > 8;
  if (many) places.resize(8);
  return str("// ", join(places, ", "), many ? ", ...\n" : "\n");
}

ScalarWriter::ScalarWriter(const Program& program, const Kernel& kernel, Calls& calls)
    : program_(program), kernel_(kernel), calls_(calls) {
  in_range = [this](int chosen, const Expr& limit) {
    return str(calls_("tc_in_range"), "(", name(chosen), ", ", c_text(limit), ")");
  };
}

bool ScalarWriter::is_trivial(int scalar) const {
  const ScalarKind kind = kernel_.scalars[scalar].kind;
  return kind == ScalarKind::Constant || kind == ScalarKind::Register;
}

std::string ScalarWriter::name(int id) const {
  const Scalar& scalar = kernel_.scalars[id];
  switch (scalar.kind) {
    case ScalarKind::Constant: return literal_text(calls_, scalar.value);
    case ScalarKind::Register: return str("r", scalar.step);
    case ScalarKind::Load: return str("load_", id);
    case ScalarKind::Index: return str("index_", id);
    case ScalarKind::Philox: return str("philox_", id);
    case ScalarKind::Element: return element(id).empty() ? str("element_", id) : element(id);
    case ScalarKind::Votes: return str("votes_", id);
    case ScalarKind::Apply: return str(info(scalar.op).name, "_", id);
  }
  return {};
}

// at0, at1, ... are written as the operands they stand for.
std::string ScalarWriter::index(const Expr& expr, const std::vector<int>& operands) const {
  std::string text = c_text(expr);
  for (size_t k = 0; k < operands.size(); k++) {
    const std::string symbol = str("at", k), operand = name(operands[k]);
    for (size_t at = 0; (at = text.find(symbol, at)) != std::string::npos;) {
      const size_t end = at + symbol.size();
      const bool whole = (at == 0 || !is_identifier_char(text[at - 1])) &&
                         (end == text.size() || !is_identifier_char(text[end]));
      if (whole) text.replace(at, symbol.size(), operand);
      at += whole ? operand.size() : symbol.size();
    }
  }
  return text;
}

std::string ScalarWriter::loaded(int id) const {
  const Scalar& scalar = kernel_.scalars[id];
  const std::string given = scalar.kind == ScalarKind::Load ? element(id) : "";
  if (!given.empty()) return from_storage(calls_, scalar.dtype, given);
  std::string guard;
  if (scalar.mask >= 0) guard = name(scalar.mask);
  for (size_t k = 0; k < scalar.operands.size(); k++)
    guard += str(guard.empty() ? "" : " && ", in_range(scalar.operands[k], scalar.limits[k]));
  const std::string place = index(scalar.index, scalar.operands);
  if (scalar.kind == ScalarKind::Index) {
    const std::string value = str("(long long)(", place, ")");
    const Literal otherwise{scalar.dtype, 0};
    return guard.empty() ? value
                         : str(guard, " ? ", value, " : ", literal_text(calls_, otherwise));
  }
  const std::string stored =
                        str(pointer_name(program_.buffers[scalar.buffer]), "[", place, "]"),
                    value = from_storage(calls_, scalar.dtype, stored);
  if (guard.empty()) return value;
  if (calls_.cuda && is_half(scalar.dtype)) {
    const std::string type = storage_type(calls_, scalar.dtype);
    return from_storage(calls_, scalar.dtype,
                        str(guard, " ? ", stored, " : ", type, "{", scalar.value.bits, "}"));
  }
  return str(guard, " ? ", value, " : ", literal_text(calls_, scalar.value));
}

std::string ScalarWriter::unrounded(int id) const {
  const Scalar& scalar = kernel_.scalars[id];
  if (scalar.kind != ScalarKind::Apply || scalar.dtype != DType::f32 || !is_computed(id))
    return "";
  if (scalar.op == Op::round) {
    const int whole = scalar.operands[0];  // an element's array may have changed since
    return kernel_.scalars[whole].kind == ScalarKind::Element ? "" : name(whole);
  }
  if (scalar.op != Op::minimum && scalar.op != Op::maximum) return "";
  std::vector<std::string> operands;
  for (int operand : scalar.operands) {
    const Scalar& limit = kernel_.scalars[operand];
    const bool is_whole = limit.kind == ScalarKind::Constant &&
                          std::trunc(limit.value.as_double()) == limit.value.as_double();
    operands.push_back(is_whole ? name(operand) : unrounded(operand));
  }
  return operands[0].empty() || operands[1].empty()
             ? ""
             : fill_formula(calls_, formula(scalar.op, scalar.dtype), operands);
}

std::string ScalarWriter::converted(int id) const {
  const Scalar& scalar = kernel_.scalars[id];
  const int operand = scalar.operands[0];
  const DType from = kernel_.scalars[operand].dtype, to = scalar.dtype;
  const std::string value = name(operand);
  if (from == to) return value;
  if (is_half(to)) {
    const bool is_float = is_half(from) || from == DType::f32 || from == DType::f64;
    if (from == DType::f32 && !rounds(id)) return value;
    const std::string number =
        is_float ? value : str(calls_("tc_cast"), "<float>(", value, ")");
    return size_of(from) == 1 ? number : rounded(calls_, to, number);  // a half has all bytes
  }
  if (to == DType::f32 && is_half(from)) return value;
  const bool rounds_at_once = calls_.cuda && category(to) != Category::Float &&
                              to != DType::boolean && (size_of(to) == 1 || size_of(to) == 4);
  if (const std::string exact = rounds_at_once ? unrounded(operand) : ""; !exact.empty())
    return str(calls_("tc_nearest"), "<", c_type(to), ">(", exact, ")");
  return str(calls_("tc_cast"), "<", c_type(to), ">(", value, ")");
}

std::string ScalarWriter::reinterpreted(int id) const {
  const DType to = kernel_.scalars[id].dtype;
  const int operand = kernel_.scalars[id].operands[0];
  const DType from = kernel_.scalars[operand].dtype;
  if (from == to) return name(operand);
  if (to == DType::bf16) return str(calls_("tc_f16_as_bf16"), "(", name(operand), ")");
  if (to == DType::f16) return str(calls_("tc_bf16_as_f16"), "(", name(operand), ")");
  return str(calls_("tc_bitcast"), "<", c_type(to), ">(", name(operand), ")");
}

std::string ScalarWriter::applied(int id) const {
  const Scalar& scalar = kernel_.scalars[id];
  if (scalar.op == Op::cast) return converted(id);
  if (scalar.op == Op::bitcast) return reinterpreted(id);
  std::vector<std::string> operands;
  for (int operand : scalar.operands) operands.push_back(name(operand));
  if (const int negated = negated_operand(kernel_, scalar); negated >= 0)
    return str(calls_("tc_neg"), "(", name(negated), ")");
  const DType dtype = kernel_.scalars[scalar.operands.back()].dtype;
  const std::string text = fill_formula(calls_, formula(scalar.op, dtype), operands);
  return stays_in_dtype(scalar.op) || !rounds(id) ? text : rounded(calls_, scalar.dtype, text);
}

std::string ScalarWriter::value(int id) const {
  const Scalar& scalar = kernel_.scalars[id];
  switch (scalar.kind) {
    case ScalarKind::Load:
    case ScalarKind::Index: return loaded(id);
    case ScalarKind::Apply: return applied(id);
    case ScalarKind::Philox:
      return str(calls_("tc_philox"), "(", name(scalar.operands[0]), ", ",
                 name(scalar.operands[1]), " + ", scalar.value.as_integer(), "ull, ",
                 index(scalar.index), ")");
    default: return name(id);
  }
}

std::string ScalarWriter::definition(int id) const {
  return str("const ", value_type(kernel_.scalars[id].dtype), " ", name(id), " = ", value(id),
             ";");
}

std::string ScalarWriter::nearest(int id, const Expr& extent) const {
  const std::string own = name(id), count = c_operand(extent);
  const bool is_signed = category(kernel_.scalars[id].dtype) == Category::Signed;
  return str(is_signed ? own + " < 0 ? 0 : " : "", own, " < ", count, " ? ", own, " : ", count,
             " - 1");
}

}  // namespace tiny_compile
