// Where may a temporary's rows start? At 16-byte addresses, if its own layout is given up.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A stage behind fuse. A temporary that a library's product fills or reads, and whose rows are
// no multiple of 16 bytes, gets longer rows: the library is several times as fast, and what reads
// it may take 16 bytes at once. What is behind a row's end is never read. On a GPU so do results of halves, and
// are copied to where the caller wants them, where that takes less time.
Program pad_rows(const Program& program);

}  // namespace tiny_compile
