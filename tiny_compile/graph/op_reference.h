// The op table for people: what `tc ops` prints.
#pragma once

#include <string>

#include "tiny_compile/graph/op.h"

namespace tiny_compile {

std::string op_meaning(Op op);   // one line: "the dot products of the last two axes: ..."
std::string op_operands(Op op);  // "number, number", "bool, any, any", "any..."

// A Markdown table, a line an op: name, class, operands, result, attributes, meaning.
std::string op_reference();

}  // namespace tiny_compile
