// Which layouts are good down columns, whose rows' neighbours lie side by side?
#pragma once

#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

// Of columns that are read again: all of one in registers.
Deal hold_columns(const Machine& machine, const Outline& columns, const Along& rows);

// Of columns that are read once.
Deal read_columns(const Machine& machine, const Outline& columns, const Along& rows);

// The same of those of more than two chunks, which are read by chunks; and of few that lie oddly.
Deal read_long_columns(const Machine& machine, const Outline& columns, const Along& rows);
Deal read_odd_columns(const Machine& machine, const Outline& columns);

}  // namespace tiny_compile
