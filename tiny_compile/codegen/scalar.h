// How a scalar of a kernel reads in C: shared by the C++ and the CUDA generators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/codegen/index_text.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Names the generated text uses. A scalar is a constant written out, or a variable "exp_3".
class ScalarWriter {
 public:
  // What the texts call is told to `calls`.
  ScalarWriter(const Program& program, const Kernel& kernel, Calls& calls);
  ScalarWriter(const ScalarWriter&) = delete;

  // How a load reads its element where that is not "mask ? in_x[index] : 0"; "" where it is.
  std::function<std::string(int load)> element = [](int) { return std::string(); };
  // How it reads that a place which data chose is below `limit`; "tc_in_range(load_0, 50)" unless changed.
  std::function<std::string(int chosen, const Expr& limit)> in_range;
  // Whether a half is rounded where it is computed; where not, its store does it.
  std::function<bool(int apply)> rounds = [](int) { return true; };
  // Whether its operands have names wherever it has one.
  std::function<bool(int apply)> is_computed = [](int) { return true; };

  std::string name(int scalar) const;        // "exp_3", or the constant itself
  std::string value(int scalar) const;       // "tc_exp(sub_2)"
  std::string definition(int scalar) const;  // "const float exp_3 = tc_exp(sub_2);"
  // The integer, or the nearest of 0 .. extent - 1.
  std::string nearest(int id, const Expr& extent) const;
  bool is_trivial(int scalar) const;  // needs no variable: a constant, a register
  std::string index(const Expr& expr, const std::vector<int>& operands = {}) const;

 private:
  std::string loaded(int id) const;
  std::string applied(int id) const;
  // Of a rounded f32, perhaps held between whole numbers, the same without the rounding; else "".
  std::string unrounded(int id) const;
  std::string converted(int id) const;
  std::string reinterpreted(int id) const;

  const Program& program_;
  const Kernel& kernel_;
  Calls& calls_;
};

// An identifier of C for a name with dots, no two names having the same: "in", "x" => "in_x";
// with a dot behind its first letter, "in", "x.y" => "in1_x_y".
std::string c_name(const std::string& prefix, const std::string& name);
std::string pointer_name(const Buffer& buffer);  // "in_x", "out_y3", "tmp_t2"
const char* value_type(DType dtype);             // of a variable: "float" for f32, f16 and bf16
// What the texts below call is told to `calls`.
std::string storage_type(Calls& calls, DType dtype);  // in memory: "float", "tc_bf16"
std::string literal_text(Calls& calls,
                         const Literal& value);  // in the compute type: "0x1.8p+0f", "(-3ll)"
std::string to_storage(Calls& calls, DType dtype, const std::string& value);  // "tc_to_bf16(v)"
// The same of a value that is one of the dtype's: what a scalar of that dtype always is.
std::string exact_storage(Calls& calls, DType dtype, const std::string& value);
std::string rounded(Calls& calls, DType dtype, const std::string& value);  // "tc_round_bf16(v)"
std::string from_storage(Calls& calls, DType dtype,
                         const std::string& memory);  // "tc_to_f32(x[i])"
// "tc_maximum(a, b)" for a step of a reduction; the operands are texts.
std::string combine(Calls& calls, Op reduction, DType dtype, const std::string& a,
                    const std::string& b);
// "a + b" for one update of a scatter, "b" for `scatter` itself; rounded to its dtype.
std::string updated_value(Calls& calls, Op op, DType dtype, const std::string& a,
                          const std::string& b);
// "y[i] = y[i] + d;" for an update of a scatter; of `scatter` itself, "y[i] = d;".
std::string updated(Calls& calls, Op op, DType dtype, const std::string& place,
                    const std::string& value);
std::string comment_of(const Kernel& kernel);  // "// softmax.cpp:3"
// Replaces the identifiers a, b, c of an op table formula.
std::string fill_formula(Calls& calls, std::string_view formula,
                         const std::vector<std::string>& operands);

}  // namespace tiny_compile
