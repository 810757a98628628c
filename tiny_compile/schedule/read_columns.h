// Which layouts are good for columns that are read once, whose rows' neighbours lie side by side?
#pragma once

#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

// Of up to two chunks.
Deal read_columns(const Machine& machine, const Outline& columns, const Along& rows);

// Of more, by chunks; and few that lie oddly.
Deal read_long_columns(const Machine& machine, const Outline& columns, const Along& rows);
Deal read_odd_columns(const Machine& machine, const Outline& columns);

}  // namespace tiny_compile
