// Which layouts are good down columns, whose rows' neighbours lie side by side?
#pragma once

#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

// Of columns that are read again: all of one in registers.
Deal hold_columns(const Machine& machine, const Outline& columns, const Along& rows);

// Of columns that are read once.
Deal read_columns(const Machine& machine, const Outline& columns, const Along& rows);

// The same of few long ones that lie oddly.
Deal read_odd_columns(const Machine& machine, const Outline& columns);

}  // namespace tiny_compile
