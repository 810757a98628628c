// Which layouts are good for columns that are read again, whose rows' neighbours lie side by side?
#pragma once

#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

// All of one in registers.
Deal hold_columns(const Machine& machine, const Outline& columns, const Along& rows);

}  // namespace tiny_compile
