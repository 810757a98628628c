// The contract's tree down columns.
#pragma once

#include "tiny_compile/codegen/cpp_column_text.h"

namespace tiny_compile {

// <reg>[l] = the sum, product or sum of exponentials of each lane's column, in this accumulator type.
void write_column_tree(const ColumnText& columns, const Step& step, const std::string& reg,
                       DType type);

}  // namespace tiny_compile
