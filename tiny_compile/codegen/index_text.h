// Indices and sizes in C.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/base/expr.h"

namespace tiny_compile {

// Its symbols are variables.
std::string c_text(const Expr& expr);
std::string c_operand(const Expr& expr);  // the same beside operators: (n*3)

// Sizes by names that nothing else in a text has, n => size_n, and back.
struct SizeNames {
  Substitution there, back;
};
SizeNames size_names(const std::vector<Expr>& sizes);

}  // namespace tiny_compile
